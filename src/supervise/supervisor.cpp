#include "supervise/supervisor.h"

#include "base/disk.h"
#include "base/error.h"
#include "base/process.h"
#include "base/shell_loop.h"
#include "rundir/rundir.h"
#include "supervise/coordinator_link.h"
#include "supervise/run_log.h"
#include "supervise/run_processes.h"
#include "supervise/supervisor_shell.h"

namespace sinew::supervise {
namespace {

constexpr double kTurnSeconds = 0.05;  // the longest sleep of the loop

}  // namespace

int supervise(const SupervisorOptions& options, SignalSource& signals, Clock& clock) {
  const std::string& directory = options.launch.run_directory;
  const auto lock = rundir::RunLock::take(directory);
  if (!lock) throw Error("RUN_IN_USE", lock.error(), "sinew ps " + directory + " shows its workers");
  RunLog log(directory, "supervisor", clock);
  // The view of an earlier attempt must not be used: all members of that attempt have ended.
  system_disk().remove_file(rundir::file_in(directory, rundir::kViewFile));

  const auto processes = machine_processes(
      {options.launch, options.job_name, options.minimum, options.workers_per_machine, options.listen, options.tls});
  const auto coordinator = file_coordinator_link(directory);
  SupervisorShellOptions shell;
  shell.workers = options.workers;
  shell.elsewhere = options.elsewhere;
  shell.hang_seconds = options.launch.hang_seconds;
  shell.host = host_name();
  shell.say = [&](const std::string& sentence) {
    log.write(sentence);
    if (options.say) options.say(sentence);
  };
  shell.log = [&](const std::string& sentence) { log.write(sentence); };
  SupervisorShell supervisor(shell, *processes, *coordinator, clock);
  return run_shell(supervisor, signals, kTurnSeconds);
}

}  // namespace sinew::supervise
