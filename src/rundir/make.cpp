#include <unistd.h>

#include <cstdio>

#include "base/disk.h"
#include "base/error.h"
#include "base/random.h"
#include "rundir/rundir.h"

namespace sinew::rundir {
namespace {

// Replaces the job file of a run that ended before it wrote resolved.yaml. This run cannot be resumed, so the new job
// may differ from the old one.
void replace_job_file(const std::string& directory, const std::string& text) {
  const auto lock = RunLock::take(directory);
  if (!lock) throw UsageError("RUN_IN_USE", lock.error(), "wait for it to end, stop it, or name another --run-dir");
  system_disk().remove_file(file_in(directory, kDataManifest));  // it lists the files of the earlier job
  write_durably(system_disk(), file_in(directory, kJobFile), text);
}

}  // namespace

std::string file_in(const std::string& directory, std::string_view name) {
  std::string path = directory;
  if (!path.empty() && !path.ends_with('/')) path += '/';
  return path.append(name);
}

std::string evaluation_file(const std::string& split) {
  return "eval-" + split + ".json";
}

std::string new_run_directory(const std::string& root, const std::string& job_name, Clock& clock) {
  uint64_t entropy = static_cast<uint64_t>(clock.wall_seconds() * 1e6);
  entropy = random_key({entropy, static_cast<uint64_t>(::getpid())}).value;
  char id[8];
  std::snprintf(id, sizeof id, "%04llx", static_cast<unsigned long long>(entropy & 0xFFFF));
  return root + "/" + job_name + "/" + utc_compact(clock.wall_seconds()) + "-" + id;
}

void keep_job_file(const std::string& directory, const std::string& job, const std::vector<std::string>& overrides,
                   bool resume) {
  std::string text = job;
  for (const std::string& override_text : overrides) text += "# override: " + override_text + "\n";
  Disk& disk = system_disk();
  const std::string kept = file_in(directory, kJobFile);
  if (!disk.exists(kept)) {
    disk.make_directories(directory);
    return write_durably(disk, kept, text);
  }
  if (!is_run(directory)) return replace_job_file(directory, text);
  if (!resume) {
    throw UsageError("RUN_EXISTS", directory + " already holds a run",
                     "resume it: sinew resume " + directory + "; or name another --run-dir");
  }
  if (read_text(disk, kept) != text) {
    throw UsageError("RUN_JOB_CHANGED",
                     "the job file or its overrides changed since the run in " + directory + " began",
                     "resume the job as it was: sinew resume " + directory + "; or start anew in another --run-dir");
  }
}

void remove_abandoned_writes(Disk& disk, const std::string& run_directory) {
  for (const std::string& directory :
       {run_directory, file_in(run_directory, kCheckpoints), file_in(run_directory, kModel)}) {
    try {
      if (disk.exists(directory)) sinew::remove_abandoned_writes(disk, directory);
    } catch (const DiskError&) {
    }
  }
}

}  // namespace sinew::rundir
