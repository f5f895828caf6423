// For tests: jobs with a command.
#pragma once

#include <gtest/gtest.h>

#include <string>

#include "spec/spec.h"

namespace sinew::jobs {

// A job whose command is `a {params.lr} {x}`, with the options in `yaml`.
inline spec::Job job_of(const std::string& yaml) {
  const spec::Reading reading = spec::read_job("command: [a, '{params.lr}', '{x}']\n" + yaml, "job");
  EXPECT_TRUE(reading.problems.empty()) << to_string(reading.problems[0]);
  return reading.job;
}

}  // namespace sinew::jobs
