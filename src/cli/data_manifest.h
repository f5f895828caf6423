// The data a job reads, by digest; what was computed is remembered below the root of the runs.
#pragma once

#include <string>

#include "registry/registry.h"
#include "spec/spec.h"

namespace sinew::cli {

// Says on stderr when much has to be read first.
registry::DataManifest data_manifest_of(const spec::Job& job, const std::string& root);
registry::DataManifest data_manifest_of_path(const std::string& path, const std::string& root);

// Writes data.json into a run directory that begins, where its data can be looked at; a run is never refused for it.
// `root` is where digests are remembered; empty: nowhere.
void record_data(const spec::Job& job, const std::string& run_directory, const std::string& root);

}  // namespace sinew::cli
