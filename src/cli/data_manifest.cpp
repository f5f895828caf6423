#include "cli/data_manifest.h"

#include <cstdio>
#include <filesystem>

#include "base/disk.h"
#include "base/printable.h"
#include "base/size_text.h"
#include "cli/registry_place.h"
#include "data/data.h"
#include "rundir/rundir.h"
#include "study/study.h"

namespace sinew::cli {
namespace {

constexpr int64_t kMuch = int64_t{1} << 30;  // reading this many bytes takes some seconds

// Sets a cache for digests below `root`, unless `root` does not exist: a command that only reads must create no
// directory.
registry::ManifestOptions options_below(const std::string& root) {
  registry::ManifestOptions options;
  std::error_code code;
  if (std::filesystem::is_directory(root, code)) {
    std::filesystem::create_directory(root + "/.sinew", code);
    if (!code) options.cache = root + "/.sinew/data-digests.jsonl";
  }
  options.before_reading = [](int64_t bytes) {
    if (bytes >= kMuch)
      std::fprintf(stderr, "reading %s of data for its digest; once, then it is remembered\n",
                   size_text(bytes).c_str());
  };
  return options;
}

}  // namespace

registry::DataManifest data_manifest_of(const spec::Job& job, const std::string& root) {
  return registry::manifest_of_job(job, options_below(root));
}

registry::DataManifest data_manifest_of_path(const std::string& path, const std::string& root) {
  return registry::manifest_of_path(path, options_below(root));
}

void record_data(const spec::Job& job, const std::string& run_directory, const std::string& root) {
  if (job.data.format == "library") return;
  Disk& disk = system_disk();
  const std::string path = run_directory + "/data.json";
  try {
    const std::string before = disk.exists(path) ? read_text(disk, path) : "";
    const std::string checkpoints = rundir::file_in(run_directory, rundir::kCheckpoints);
    const bool begun = disk.exists(checkpoints) && !disk.list(checkpoints).empty();
    // A run that has a checkpoint compares the data with it, and refuses other data itself.
    if (!before.empty() && begun) return;
    const std::string now = to_json(data_manifest_of(job, root));
    if (before == now) return;
    if (before.empty() || !study::is_study(disk, run_directory)) return write_durably(disk, path, now);
  } catch (const Error&) {  // the worker reports what is wrong with the data
    return;
  }
  throw Error("TRAIN_DATA_CHANGED",
              run_directory + ": the data has changed since this study began, so its trainings could not be compared",
              "restore the data, or begin another study" +
                  (rundir::is_run(run_directory) ? "; what changed: sinew data status " + shell_quoted(run_directory)
                                                 : std::string()));
}

void check_data_of_folds(const spec::Job& job) {
  if (job.data.format == "library") return;
  spec::DataOptions first = job.data;
  first.fold = 0;
  data::open_dataset(first, job.trainer.seed);
}

}  // namespace sinew::cli
