// Computes the digests of the data that a job reads. The digests are cached below the root of the runs.
#pragma once

#include <string>

#include "registry/registry.h"
#include "spec/spec.h"

namespace sinew::cli {

// Both functions print a line to stderr before they read a lot of data.
registry::DataManifest data_manifest_of(const spec::Job& job, const std::string& root);
registry::DataManifest data_manifest_of_path(const std::string& path, const std::string& root);

// Writes data.json into a new run directory if the data can be read. An error never stops the run. Digests are cached
// below `root`; if `root` is empty, they are not cached.
void record_data(const spec::Job& job, const std::string& run_directory, const std::string& root);

}  // namespace sinew::cli
