// Child processes without a shell: started, watched, signalled, reaped, and never left behind.
//
// For cli/ (supervisor, chaos). A child has a process group of its own, so that a Ctrl-C at the terminal reaches its
// parent alone, and reads from /dev/null. What it started and left in that group is killed when it ends. Whoever starts
// children does so from its main thread: a child's death signal is sent when the *thread* that started it ends. Nothing
// here waits without a bound.
#pragma once

#include <sys/types.h>

#include <map>
#include <optional>
#include <string>
#include <vector>

namespace sinew {

// How a process ended: by itself with a code, or by a signal.
struct ProcessEnd {
  int code = 0;
  int signal = 0;  // 0: by itself
  bool operator==(const ProcessEnd&) const = default;
};
std::string to_string(const ProcessEnd& end);  // "ended with exit code 1", "killed by SIGKILL"
std::string signal_name(int signal);           // "SIGKILL"; "signal 77" where there is no name

// Of any process of this machine, by its number: nullopt once it is gone.
struct ProcessFacts {
  pid_t parent = 0;
  bool stopped = false;  // by a signal or a debugger
};
std::optional<ProcessFacts> process_facts(pid_t pid);

// Between fork and exec: every signal does again what it does by default, and none is held back.
void forget_signals();

// Of this machine. A process is known by it and its number: on another machine the same number is another process.
std::string host_name();

struct ProcessOptions {
  std::vector<std::string> command;                // the program's path, then its arguments
  std::map<std::string, std::string> environment;  // besides, or instead of, this process's own variables
  std::string output;                              // both outputs are appended to this file; empty: this process's own
  int death_signal = 0;                            // the kernel sends it to the child when its parent dies; 0: none
};

class Process {
 public:
  // Throws Error when the program can not be started; returns once it has been.
  explicit Process(const ProcessOptions& options);
  // A child that still runs is killed with its whole group, and reaped.
  ~Process();
  Process(Process&& other) noexcept;
  Process& operator=(Process&& other) noexcept;

  pid_t pid() const { return pid_; }
  // Readable (poll) as soon as the child has ended: for waiting for several things at once.
  int descriptor() const { return descriptor_; }
  // How it ended, once it has and for ever after; nullopt: it did not end within `seconds`.
  std::optional<ProcessEnd> wait(double seconds = 0);
  // To the child, or to its whole group. Nothing happens when it has ended; its number is never somebody else's.
  void send(int signal);
  void send_group(int signal);

 private:
  pid_t pid_ = 0;  // 0: moved from
  int descriptor_ = -1;
  std::optional<ProcessEnd> end_;
};

}  // namespace sinew
