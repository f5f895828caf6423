// Private to exports/: what an export says about the model: where its weights come from, and what its inputs are.
#pragma once

#include <map>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>

#include "exports/graph.h"

namespace sinew::exports {

// Where the weights come from.
struct Origin {
  std::string job_sha256;                 // of the job as it was resolved when training began
  std::string run;                        // the run's id; empty if there is no run
  std::optional<int64_t> step;            // at which the weights were made
  std::string metric;                     // "val/accuracy 0.918 at step 844": by which the weights were chosen
  std::map<std::string, double> metrics;  // of these weights
};
Origin origin_of(const train::Trained& trained, const spec::Job& job, Disk& disk);

// Describes the inputs for programs that read files for the model: kind, shape, columns.
nlohmann::ordered_json input_facts(const train::LoadedModel& loaded);

// README.md of an export. `files`: name and purpose of each file. `usage`: code of Python.
std::string model_card(const train::LoadedModel& loaded, const Origin& origin,
                       const std::vector<std::pair<std::string, std::string>>& files, const std::string& usage,
                       const std::string& checked);

}  // namespace sinew::exports
