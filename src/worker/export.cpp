// Implements `sinew export`, which writes a trained model for other programs.
#include <cstdio>

#include "base/disk.h"
#include "base/joined.h"
#include "base/printable.h"
#include "exports/exports.h"
#include "train/train.h"
#include "worker/tasks.h"

namespace sinew::worker {

int run_export(const task::Export& task) {
  const train::Trained trained = train::find_trained(task.model, system_disk());
  if (!trained.remark.empty()) std::fprintf(stderr, "warning: %s\n", printable(trained.remark).c_str());
  const spec::Job job = read_job_text(trained.job_yaml, trained.weights + ": job", {});
  const std::string directory = task.output.empty() ? job.name + "-" + task.format : task.output;
  const exports::Made made = exports::export_model(trained, job, {task.format, directory}, system_disk());
  std::printf("wrote %s of %s: %s\n%s\nuse it: %s\n", printable(directory).c_str(),
              printable(trained.description).c_str(), joined(made.files, ", ").c_str(), made.checked.c_str(),
              made.usage.c_str());
  return 0;
}

}  // namespace sinew::worker
