#include "cli/worker_process.h"

#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>

#include "base/disk.h"
#include "cli/commands.h"
#include "report/report.h"

namespace sinew::cli {

std::string this_program() {
  constexpr const char* kSelf = "/proc/self/exe";
  std::error_code trouble;
  const std::filesystem::path path = std::filesystem::read_symlink(kSelf, trouble);
  return std::filesystem::equivalent(path, kSelf, trouble) ? path.string() : kSelf;
}

std::string worker_program() {
  const char* other = std::getenv("SINEW_WORKER");
  if (other != nullptr && *other != '\0') return other;
  return (std::filesystem::read_symlink("/proc/self/exe").parent_path() / "sinew-worker").string();
}

int become_worker(std::vector<std::string> words) {
  const std::string worker = worker_program();
  words.insert(words.begin(), worker);
  std::vector<char*> argv;
  for (std::string& word : words) argv.push_back(word.data());
  argv.push_back(nullptr);
  setenv("MKL_CBWR", "AUTO", 0);  // same kernels for same shapes; read when the worker's libraries load
  execv(worker.c_str(), argv.data());
  throw Error("cannot start " + worker + ": " + std::strerror(errno), "build it: ./dev build");
}

std::string path_of_model(const std::string& root, const std::string& name) {
  return system_disk().exists(name) ? name : report::pick_run(root, name).directory;
}

std::string data_override(const std::string& word) {
  const size_t equals = word.find('=');
  if (equals == std::string::npos || equals == 0) {
    throw UsageError("'" + word + "' is no key=value", "for example --data test.path=new.csv");
  }
  if (word.starts_with("data.")) return word;
  const std::string section = word.substr(0, word.find_first_of(".="));
  std::vector<std::string> sections;
  for (const spec::OptionInfo& option : spec::options()) sections.push_back(option.key.substr(0, option.key.find('.')));
  const bool other = std::find(sections.begin(), sections.end(), section) != sections.end();
  if (other)
    throw UsageError("'" + word + "' is not about the data",
                     "a trained model keeps its other options: only data.* can change");
  return "data." + word;
}

}  // namespace sinew::cli
