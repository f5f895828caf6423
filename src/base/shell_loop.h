// The loop around each part of the program that runs child processes: the supervisor of a training, the leader of a
// study, the run of a command.
//
// A Shell (here the shell around pure decisions, not a Unix shell) acts; pure functions elsewhere decide what it does.
// The loop delivers signals, lets the shell take a turn, and sleeps until a signal arrives, a descriptor of the shell
// becomes readable, or a turn is due.
#pragma once

#include <optional>
#include <vector>

#include "base/signals.h"

namespace sinew {

class Shell {
 public:
  virtual ~Shell() = default;
  virtual void on_signal(int signal) = 0;
  // Checks which children ended and what arrived, decides, and acts. Returns the exit code once the shell has finished.
  virtual std::optional<int> turn() = 0;
  // Descriptors that end the loop's sleep when they become readable: of child processes (pidfd), pipes, sockets.
  virtual std::vector<int> descriptors() const = 0;
  // The seconds until the shell's own next deadline; infinity if it has none. The loop sleeps no longer than this.
  virtual double seconds_to_turn() const;
};

// One round of the loop without the sleep. A simulation calls it at the times it chooses.
std::optional<int> shell_turn(Shell& shell, SignalSource& signals);

// Runs the shell on the calling thread until it finishes, and returns its exit code. A turn comes at least every
// `turn_seconds`.
int run_shell(Shell& shell, SignalSource& signals, double turn_seconds);

}  // namespace sinew
