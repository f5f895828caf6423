#include "cli/data_manifest.h"

#include <cstdio>
#include <filesystem>

#include "base/size_text.h"
#include "cli/registry_place.h"

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
  const std::string path = run_directory + "/data.json";
  if (job.data.format == "library" || system_disk().exists(path)) return;
  try {
    write_durably(system_disk(), path, to_json(data_manifest_of(job, root)));
  } catch (const Error&) {  // the worker reports what is wrong with the data
  }
}

}  // namespace sinew::cli
