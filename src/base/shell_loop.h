// Runs the loop of each part of the program that has child processes: the supervisor of a training, the leader of a
// study, the run of a command.
//
// A Shell is a thin layer that acts, around pure functions that decide; it is not a Unix shell. The loop delivers
// signals to the shell and gives it a turn. Then it sleeps until a signal arrives, a descriptor of the shell becomes
// readable, or the next turn is due.
#pragma once

#include <optional>
#include <vector>

#include "base/signals.h"

namespace sinew {

class Shell {
 public:
  virtual ~Shell() = default;
  virtual void on_signal(int signal) = 0;
  // Checks which children ended and what arrived, decides, and acts. Returns the exit code once the shell has nothing
  // more to do.
  virtual std::optional<int> turn() = 0;
  // Descriptors that end the loop's sleep when they become readable: those of child processes (pidfd), pipes and
  // sockets.
  virtual std::vector<int> descriptors() const = 0;
  // Returns the seconds until the shell's own next deadline; infinity if it has none. The loop sleeps no longer than
  // this.
  virtual double seconds_to_turn() const;
};

// Runs one round of the loop without the sleep. A simulation calls it at times that it chooses.
std::optional<int> shell_turn(Shell& shell, SignalSource& signals);

// Runs the shell on the calling thread until it finishes, and returns its exit code. The shell gets a turn at least
// every `turn_seconds`.
int run_shell(Shell& shell, SignalSource& signals, double turn_seconds);

}  // namespace sinew
