// Implements the part of `sinew inspect` that needs libtorch.
#include <cstdio>

#include "base/printable.h"
#include "model/model.h"
#include "train/train.h"
#include "worker/tasks.h"

namespace sinew::worker {
namespace {

bool is_job(const std::string& path) {
  return path.ends_with(".yaml") || path.ends_with(".yml") || path.ends_with(".json");
}

// `line` holds a kind, a name and a text, separated by tabs.
void print(const std::string& line) {
  const size_t first = line.find('\t'), second = line.find('\t', first + 1);
  std::printf("%-11s %-24s %s\n", line.substr(0, first).c_str(),
              printable(line.substr(first + 1, second - first - 1)).c_str(),
              printable(line.substr(second + 1), true).c_str());
}

}  // namespace

int run_inspect(const task::Inspect& task) {
  const std::string& path = task.file;
  const model::FileReport report =
      is_job(path) ? train::inspect_job(read_job_file(path, task.overrides)) : model::inspect_file(path);
  for (const std::string& line : report.lines) print(line);
  for (const std::string& problem : report.problems) std::printf("problem     %s\n", printable(problem, true).c_str());
  std::printf("%s\n", report.problems.empty() ? "it can be trained here" : "it cannot be trained here");
  return report.problems.empty() ? 0 : 4;
}

}  // namespace sinew::worker
