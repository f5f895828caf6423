// Computes the digests of the data that a job reads. The digests are cached below the root of the runs.
#pragma once

#include <string>

#include "registry/registry.h"
#include "spec/spec.h"

namespace sinew::cli {

// Both functions print a line to stderr before they read a lot of data.
registry::DataManifest data_manifest_of(const spec::Job& job, const std::string& root);
registry::DataManifest data_manifest_of_path(const std::string& path, const std::string& root);

// Writes data.json into a run directory that has no checkpoint, if the data can be read. An error of the data never
// stops the run. Throws Error if the directory is a study that began with other data. Digests are cached below `root`;
// if `root` is empty, they are not cached.
void record_data(const spec::Job& job, const std::string& run_directory, const std::string& root);

// Opens the data of the first fold of a cross-validation. Throws Error if it is wrong, before each fold fails for the
// same reason. Does nothing if a library provides the data.
void check_data_of_folds(const spec::Job& job);

}  // namespace sinew::cli
