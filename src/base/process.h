// Starts child processes without a shell, watches, signals and reaps them, and never leaves one behind.
//
// A child gets its own process group, so that a Ctrl-C at the terminal reaches only the parent. Its standard input is
// /dev/null. When the child ends, this class kills the processes that are left in its group. The kernel sends the death
// signal when the *thread* that started the child ends. So a program that uses death signals must start its children
// from a thread that outlives them. Every wait in this file has a time limit.
#pragma once

#include <sys/types.h>

#include <map>
#include <optional>
#include <string>
#include <vector>

namespace sinew {

// How a process ended: with an exit code, or by a signal. If the kernel killed the process with SIGKILL because it had
// used the CPU time of its hard limit, the signal is SIGXCPU.
struct ProcessEnd {
  int code = 0;
  int signal = 0;  // 0: the process returned `code`
  bool operator==(const ProcessEnd&) const = default;
};
std::string to_string(const ProcessEnd& end);  // "ended with exit code 1", "killed by SIGKILL"
std::string signal_name(int signal);           // "SIGKILL"; "signal 77" for a number without a name
std::string stopped_by(int signal);            // "stopped by SIGINT (Ctrl-C)"

// What the kernel knows about a process of this machine. process_facts returns nullopt if there is no such process.
struct ProcessFacts {
  pid_t parent = 0;
  bool stopped = false;  // true: a signal or a debugger has stopped the process
};
std::optional<ProcessFacts> process_facts(pid_t pid);

// From this call on, this process stays alive when its parent dies: it gives up the death signal that ProcessOptions
// gave it. The main thread must call it.
void outlive_parent();

// Resets all signals to their default action and unblocks them. Safe between fork and exec.
void forget_signals();

// Returns the environment of this process.
std::map<std::string, std::string> own_environment();
// Returns one environment variable, or "" if it is not set.
std::string own_variable(const char* name);

// Returns the name of this machine. A pid identifies a process only together with it.
std::string host_name();

struct ProcessOptions {
  std::vector<std::string> command;  // the program's path, then its arguments
  // Added to this process's environment; replaces variables of the same name.
  std::map<std::string, std::string> environment;
  std::string output;    // stdout and stderr are appended to this file; "": the child inherits them
  int death_signal = 0;  // the kernel sends this signal to the child when the parent dies; 0: it sends no signal
};

class Process {
 public:
  // Returns once the program runs. Throws Error if it cannot be started.
  explicit Process(const ProcessOptions& options);
  // Kills the child and its group if it still runs, and reaps it.
  ~Process();
  Process(Process&& other) noexcept;
  Process& operator=(Process&& other) noexcept;

  pid_t pid() const { return pid_; }
  // A pidfd: poll(2) finds it readable once the child has ended, so that a loop can wait for several events.
  int descriptor() const { return descriptor_; }
  // Waits at most `seconds` for the end of the child. Returns nullopt if it still runs. After the end, every call
  // returns the same result.
  std::optional<ProcessEnd> wait(double seconds = 0);
  // Signals the child, or its whole group. Does nothing once wait() has reported the end. So a signal never reaches a
  // later process with the same pid.
  void send(int signal);
  void send_group(int signal);

 private:
  pid_t pid_ = 0;  // 0 in an object that was moved from
  int descriptor_ = -1;
  std::optional<ProcessEnd> end_;
};

}  // namespace sinew
