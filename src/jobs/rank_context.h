// Makes the command line and the environment of a rank (one process of a command). All functions are pure.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "spec/spec.h"

namespace sinew::jobs {

// The values that one process of an attempt gets through its environment.
struct RankContext {
  int64_t rank = 0, attempt = 1;
  std::string run_directory;  // absolute
  std::string mark;           // the attempt's SINEW_JOB_ID, by which sweep() finds its processes
  std::string resume_from;    // the newest complete checkpoint; may be empty
  std::string metrics_file;
  int master_port = 0;
  std::string server;  // URL of `sinew server`; may be empty
  std::string run_id;  // the id of the run at that server
};

// Returns the command's arguments with their placeholders replaced.
std::vector<std::string> command_of(const spec::Job& job);

// Returns the complete environment. It comes from four sources, of which later ones override earlier ones: `base` (the
// environment of sinew), helpful defaults (unbuffered Python, number of threads), the job's env, and the variables that
// sinew sets.
std::map<std::string, std::string> environment_of(const spec::Job& job, const RankContext& context,
                                                  const std::map<std::string, std::string>& base);

}  // namespace sinew::jobs
