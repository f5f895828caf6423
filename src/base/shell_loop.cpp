#include "base/shell_loop.h"

#include <poll.h>

namespace sinew {

std::optional<int> shell_turn(Shell& shell, SignalSource& signals) {
  while (const int signal = signals.next()) shell.on_signal(signal);
  return shell.turn();
}

int run_shell(Shell& shell, SignalSource& signals, double turn_seconds) {
  while (true) {
    if (const auto code = shell_turn(shell, signals)) return *code;
    std::vector<pollfd> all = {{signals.descriptor(), POLLIN, 0}};
    for (const int descriptor : shell.descriptors()) all.push_back({descriptor, POLLIN, 0});
    ::poll(all.data(), all.size(), static_cast<int>(turn_seconds * 1000));
  }
}

}  // namespace sinew
