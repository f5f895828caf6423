// What a command is told: its own words with parameters filled in, and its environment. Pure.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "spec/spec.h"

namespace sinew::jobs {

struct Seat {  // of one process of an attempt
  int64_t rank = 0, attempt = 1;
  std::string run_directory, mark;  // absolute
  std::string resume_from;          // the newest complete checkpoint; empty: none
  std::string metrics_file;
  int master_port = 0;
  std::string server;  // URL of `sinew server`; empty: none
  std::string run_id;  // by which that server knows the run
};

std::vector<std::string> command_of(const spec::Job& job);

// `base`: what sinew itself was started with. Later ones go before earlier ones: base, what only helps (unbuffered
// Python, threads), the job's env, what sinew tells.
std::map<std::string, std::string> environment_of(const spec::Job& job, const Seat& seat,
                                                  const std::map<std::string, std::string>& base);

}  // namespace sinew::jobs
