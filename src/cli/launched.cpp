#include "cli/launched.h"

#include <optional>

#include "base/error.h"
#include "cli/group_file.h"
#include "cli/group_line.h"

namespace sinew::cli {
namespace {

constexpr double kLookSeconds = 0.1;
constexpr double kAnswerSeconds = 1;

// The file may be that of an earlier attempt, so its word is not enough: the coordinator has to answer.
bool is_up(const GroupFile& file) {
  return !file.over && !file.url.empty() && GroupLine(file.url, file.secret, kAnswerSeconds).status().has_value();
}

int64_t life_of(const std::optional<GroupFile>& file) {
  return file ? file->life : -1;
}

// The exit code of a run that began and ended meanwhile; nullopt: its coordinator is up.
std::optional<int> wait_for_coordinator(const std::string& run_directory, double wait_seconds, Clock& clock) {
  const int64_t before = life_of(read_group_file(run_directory));
  const double end = clock.monotonic_seconds() + wait_seconds;
  while (true) {
    const auto file = read_group_file(run_directory);
    if (file && is_up(*file)) return std::nullopt;
    if (file && file->over && file->life != before) return static_cast<int>(*file->over);
    if (clock.monotonic_seconds() >= end) break;
    clock.sleep_seconds(kLookSeconds);
  }
  throw Error("no coordinator came up in " + run_directory + " within " +
                  std::to_string(static_cast<int64_t>(wait_seconds)) + " s",
              "look at what rank 0 printed: it starts one; all machines must see the same --run-dir, and reach the "
              "address it listens on (--listen); --wait SECONDS waits longer");
}

}  // namespace

int take_part(const GroupWork& work, int64_t sharers, double wait_seconds, Clock& clock) {
  if (const auto code = wait_for_coordinator(work.run_directory, wait_seconds, clock)) return *code;
  const auto make = [&](bool later) {
    const auto file = group_file_now(work.run_directory);
    return group_worker(work, file ? file->url : "", later, sharers);
  };
  return keep_worker("sinew train", work.run_directory, make, clock);
}

}  // namespace sinew::cli
