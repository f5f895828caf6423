#include "base/signals.h"

#include <signal.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include <csignal>

namespace sinew {
namespace {

// One that is held back is kept for us even where it is ignored.
bool is_to_be_ignored(int signal) {
  struct sigaction action {};
  const bool of_terminals = signal == SIGINT || signal == SIGHUP;
  return of_terminals && ::sigaction(signal, nullptr, &action) == 0 && action.sa_handler == SIG_IGN;
}

}  // namespace

Signals::Signals(std::initializer_list<int> wanted) {
  sigemptyset(&set_);
  for (const int signal : wanted) {
    if (!is_to_be_ignored(signal)) sigaddset(&set_, signal);
  }
  ::pthread_sigmask(SIG_BLOCK, &set_, nullptr);
  descriptor_ = ::signalfd(-1, &set_, SFD_NONBLOCK | SFD_CLOEXEC);
  std::signal(SIGPIPE, SIG_IGN);
}

Signals::~Signals() {
  ::close(descriptor_);
}

void Signals::let_through() const {
  while (next() != 0) continue;  // those that came already were heard
  ::pthread_sigmask(SIG_UNBLOCK, &set_, nullptr);
}

int Signals::next() const {
  signalfd_siginfo info{};
  return ::read(descriptor_, &info, sizeof info) == sizeof info ? static_cast<int>(info.ssi_signo) : 0;
}

}  // namespace sinew
