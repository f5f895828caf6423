#include "base/signals.h"

#include <signal.h>
#include <sys/eventfd.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstdint>
#include <cstring>
#include <string>
#include <utility>

#include "base/clock.h"
#include "base/error.h"
#include "base/machine.h"

namespace sinew {
namespace {

Error no_descriptor(const std::string& purpose, int code) {
  return {"LIMIT_TOO_LOW", "cannot " + purpose + ": " + std::strerror(code), hint_of_limit(code)};
}

}  // namespace

bool parent_ignored(int signal) {
  struct sigaction action {};
  const bool of_terminals = signal == SIGINT || signal == SIGHUP;
  return of_terminals && ::sigaction(signal, nullptr, &action) == 0 && action.sa_handler == SIG_IGN;
}

// The kernel queues a blocked signal for signalfd even if the process ignores it. So the constructor leaves out ignored
// signals.
Signals::Signals(std::initializer_list<int> wanted) {
  sigemptyset(&set_);
  for (const int signal : wanted) {
    if (!parent_ignored(signal)) sigaddset(&set_, signal);
  }
  ::pthread_sigmask(SIG_BLOCK, &set_, nullptr);
  descriptor_ = ::signalfd(-1, &set_, SFD_NONBLOCK | SFD_CLOEXEC);
  if (descriptor_ < 0) throw no_descriptor("receive signals", errno);
  std::signal(SIGPIPE, SIG_IGN);
}

Signals::~Signals() {
  ::close(descriptor_);
}

void Signals::let_through() {
  while (next() != 0) continue;  // drops pending signals; the requests that they made are under way already
  ::pthread_sigmask(SIG_UNBLOCK, &set_, nullptr);
}

int Signals::next() {
  signalfd_siginfo info{};
  while (::read(descriptor_, &info, sizeof info) == sizeof info) {
    const auto signal = static_cast<int>(info.ssi_signo);
    if (!repeated_.repeats(signal, system_clock().monotonic_seconds())) return signal;
  }
  return 0;
}

SignalQueue::SignalQueue() : descriptor_(::eventfd(0, EFD_SEMAPHORE | EFD_NONBLOCK | EFD_CLOEXEC)) {
  if (descriptor_ < 0) throw no_descriptor("receive requests", errno);
}

SignalQueue::~SignalQueue() {
  ::close(descriptor_);
}

void SignalQueue::send(int signal) {
  const std::scoped_lock lock(mutex_);
  waiting_.push_back(signal);
  ::eventfd_write(descriptor_, 1);
}

int SignalQueue::next() {
  const std::scoped_lock lock(mutex_);
  if (waiting_.empty()) return 0;
  eventfd_t one = 0;
  ::eventfd_read(descriptor_, &one);
  const int signal = waiting_.front();
  waiting_.pop_front();
  return signal;
}

bool RepeatedStops::repeats(int signal, double seconds) {
  if (signal != SIGINT && signal != SIGTERM) return false;
  std::atomic<double>& counted = signal == SIGINT ? interrupted_ : terminated_;
  const double before = counted;
  if (before != kNever && seconds - before < kSeconds) return true;
  counted = seconds;
  return false;
}

bool StopRequests::add(int signal) {
  if (can_insist(signal)) ++insistent_;
  if (can_insist(signal) || !requested_) signal_ = signal;
  return !std::exchange(requested_, true);
}

}  // namespace sinew
