// Reports an attempt that failed before its training loop could report it.
#include <algorithm>
#include <utility>

#include "base/error.h"
#include "base/exit_code.h"
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

void set_failed(Outcome& outcome, const std::string& error, const std::string& hint) {
  outcome.status = "failed";
  outcome.exit_code = kTrainingError;
  outcome.error = error;
  outcome.hint = hint;
}

std::optional<Outcome> report_failed_attempt(Disk& disk, const Attempt& attempt, const std::string& error,
                                             const std::string& hint, double now_wall_seconds) {
  Outcome failure;
  set_failed(failure, error, hint);
  failure.job = attempt.job;
  failure.started_wall_seconds = attempt.began_wall_seconds;
  failure.seconds = std::max(0.0, now_wall_seconds - attempt.began_wall_seconds);
  const std::string path = file_in(attempt.run_directory, kOutcomeFile);
  try {
    if (disk.exists(path)) {
      const std::string now = report_text(disk, attempt.run_directory);
      if (now != attempt.report_at_begin) return std::nullopt;  // this attempt has written it
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
    return failure;
  } catch (const Error&) {  // the disk fails, or another process has taken over the run
    return std::nullopt;
  }
}

}  // namespace sinew::rundir
