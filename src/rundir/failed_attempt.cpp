// Reports an attempt that failed before the loop of the run could report it.
#include <utility>

#include "base/error.h"
#include "rundir/rundir.h"

namespace sinew::rundir {

std::string report_text(Disk& disk, const std::string& run_directory) {
  const std::string path = file_in(run_directory, kOutcomeFile);
  try {
    return disk.exists(path) ? read_text(disk, path) : "";
  } catch (const DiskError&) {
    return "";
  }
}

void report_failed_attempt(Disk& disk, const std::string& run_directory, const std::string& at_begin, Outcome failure) {
  const std::string path = file_in(run_directory, kOutcomeFile);
  try {
    if (disk.exists(path)) {
      const std::string now = report_text(disk, run_directory);
      if (now != at_begin) return;  // this attempt has written it
      if (auto earlier = parse_outcome(now)) {
        failure.earlier_status = earlier->earlier_status.empty() ? earlier->status : earlier->earlier_status;
        failure.steps = earlier->steps;
        failure.samples = earlier->samples;
        failure.epochs = earlier->epochs;
        failure.digest = std::move(earlier->digest);
        failure.best = std::move(earlier->best);
        failure.objective = std::move(earlier->objective);
        failure.last = std::move(earlier->last);
      }
    }
    write_durably(disk, path, outcome_json(failure));
  } catch (const DiskError&) {
  }
}

}  // namespace sinew::rundir
