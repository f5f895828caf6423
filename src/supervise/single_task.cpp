#include "supervise/single_task.h"

#include <unistd.h>

#include <csignal>
#include <cstdlib>
#include <filesystem>

#include "base/disk.h"
#include "base/error.h"
#include "rundir/rundir.h"

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

void give_new_end(const Programs& programs, const spec::Job& job, const std::string& run_directory,
                  const std::vector<std::string>& overrides, Clock& clock) {
  rundir::change_end(run_directory, job, clock, [&] {
    const bool own_code = !job.model.file.empty() || !job.loss.library.empty() || !job.data.library.empty();
    if (own_code || job.command.given() || !system_disk().exists(programs.worker)) return;
    const std::string file = rundir::file_in(run_directory, rundir::kResolvedFile);
    const auto [end, text] = output_of_task(programs, task::Inspect{file, overrides}, file);
    if (end != ProcessEnd{})
      throw Error("RUN_CANNOT_GO_ON", "the run was not changed, because it could not be trained in this way:\n" + text,
                  "mend what the message above names");
  });
}

}  // namespace sinew::supervise
