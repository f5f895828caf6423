#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <iterator>

#include "base/error.h"
#include "base/exit_code.h"
#include "worker/tasks.h"

extern char** environ;

namespace sinew::worker {
namespace {

std::string read_text(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  if (!file) throw Error("JOB_FILE_UNREADABLE", "cannot read " + path, "check the path");
  return {std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
}

spec::Environment environment() {
  spec::Environment values;
  for (char** entry = environ; *entry != nullptr; ++entry) {
    const std::string text = *entry;
    if (const size_t at = text.find('='); at != std::string::npos) values[text.substr(0, at)] = text.substr(at + 1);
  }
  return values;
}

}  // namespace

spec::Job read_job_text(const std::string& yaml, const std::string& name, const std::vector<std::string>& overrides) {
  const spec::Reading reading = spec::read_job(yaml, name, overrides, environment());
  for (const spec::Problem& problem : reading.problems) std::fprintf(stderr, "%s\n", to_string(problem).c_str());
  if (!reading.problems.empty()) std::exit(kUsage);
  return reading.job;
}

spec::Job read_job_file(const std::string& path, const std::vector<std::string>& overrides) {
  return read_job_text(read_text(path), path, overrides);
}

}  // namespace sinew::worker
