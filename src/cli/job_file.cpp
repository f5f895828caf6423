// From a path on the command line to a job, for every command that takes one.
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <memory>

#include "cli/commands.h"

extern char** environ;

namespace sinew::cli {
namespace {

// A little more than a job file may be: the reader then says that it is too large. Never the whole of /dev/zero.
constexpr size_t kMostBytes = (1 << 20) + 1;

std::string read_text(const std::string& path) {
  const auto close = [](std::FILE* file) {
    if (file != nullptr && file != stdin) std::fclose(file);
  };
  const std::unique_ptr<std::FILE, decltype(close)> file(path == "-" ? stdin : std::fopen(path.c_str(), "rb"), close);
  const auto fail = [&](int code) {
    const bool folder = code == EISDIR;
    throw UsageError("cannot read the job file '" + path + "': " + std::strerror(code),
                     folder ? "name the file in it, for example " + path + "/job.yaml"
                            : "check the path and its permissions; 'sinew init DATA' makes a job file");
  };
  if (!file) fail(errno);
  std::string text(kMostBytes, '\0');
  text.resize(std::fread(text.data(), 1, text.size(), file.get()));
  if (std::ferror(file.get()) != 0) fail(errno);
  return text;
}

spec::Environment environment() {
  spec::Environment variables;
  for (char** entry = environ; entry != nullptr && *entry != nullptr; ++entry) {
    const std::string text = *entry;
    const size_t equals = text.find('=');
    if (equals != std::string::npos) variables.emplace(text.substr(0, equals), text.substr(equals + 1));
  }
  return variables;
}

}  // namespace

std::optional<spec::Job> load_job(const std::string& path, const std::vector<std::string>& overrides) {
  return read_job_text(read_text(path), path == "-" ? "<stdin>" : path, overrides);
}

std::optional<spec::Job> read_job_text(const std::string& text, const std::string& name,
                                       const std::vector<std::string>& overrides) {
  spec::Reading reading = spec::read_job(text, name, overrides, environment());
  if (reading.problems.empty()) return std::move(reading.job);
  for (const spec::Problem& problem : reading.problems) std::fprintf(stderr, "%s\n", to_string(problem).c_str());
  const size_t count = reading.problems.size();
  std::fprintf(stderr, "%s: %zu problem%s\n", name.c_str(), count, count == 1 ? "" : "s");
  return std::nullopt;
}

std::optional<spec::Job> load_training(const std::string& path, const std::vector<std::string>& overrides,
                                       const std::string& what) {
  auto job = load_job(path, overrides);
  if (job && job->command.given())
    throw UsageError(path + " runs a command, and " + what + " is for trainings", "sinew train " + path + " runs it");
  return job;
}

bool print_help_if_asked(const Arguments& arguments, const char* help) {
  for (const std::string& argument : arguments) {
    if (argument == "--help" || argument == "-h") {
      std::fputs(help, stdout);
      return true;
    }
  }
  return false;
}

}  // namespace sinew::cli
