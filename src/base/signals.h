// Signals as something to look at, instead of something that interrupts.
//
// For a program's main thread, before any other begins: they are held back for the rest of the process's life, so that
// one that comes while it ends neither kills it nor changes its exit code, unless it lets them through.
#pragma once

#include <signal.h>

#include <initializer_list>

namespace sinew {

// Of signals that ask for the end: whether a second one insists. A terminal that goes may send SIGHUP twice, and the
// end of a session sends it beside SIGTERM: nobody insists with it.
constexpr bool can_insist(int signal) {
  return signal != SIGHUP;
}

class Signals {
 public:
  // SIGINT and SIGHUP stay ignored where whoever started this process had them ignored: nohup, a job in the background
  // of a script. SIGPIPE is ignored from here on: who reads the output may leave.
  explicit Signals(std::initializer_list<int> wanted);
  ~Signals();
  Signals(const Signals&) = delete;
  Signals& operator=(const Signals&) = delete;

  int descriptor() const { return descriptor_; }  // readable when there is one
  int next() const;                               // 0: none
  // From here on they do what they do to any process, on the thread that calls: of one that takes too long to end.
  void let_through() const;

 private:
  sigset_t set_{};
  int descriptor_ = -1;
};

}  // namespace sinew
