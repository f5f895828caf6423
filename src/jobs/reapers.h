// Starts the processes of one attempt, and the two reapers that watch them.
//
// sinew ── outer reaper ── inner reaper ── rank 0, rank 1 ... ── processes that the ranks start
//
// sinew and both reapers are subreapers: a process that leaves its parent stays a descendant of one of them. The three
// watch one another:
// - When the inner reaper ends, the kernel sends SIGKILL to the ranks.
// - When sinew ends, the inner reaper kills all of its own descendants.
// - When sinew or the inner reaper ends, the outer reaper kills all of its own descendants.
// - When both reapers have ended, sinew kills all of its own descendants.
//
// So two of the three may be killed at any time, and the third still kills all other processes. A process of the
// command can survive only if all three die at the same instant. As soon as another process takes the run's lock,
// sweep() finds the survivor by the SINEW_JOB_ID in its environment. sinew and the reapers hold that lock, so a run
// counts as running until all of its processes have ended.
//
// The calling process must have a single thread, because both reapers are forks that do not exec.
#pragma once

#include <sys/types.h>

#include <optional>
#include <string>
#include <vector>

#include "base/process.h"

namespace sinew::jobs {

struct RankStart {
  std::vector<std::string> command;
  std::vector<std::string> environment;  // NAME=value; the complete environment
  int output = -1, errors = -1;          // write ends of pipes
};

struct AttemptStart {
  std::string workdir;  // if empty, the working directory of this process
  std::vector<RankStart> ranks;
  std::vector<std::string> groups;  // cgroup directories that every rank enters
  std::vector<int> kept;            // descriptors that the reapers keep open (the run's lock)
};

// An event that the inner reaper reports.
struct ReaperEvent {
  enum class Kind { started, no_start, ended, gone };  // gone: no process of the attempt remains
  enum class Fault { program, workdir, group };
  Kind kind = Kind::gone;
  int rank = 0;
  ProcessEnd end;                // set if kind is ended
  int code = 0;                  // errno; set if kind is no_start
  Fault fault = Fault::program;  // set if kind is no_start: what could not be used
};

class RankProcesses {
 public:
  // Forks the reapers, which start the ranks, and closes this process's copies of the pipes' write ends. Throws Error
  // if the pipes to the reapers cannot be created. If a fork fails, next() returns the event no_start.
  explicit RankProcesses(const AttemptStart& start);
  // Kills the remaining processes and waits for their end, unless finish() was called.
  ~RankProcesses();
  RankProcesses(const RankProcesses&) = delete;
  RankProcesses& operator=(const RankProcesses&) = delete;

  int descriptor() const { return socket_; }  // readable when an event is waiting, or when the inner reaper has ended
  // Returns the next event, or nullopt if none is waiting. If the inner reaper was killed, the event is `gone`, and
  // lost() is true.
  std::optional<ReaperEvent> next();
  bool lost() const { return lost_; }
  void signal_ranks(int signal);  // sends the signal to the process groups of the ranks
  void kill_all();                // asks the inner reaper to kill all of its descendants
  // kills both reapers, so that the kernel kills the ranks; for a reaper that hangs or is suspended
  void kill_reapers();
  pid_t inner_reaper() const { return inner_reaper_; }  // 0: not yet known
  // Kills and reaps every descendant of this process that the attempt created. Call it after the event `gone`. Returns
  // false if a descendant still lives after `seconds`, for example because it is in an uninterruptible system call.
  bool finish(double seconds);

 private:
  std::vector<int> earlier_children_;
  int socket_ = -1, outer_pipe_ = -1;
  pid_t outer_reaper_ = 0, inner_reaper_ = 0;
  int fork_error_ = 0;  // errno of a failed fork, until next() has reported it
  bool lost_ = false, gone_ = false, waited_ = false, finished_ = false;
};

// Kills the processes that an earlier attempt left, and returns their number. `mark` is that attempt's SINEW_JOB_ID, by
// which the processes are found. Throws Error if a process survives, because no other attempt may run beside it. `mark`
// and `groups` come from a file that `owner` wrote. sweep() therefore kills only processes that `owner` may kill, even
// if the caller has more rights.
int sweep(const std::string& mark, std::vector<std::string> groups, uid_t owner, double seconds);

}  // namespace sinew::jobs
