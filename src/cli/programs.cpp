#include "cli/programs.h"

#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <filesystem>

#include "base/disk.h"
#include "base/error.h"
#include "base/machine.h"
#include "base/process.h"
#include "cli/options.h"
#include "registry/registry.h"
#include "report/report.h"
#include "spec/spec.h"

namespace sinew::cli {

std::string this_program() {
  constexpr const char* kSelf = "/proc/self/exe";
  std::error_code ignored;
  const std::filesystem::path path = std::filesystem::read_symlink(kSelf, ignored);
  return std::filesystem::equivalent(path, kSelf, ignored) ? path.string() : kSelf;
}

supervise::Programs programs() {
  const char* other = std::getenv("SINEW_WORKER");
  const bool given = other != nullptr && *other != '\0';
  const std::filesystem::path beside = std::filesystem::read_symlink("/proc/self/exe").parent_path() / "sinew-worker";
  return {this_program, given ? other : beside.string()};
}

void ignore_checkpoint_requests() {
  std::signal(SIGUSR1, SIG_IGN);
}

int become_worker(const task::Task& task, const std::string& label) {
  check_address_space();
  const task::TaskFile file(task);
  std::string worker = programs().worker, path = file.path_after_exec(), shown = label;
  char* const argv[] = {worker.data(), path.data(), shown.data(), nullptr};
  setenv("MKL_CBWR", "AUTO", 0);  // MKL then picks the same kernels for equal shapes; MKL reads this when it is loaded
  ignore_checkpoint_requests();   // until the worker has installed its handler
  execv(worker.c_str(), argv);
  throw Error("WORKER_NOT_STARTED", "cannot start " + worker + ": " + std::strerror(errno), "build it: ./dev build");
}

bool prepare_training(const std::string& job, std::vector<std::string>& overrides, const std::string& command,
                      const supervise::SandboxChoice& choice, const std::string& written,
                      std::optional<task::Sandbox>& sandbox) {
  auto read = load_training(job, overrides, command);
  if (!read) return false;
  registry::check_out_init_from(*read, overrides, "runs", own_variable("SINEW_STORE"));
  sandbox = supervise::sandbox_of(choice, {supervise::sources_of(*read, job, ""), written}, print_sentence);
  return true;
}

void print_sentence(const std::string& sentence) {
  report::print_beside_run("sinew: " + sentence);
}

Options& add_sandbox(Options& options, supervise::SandboxChoice& choice, bool links) {
  options
      .flag("--sandbox", choice.on,
            "confine the processes that run the model's code: no network but the links between workers, no writes but "
            "the results, no new processes; the default for what a confined run wrote and for files of a registry")
      .flag("--no-sandbox", choice.off, "do not confine them");
  return !links
             ? options
             : options.text("--sandbox-hosts", "LIST", choice.hosts,
                            "IP addresses of the run's other machines, with commas; confined workers reach no other");
}

std::string path_of_model(const std::string& root, const std::string& name) {
  return registry::path_of_model(name, root, own_variable("SINEW_STORE"));
}

std::string data_override(const std::string& word) {
  const size_t equals = word.find('=');
  if (equals == std::string::npos || equals == 0) {
    throw UsageError("OPTION_INVALID", "'" + word + "' is not key=value", "for example test.path=new.csv");
  }
  if (word.starts_with("data.")) return word;
  const std::string section = word.substr(0, word.find_first_of(".="));
  std::vector<std::string> sections;
  for (const spec::OptionInfo& option : spec::options()) sections.push_back(option.key.substr(0, option.key.find('.')));
  const bool other = std::find(sections.begin(), sections.end(), section) != sections.end();
  if (other)
    throw UsageError("OPTION_INVALID", "'" + word + "' is not about the data",
                     "a trained model keeps its other options: only data.* can change");
  return "data." + word;
}

}  // namespace sinew::cli
