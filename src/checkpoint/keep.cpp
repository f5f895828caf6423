// Lists checkpoints, chooses which ones to delete, and points the links `last` and `best` to them.
#include <algorithm>

#include "base/check.h"
#include "checkpoint/checkpoint.h"
#include "checkpoint/names.h"

namespace sinew::checkpoint {

std::vector<std::string> list(Disk& disk, const std::string& root) {
  std::vector<Step> steps;
  if (!disk.exists(root)) return {};
  for (const auto& entry : disk.list(root)) {
    const auto step = parse_step_name(entry.name);
    if (step && entry.directory) steps.push_back(*step);
  }
  std::sort(steps.begin(), steps.end());  // sorts by number, because names sort like numbers only up to 8 digits
  std::vector<std::string> paths;
  for (const Step step : steps) paths.push_back(join(root, step_name(step)));
  return paths;
}

Step step_of(const std::string& directory) {
  const auto step = parse_step_name(base_name(directory));
  SINEW_CHECK(step, directory);
  return *step;
}

std::vector<Step> to_delete(const std::vector<Step>& present, const std::vector<Step>& best, int64_t keep,
                            std::optional<Step> verified) {
  if (!verified || std::find(present.begin(), present.end(), *verified) == present.end()) return {};
  std::vector<Step> known;  // newest first; steps newer than `verified` may turn out damaged, so they do not count
  for (const Step step : present) {
    if (step <= *verified) known.push_back(step);
  }
  std::sort(known.begin(), known.end(), std::greater<>());
  known.erase(std::unique(known.begin(), known.end()), known.end());
  const auto kept = std::min(known.size(), static_cast<size_t>(std::max<int64_t>(keep, 1)));
  std::vector<Step> doomed;
  for (size_t i = kept; i < known.size(); ++i) {
    if (std::find(best.begin(), best.end(), known[i]) == best.end()) doomed.push_back(known[i]);
  }
  std::reverse(doomed.begin(), doomed.end());  // oldest first
  return doomed;
}

void point_link(Disk& disk, const std::string& root, const std::string& name, Step step) {
  const std::string temporary = disk.staging(join(root, "." + name + ".link"));
  disk.remove_file(temporary);  // left over if a writer died between the next two calls
  disk.symlink(step_name(step), temporary);
  disk.rename(temporary, join(root, name));
  disk.sync_directory(root);
}

}  // namespace sinew::checkpoint
