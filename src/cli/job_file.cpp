// Reads the job file that a command line names.
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <memory>

#include "base/process.h"
#include "cli/commands.h"

namespace sinew::cli {
namespace {

// One byte more than a job file may have, so that the parser sees and reports a file that is too large. The limit also
// ends the reading of endless files, such as /dev/zero.
constexpr size_t kMostBytes = (1 << 20) + 1;

}  // namespace

std::string read_job_file(const std::string& path) {
  const auto close = [](std::FILE* file) {
    if (file != nullptr && file != stdin) std::fclose(file);
  };
  const std::unique_ptr<std::FILE, decltype(close)> file(path == "-" ? stdin : std::fopen(path.c_str(), "rb"), close);
  const auto fail = [&](int code) {
    const bool folder = code == EISDIR;
    throw UsageError("JOB_UNREADABLE", "cannot read the job file '" + path + "': " + std::strerror(code),
                     folder ? "name the file in it, for example " + path + "/job.yaml"
                            : "check the path and its permissions; 'sinew init DATA' makes a job file");
  };
  if (!file) fail(errno);
  std::string text(kMostBytes, '\0');
  text.resize(std::fread(text.data(), 1, text.size(), file.get()));
  if (std::ferror(file.get()) != 0) fail(errno);
  return text;
}

std::optional<spec::Job> load_job(const std::string& path, const std::vector<std::string>& overrides) {
  return read_job_text(read_job_file(path), job_file_name(path), overrides);
}

std::string job_file_name(const std::string& path) {
  return path == "-" ? "<stdin>" : path;
}

std::optional<spec::Job> read_job_text(const std::string& text, const std::string& name,
                                       const std::vector<std::string>& overrides) {
  spec::Reading reading = spec::read_job(text, name, overrides, own_environment());
  if (reading.problems.empty()) return std::move(reading.job);
  for (const spec::Problem& problem : reading.problems) print_text(stderr, to_string(problem) + "\n");
  const size_t count = reading.problems.size();
  print_text(stderr, name + ": " + std::to_string(count) + (count == 1 ? " problem\n" : " problems\n"));
  return std::nullopt;
}

std::optional<spec::Job> load_training(const std::string& path, const std::vector<std::string>& overrides,
                                       const std::string& what) {
  auto job = load_job(path, overrides);
  if (job && job->command.given())
    throw UsageError("JOB_IS_A_COMMAND", path + " runs a command, and " + what + " is for trainings",
                     "sinew train " + path + " runs it");
  return job;
}

}  // namespace sinew::cli
