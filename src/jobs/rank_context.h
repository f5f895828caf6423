// The command line and the environment of a rank. Pure.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "spec/spec.h"

namespace sinew::jobs {

// What one process of an attempt learns from its environment.
struct RankContext {
  int64_t rank = 0, attempt = 1;
  std::string run_directory;  // absolute
  std::string mark;           // the attempt's SINEW_JOB_ID, by which sweep() recognises its processes
  std::string resume_from;    // the newest complete checkpoint; empty: none
  std::string metrics_file;
  int master_port = 0;
  std::string server;  // URL of `sinew server`; empty: none
  std::string run_id;  // the id of the run at that server
};

// The command's words with their placeholders replaced.
std::vector<std::string> command_of(const spec::Job& job);

// The complete environment. `base` is the environment of sinew. It is overridden by defaults that help (unbuffered
// Python, number of threads), these by the job's env, and that by the variables that sinew sets.
std::map<std::string, std::string> environment_of(const spec::Job& job, const RankContext& context,
                                                  const std::map<std::string, std::string>& base);

}  // namespace sinew::jobs
