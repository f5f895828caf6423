// Reads the state of a command's run from another process.
#include <unistd.h>

#include <algorithm>
#include <cstdlib>

#include "base/disk.h"
#include "base/printable.h"
#include "base/proc.h"
#include "jobs/attempt_log.h"
#include "jobs/descendants.h"
#include "jobs/jobs.h"
#include "rundir/rundir.h"

namespace sinew::jobs {
namespace {

std::string command_line(pid_t pid) {
  std::string text = kernel_text("/proc/" + std::to_string(pid) + "/cmdline");
  std::ranges::replace(text, '\0', ' ');  // null bytes separate the arguments
  while (text.ends_with(' ')) text.pop_back();
  return printable(text);
}

int64_t rank_in(const std::string& environment) {
  const size_t at = environment.find(std::string("\0RANK=", 6));
  return at == std::string::npos ? 0 : std::atoll(environment.c_str() + at + 6);
}

}  // namespace

std::vector<CommandProcess> processes_of(const std::string& directory) {
  std::vector<CommandProcess> found;
  const std::vector<AttemptRecord> records = read_attempts(system_disk(), directory);
  if (records.empty() || records.back().reason) return found;
  const std::vector<ProcessRow> rows = processes_marked(all_processes(), records.back().mark);
  const auto ticks = static_cast<double>(::sysconf(_SC_CLK_TCK));
  for (const ProcessRow& row : rows) {
    const bool first = std::ranges::find(rows, row.parent, &ProcessRow::pid) == rows.end();
    found.push_back({row.pid, row.parent,
                     first ? rank_in(kernel_text("/proc/" + std::to_string(row.pid) + "/environ")) : -1,
                     static_cast<double>(row.cpu_ticks) / ticks, row.memory_bytes, command_line(row.pid)});
  }
  return found;
}

std::vector<AttemptSummary> attempts_of(const std::string& directory) {
  std::vector<AttemptSummary> summaries;
  for (const AttemptRecord& record : read_attempts(system_disk(), directory))
    summaries.push_back({record.attempt, record.began, record.seconds, record.reason.value_or(""), record.why});
  return summaries;
}

int clean_up(const std::string& directory, Clock& clock) {
  if (read_attempts(system_disk(), directory).empty()) return 0;
  const rundir::RunLock lock = lock_run(directory, clock);
  return static_cast<int>(AttemptLog(system_disk(), directory, clock).close_interrupted().size());
}

}  // namespace sinew::jobs
