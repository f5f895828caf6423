// The processes of one attempt and the two that watch over them.
//
// sinew ── warden ── guardian ── rank 0, rank 1 ... ── whatever they start
//
// All three above the ranks are subreapers: however a process leaves its parent, it stays below one of them. The ranks
// get SIGKILL from the kernel when the guardian ends; the guardian kills everything below it when sinew ends, and so
// does the warden when either of the two ends; sinew does when both are gone. So any one or two of the three may be
// killed at any instant, and the third ends all the rest. Only when all three die in the same instant can something of
// the command be left: then sweep() finds it by its mark, as soon as anybody takes the run's lock. The lock itself is
// held by all three, so a run is `running` until everything of it is gone.
//
// For run.cpp, from a process with one thread: guardian and warden are forks that go on without an exec.
#pragma once

#include <sys/types.h>

#include <optional>
#include <string>
#include <vector>

#include "base/process.h"

namespace sinew::jobs {

struct RankStart {
  std::vector<std::string> command;
  std::vector<std::string> environment;  // NAME=value, all of it
  int output = -1, errors = -1;          // write ends of pipes
};

struct AttemptStart {
  std::string workdir;  // empty: this process's
  std::vector<RankStart> ranks;
  std::vector<std::string> groups;  // cgroup directories that every rank enters
  std::vector<int> kept;            // descriptors the watchers keep open (the run's lock)
};

// What the guardian tells.
struct GuardianWord {
  enum class Kind { started, no_start, ended, gone };
  enum class Fault { program, workdir, group };
  Kind kind = Kind::gone;
  int rank = 0;
  ProcessEnd end;                // ended
  int code = 0;                  // no_start: errno
  Fault fault = Fault::program;  // no_start: what could not be had
};

// Makes this process one that orphans come to, and that can wait for children. Once, before the first attempt.
void become_subreaper();

class Guarded {
 public:
  // Forks the watchers and closes the pipes' write ends here. Throws Error when there is no pipe to be had for them;
  // that there is no process is a word, no_start.
  explicit Guarded(const AttemptStart& start);
  // Kills what is left, and waits for it; unless finish() did so, in vain.
  ~Guarded();
  Guarded(const Guarded&) = delete;
  Guarded& operator=(const Guarded&) = delete;

  int descriptor() const { return socket_; }  // readable when there is a word, or the guardian is gone
  // The next word; nullopt: none yet. After the guardian was killed: `gone`, and lost() is true.
  std::optional<GuardianWord> next();
  bool lost() const { return lost_; }
  void send_all(int signal);  // to the process groups of the ranks
  void kill_all();            // SIGKILL to everything below
  void force();               // the same without the guardian's help, and to it: it may have been stopped
  pid_t guardian() const { return guardian_; }
  // After the word `gone`: everything below this process that this attempt brought is ended and reaped. False:
  // something does not die (a process in the middle of a call that can not be interrupted).
  bool finish(double seconds);

 private:
  std::vector<int> own_children_before_;
  int socket_ = -1, warden_line_ = -1;
  pid_t warden_ = 0, guardian_ = 0;
  int no_warden_ = 0;  // errno, to be told
  bool lost_ = false, gone_ = false, waited_ = false, finished_ = false;
};

// Ends what an earlier attempt with this mark left; how many processes that were. Throws Error when something of it
// does not end: no other attempt may run beside it. Mark and groups are believed as far as whoever wrote them, `owner`,
// could have ended it himself: the caller may be allowed more.
int sweep(const std::string& mark, std::vector<std::string> groups, uid_t owner, double seconds);

}  // namespace sinew::jobs
