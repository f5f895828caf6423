// Reads the folds of a cross-validation, each of which is a run.
#include <algorithm>
#include <charconv>
#include <set>

#include "base/disk.h"
#include "report/curves.h"
#include "rundir/rundir.h"

namespace sinew::report {
namespace {

constexpr const char* kFold = "data.split.fold";

std::optional<int64_t> number_in(const std::map<std::string, std::string>& options, const std::string& key) {
  const auto found = options.find(key);
  if (found == options.end()) return std::nullopt;
  const std::string& text = found->second;
  int64_t number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  return error == std::errc() && end == text.data() + text.size() ? std::optional(number) : std::nullopt;
}

}  // namespace

std::vector<FoldRun> fold_runs(const std::string& directory, const std::map<std::string, std::string>& options) {
  if (number_in(options, "data.split.folds").value_or(0) == 0 || number_in(options, kFold)) return {};
  std::vector<FoldRun> folds;
  const std::string trials = rundir::file_in(directory, rundir::kTrials);
  if (!system_disk().exists(trials)) return {};
  for (const Disk::Entry& entry : system_disk().list(trials)) {
    auto run = read_run(rundir::file_in(trials, entry.name));
    if (!run) continue;
    if (const auto fold = number_in(run->options, kFold)) folds.push_back({*fold, std::move(*run)});
  }
  std::ranges::sort(folds, {}, &FoldRun::fold);
  return folds;
}

std::vector<std::string> metrics_of_folds(const std::vector<rundir::FoldResult>& folds) {
  std::set<std::string> names;
  for (const rundir::FoldResult& fold : folds) {
    for (const auto& [name, value] : fold.metrics) names.insert(name);
  }
  std::vector<std::string> rows(names.begin(), names.end());
  std::ranges::stable_partition(rows, [](const std::string& name) { return name.starts_with("val/"); });
  return rows;
}

void take_folds(RunSummary& run) {
  for (const auto& [fold, training] : fold_runs(run.directory, run.options)) {
    rundir::FoldResult& result = run.folds.emplace_back();
    result = {fold, std::string(rundir::kTrials) + "/" + training.id, training.status, {}};
    for (const auto& [name, value] : training.last) {
      if (name.starts_with("val/") || name.starts_with("test/")) result.metrics[name] = value;
    }
    run.steps += training.steps;
    run.samples += training.samples;
  }
}

}  // namespace sinew::report
