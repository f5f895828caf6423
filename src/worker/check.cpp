// Implements `sinew check`, which tries a job for some seconds and judges it.
#include <cstdio>

#include "base/clock.h"
#include "base/exit_code.h"
#include "base/printable.h"
#include "base/terminal_text.h"
#include "train/train.h"
#include "worker/tasks.h"

namespace sinew::worker {

int run_check(const task::Check& task) {
  train::SanityOptions options;
  options.seconds = task.seconds;
  options.job = read_job_file(task.job, task.overrides);
  const auto data = train::open_data(options.job);
  options.dataset = data.get();
  if (!task.json) {
    print_text(stdout, printable(options.job.name) + ": " + options.job.model.name + " on " +
                           std::to_string(data->info().train_size) + " training samples\n");
    options.on_finding = [](const train::SanityFinding& finding) {
      print_text(stdout, printable(train::finding_text(finding), true) + "\n");
      std::fflush(stdout);
    };
  }
  const double began = system_clock().monotonic_seconds();
  const auto findings = train::check_sanity(options, system_clock());
  const double seconds = system_clock().monotonic_seconds() - began;
  if (task.json) {
    std::fputs(train::findings_json(options.job.name, findings).c_str(), stdout);
  } else {
    print_text(stdout, train::findings_summary(findings, seconds) + "\n");
  }
  return train::all_sane(findings) ? kDone : kCheckFailed;
}

}  // namespace sinew::worker
