#include "supervise/single_task.h"

#include <unistd.h>

#include <csignal>
#include <cstdlib>
#include <filesystem>

#include "base/disk.h"
#include "base/error.h"

namespace sinew::supervise {
namespace {

// A file for the output of a process. It is removed at the end.
class OutputFile {
 public:
  OutputFile() : path_(std::filesystem::temp_directory_path() / "sinew-output-XXXXXX") {
    const int file = ::mkstemp(path_.data());
    if (file < 0) throw Error("DISK_FAILED", "cannot make the file " + path_, "set TMPDIR to a folder with free space");
    ::close(file);
  }
  ~OutputFile() { ::unlink(path_.c_str()); }
  OutputFile(const OutputFile&) = delete;
  OutputFile& operator=(const OutputFile&) = delete;
  const std::string& path() const { return path_; }

 private:
  std::string path_;
};

}  // namespace

ProcessEnd run_task(const Programs& programs, const task::Task& task, const std::string& label,
                    const std::string& output) {
  const task::TaskFile file(task);
  ProcessOptions options;
  options.command = {programs.worker, file.path(), label};
  if (std::getenv("MKL_CBWR") == nullptr) options.environment["MKL_CBWR"] = "AUTO";  // as worker_start() says
  options.output = output;
  options.death_signal = SIGTERM;
  Process worker(options);
  while (true) {
    if (const auto end = worker.wait(3600)) return *end;
  }
}

TaskOutput output_of_task(const Programs& programs, const task::Task& task, const std::string& label) {
  const OutputFile output;
  const ProcessEnd end = run_task(programs, task, label, output.path());
  return {end, read_text(system_disk(), output.path())};
}

std::expected<std::string, std::string> try_first_step(const Programs& programs, const std::string& job) {
  if (!system_disk().exists(programs.worker)) return "";
  const auto [end, text] = output_of_task(programs, task::Inspect{job, {}}, job);
  if (end != ProcessEnd{}) return std::unexpected(text);
  const size_t step = text.find("\nstep "), loss = text.find("loss ", step);
  return loss == std::string::npos ? "" : text.substr(loss, text.find('\n', loss) - loss);
}

}  // namespace sinew::supervise
