// Implements `sinew check`, which tries a job for some seconds and judges it.
#include <cstdio>

#include "base/clock.h"
#include "base/exit_code.h"
#include "base/printable.h"
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
    std::printf("%s: %s on %lld training samples\n", printable(options.job.name).c_str(),
                options.job.model.name.c_str(), static_cast<long long>(data->info().train_size));
    options.on_finding = [](const train::SanityFinding& finding) {
      std::printf("%s\n", printable(train::finding_text(finding), true).c_str());
      std::fflush(stdout);
    };
  }
  const double began = system_clock().monotonic_seconds();
  const auto findings = train::check_sanity(options, system_clock());
  const double seconds = system_clock().monotonic_seconds() - began;
  if (task.json) {
    std::fputs(train::findings_json(options.job.name, findings).c_str(), stdout);
  } else {
    std::printf("%s\n", train::findings_summary(findings, seconds).c_str());
  }
  return train::all_sane(findings) ? kDone : kCheckFailed;
}

}  // namespace sinew::worker
