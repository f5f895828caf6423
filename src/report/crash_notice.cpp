#include "report/crash_notice.h"

#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <csignal>
#include <cstring>
#include <string_view>

#include "base/printable.h"
#include "report/report.h"

namespace sinew::report {
namespace {

struct CrashSignal {
  int number;
  std::string_view name;
};
constexpr std::array<CrashSignal, 5> kCrashSignals = {
    {{SIGSEGV, "SIGSEGV"}, {SIGBUS, "SIGBUS"}, {SIGFPE, "SIGFPE"}, {SIGILL, "SIGILL"}, {SIGABRT, "SIGABRT"}}};

// A signal handler can use only memory that is there already.
std::array<char, 4096> way_out;
std::atomic<size_t> way_out_size{0};
std::atomic<bool> live_line_shown{false}, crash_told{false};

// Safe to call from a signal handler.
void put(int descriptor, std::string_view text) {
  while (!text.empty()) {
    const ssize_t taken = ::write(descriptor, text.data(), text.size());
    if (taken <= 0) return;
    text.remove_prefix(static_cast<size_t>(taken));
  }
}

// SA_RESETHAND has restored the signal's default effect.
void on_crash(int signal) {
  if (!crash_told.exchange(true)) {
    leave_live_line();
    put(STDERR_FILENO, "sinew: the training was killed by ");
    for (const CrashSignal& known : kCrashSignals) {
      if (known.number == signal) put(STDERR_FILENO, known.name);
    }
    put(STDERR_FILENO, {way_out.data(), way_out_size});
  }
  ::raise(signal);
}

bool has_handler(int signal, void (*handler)(int)) {
  struct sigaction now {};
  return ::sigaction(signal, nullptr, &now) == 0 && (now.sa_flags & SA_SIGINFO) == 0 && now.sa_handler == handler;
}

}  // namespace

void tell_crash(const std::string& run_directory) {
  const std::string text = "\n  try: sinew resume " + shell_quoted(run_directory) + "\n";
  if (text.size() > way_out.size()) return;
  std::copy(text.begin(), text.end(), way_out.begin());
  way_out_size = text.size();
  crash_told = false;
  struct sigaction action {};
  action.sa_handler = on_crash;
  action.sa_flags = SA_RESETHAND | SA_NODEFER | SA_ONSTACK;
  for (const CrashSignal& known : kCrashSignals) {
    if (has_handler(known.number, SIG_DFL)) ::sigaction(known.number, &action, nullptr);
  }
}

void forget_crash() {
  for (const CrashSignal& known : kCrashSignals) {
    if (has_handler(known.number, on_crash)) std::signal(known.number, SIG_DFL);
  }
}

void show_live_line(bool shown) {
  live_line_shown = shown;
}

void leave_live_line() {
  if (live_line_shown.exchange(false)) put(STDOUT_FILENO, "\n");
}

}  // namespace sinew::report
