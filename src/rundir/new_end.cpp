// Gives a run another end: writes the options of the end into its resolved.yaml, and records that a user wanted them.
#include <algorithm>
#include <array>
#include <nlohmann/json.hpp>
#include <sstream>

#include "base/disk.h"
#include "base/error.h"
#include "base/json_text.h"
#include "rundir/rundir.h"
#include "spec/spec.h"

namespace sinew::rundir {
namespace {

constexpr std::array<const char*, 4> kOfTheEnd = {"trainer.max_duration", "early_stopping.patience",
                                                  "early_stopping.min_delta", "objective"};

// Returns `now`, the text of a resolved.yaml, with the comments of those lines of `before` that did not change.
std::string with_comments_of(const std::string& before, const std::string& now) {
  std::vector<std::string> known;
  std::istringstream old_lines(before), new_lines(now);
  for (std::string line; std::getline(old_lines, line);) known.push_back(line);
  std::string text;
  auto next = known.begin();
  for (std::string line; std::getline(new_lines, line);) {
    const auto same = std::find_if(next, known.end(), [&](const std::string& old_line) {
      return old_line == line || old_line.starts_with(line + "  # ");
    });
    if (same != known.end()) next = same + 1;
    text += (same == known.end() ? line : *same) + "\n";
  }
  return text;
}

// Throws UsageError if one of the changes must not be made to a run that goes on.
void check_end_changes(const std::vector<OptionChange>& changes) {
  for (const OptionChange& change : changes) {
    if (!change.of_result || change.of_end) continue;
    throw UsageError("OPTION_INVALID", "a run that goes on keeps its " + change.key + ", which is " + change.before,
                     "trainer.max_duration, the options of budget, early_stopping.patience, "
                     "early_stopping.min_delta and objective may change; to train with other options, start a new run "
                     "with model.init_from");
  }
}

}  // namespace

bool is_of_the_end(const std::string& key) {
  return std::ranges::find(kOfTheEnd, key) != kOfTheEnd.end();
}

void change_end(const std::string& directory, const spec::Job& job, Clock& clock,
                const std::function<void()>& before_writing) {
  const auto lock = RunLock::take(directory);
  if (!lock)
    throw UsageError("RUN_IN_USE", lock.error(), "stop it first: sinew stop " + directory + "; then resume it");
  Disk& disk = system_disk();
  const std::string resolved = file_in(directory, kResolvedFile), records = file_in(directory, kEndsFile);
  const std::string before = read_text(disk, resolved);
  const std::string now = with_comments_of(before, spec::to_yaml(job));
  const std::vector<OptionChange> changes = job_changes(before, now);
  check_end_changes(changes);
  if (changes.empty()) return;
  before_writing();
  std::string text = disk.exists(records) ? read_text(disk, records) : "";
  for (const OptionChange& change : changes) {
    if (!change.of_end) continue;
    const nlohmann::json line{
        {"time", utc_iso(clock.wall_seconds())}, {"option", change.key}, {"was", change.before}, {"is", change.now}};
    text += dump_json(line) + "\n";
  }
  // The record comes first: a resolved.yaml without it would be refused.
  write_durably(disk, records, text);
  write_durably(disk, resolved, now);
}

bool user_wanted_end(Disk& disk, const std::string& directory, const std::string& key, const std::string& value) {
  const std::string records = file_in(directory, kEndsFile);
  if (!disk.exists(records)) return false;
  std::istringstream lines(read_text(disk, records));
  for (std::string line; std::getline(lines, line);) {
    const auto record = nlohmann::json::parse(line, nullptr, /*allow_exceptions=*/false);
    if (record.is_object() && record.value("option", nlohmann::json()) == key &&
        record.value("is", nlohmann::json()) == value)
      return true;
  }
  return false;
}

}  // namespace sinew::rundir
