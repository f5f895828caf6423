#include "base/shell_loop.h"

#include <poll.h>

#include <algorithm>
#include <cmath>
#include <limits>

namespace sinew {

double Shell::seconds_to_turn() const {
  return std::numeric_limits<double>::infinity();
}

std::optional<int> shell_turn(Shell& shell, SignalSource& signals) {
  while (const int signal = signals.next()) shell.on_signal(signal);
  return shell.turn();
}

int run_shell(Shell& shell, SignalSource& signals, double turn_seconds) {
  while (true) {
    if (const auto code = shell_turn(shell, signals)) return *code;
    std::vector<pollfd> all = {{signals.descriptor(), POLLIN, 0}};
    for (const int descriptor : shell.descriptors()) all.push_back({descriptor, POLLIN, 0});
    const double seconds = std::max(0.0, std::min(turn_seconds, shell.seconds_to_turn()));
    const auto milliseconds = static_cast<int>(std::ceil(seconds * 1000));
    ::poll(all.data(), all.size(), milliseconds);
  }
}

}  // namespace sinew
