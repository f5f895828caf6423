#include "rundir/job_changes.h"

#include <algorithm>
#include <array>
#include <map>
#include <string_view>

#include "rundir/rundir.h"
#include "spec/spec.h"

namespace sinew::rundir {
namespace {

using Options = std::map<std::string, std::string>;

// Options that say where a run reads and keeps its files, or when it saves. They may change: the contents of the files
// are compared by their digests.
constexpr std::array<std::string_view, 14> kPlaces = {
    "data.train.path", "data.train.images", "data.train.labels", "data.val.path",       "data.val.images",
    "data.val.labels", "data.test.path",    "data.test.images",  "data.test.labels",    "data.library",
    "model.file",      "loss.library",      "checkpoint.mirror", "checkpoint.interval",
};

bool is_of_result(const std::string& key) {
  return !is_of_the_machine(key) && std::ranges::find(kPlaces, key) == kPlaces.end() &&
         !key.starts_with("checkpoint.keep");
}

// A text that this version cannot read as a job, for example one of a newer version, is compared as it stands.
Options options_of(const std::string& yaml) {
  const spec::Reading reading = spec::read_job(yaml, kResolvedFile);
  return flat_options(reading.problems.empty() ? spec::to_yaml(reading.job) : yaml);
}

}  // namespace

std::vector<OptionChange> job_changes(const std::string& before, const std::string& now) {
  std::vector<OptionChange> changes;
  if (before == now) return changes;
  const Options was = options_of(before), is = options_of(now);
  Options all = was;
  all.insert(is.begin(), is.end());
  const auto value = [](const Options& options, const std::string& key) {
    const auto found = options.find(key);
    return found == options.end() ? std::string("absent") : found->second.empty() ? "empty" : found->second;
  };
  for (const auto& [key, ignored] : all) {
    OptionChange change{key, value(was, key), value(is, key), is_of_result(key), is_of_the_end(key)};
    if (change.before != change.now) changes.push_back(std::move(change));
  }
  std::ranges::stable_partition(changes, &OptionChange::of_result);
  return changes;
}

bool changes_result(const std::vector<OptionChange>& changes) {
  return std::ranges::any_of(changes, &OptionChange::of_result);
}

std::string to_string(const std::vector<OptionChange>& changes) {
  constexpr size_t kShown = 10, kLongestValue = 80;
  const auto shortened = [](const std::string& value) {
    return value.size() <= kLongestValue ? value : value.substr(0, kLongestValue) + "...";
  };
  std::string text;
  for (size_t i = 0; i < std::min(changes.size(), kShown); ++i)
    text += (i == 0 ? "" : "; ") + changes[i].key + " was " + shortened(changes[i].before) + ", is " +
            shortened(changes[i].now);
  if (changes.size() > kShown) text += "; and " + std::to_string(changes.size() - kShown) + " more";
  return text;
}

}  // namespace sinew::rundir
