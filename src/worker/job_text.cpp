#include <fstream>
#include <iterator>

#include "base/error.h"
#include "base/process.h"
#include "worker/tasks.h"

namespace sinew::worker {
namespace {

std::string read_text(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  if (!file) throw Error("JOB_FILE_UNREADABLE", "cannot read " + path, "check the path");
  return {std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
}

}  // namespace

spec::Job read_job_text(const std::string& yaml, const std::string& name, const std::vector<std::string>& overrides) {
  const spec::Reading reading = spec::read_job(yaml, name, overrides, own_environment());
  std::string lines;
  for (const spec::Problem& problem : reading.problems) lines += to_string(problem) + "\n";
  if (!lines.empty()) throw JobRefused(lines);
  return reading.job;
}

spec::Job read_job_file(const std::string& path, const std::vector<std::string>& overrides) {
  return read_job_text(read_text(path), path, overrides);
}

}  // namespace sinew::worker
