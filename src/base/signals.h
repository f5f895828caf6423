// Delivers requests to a part of the program as signal numbers: SIGTERM asks it to stop, SIGUSR1 to save a checkpoint.
//
// A main program reads the signals of its process (Signals). A program that embeds several trainings gives each
// training its own SignalQueue, so that it can stop a single one.
#pragma once

#include <signal.h>

#include <atomic>
#include <deque>
#include <initializer_list>
#include <mutex>

namespace sinew {

class SignalSource {
 public:
  virtual ~SignalSource() = default;
  virtual int descriptor() const = 0;  // poll(2) finds it readable while a request is pending
  virtual int next() = 0;              // takes the oldest request; 0 if none is pending
};

// Returns whether `signal` is a signal of terminals (SIGINT or SIGHUP) that this process ignores. Then the parent
// process ignored it (nohup, background jobs of a script), so it must stay ignored. Call it before a handler is
// installed.
bool parent_ignored(int signal);

// Returns whether a second signal of this kind may turn an orderly stop into an immediate one (StopRequests).
constexpr bool can_insist(int signal) {
  return signal != SIGHUP;
}

// Recognises a SIGINT or SIGTERM that arrives twice for one request. timeout(1) and some launchers signal a process and
// then its whole group, so the process gets the signal twice within microseconds. A signal handler may call repeats().
class RepeatedStops {
 public:
  static constexpr double kSeconds = 0.5;
  // Call it when a signal arrives; `seconds` is the time of a monotonic clock. Returns true if the same signal counted
  // less than kSeconds before. A signal that repeats another does not count.
  bool repeats(int signal, double seconds);

 private:
  static constexpr double kNever = -1;
  std::atomic<double> interrupted_{kNever}, terminated_{kNever};  // when the last signal that counted arrived
  static_assert(std::atomic<double>::is_always_lock_free);
};

// The signals of this process.
//
// Create it on the main thread before any other thread starts. It blocks the signals for the rest of the process's
// life. So a signal that arrives while the process ends neither kills it nor changes its exit code. let_through()
// unblocks them again.
class Signals final : public SignalSource {
 public:
  // Does not receive signals that the parent process ignored (parent_ignored). Makes the process ignore SIGPIPE,
  // because the reader of its output may exit at any time. Throws Error if the kernel has no free descriptor.
  explicit Signals(std::initializer_list<int> wanted);
  ~Signals() override;
  Signals(const Signals&) = delete;
  Signals& operator=(const Signals&) = delete;

  int descriptor() const override { return descriptor_; }
  // Skips a signal that arrived a second time for one request (RepeatedStops).
  int next() override;
  // Drops pending signals and gives later ones their default effect again, on the calling thread. A process that may
  // take long to end calls it, so that the next signal kills it.
  void let_through();

 private:
  sigset_t set_{};
  int descriptor_ = -1;
  RepeatedStops repeated_;
};

// Receives requests from other threads of this process. Any thread may call any method.
class SignalQueue final : public SignalSource {
 public:
  SignalQueue();
  ~SignalQueue() override;
  SignalQueue(const SignalQueue&) = delete;
  SignalQueue& operator=(const SignalQueue&) = delete;

  void send(int signal);
  int descriptor() const override { return descriptor_; }
  int next() override;

 private:
  std::mutex mutex_;
  std::deque<int> waiting_;
  int descriptor_ = -1;  // an eventfd that counts waiting_
};

// Counts stop requests. The first asks for an orderly stop, the second for an immediate one.
class StopRequests {
 public:
  // Returns true for the first stop request.
  bool add(int signal);
  bool requested() const { return requested_; }
  // SIGHUP never makes a stop immediate: a terminal that closes may send it twice, and the end of a login session sends
  // it together with SIGTERM.
  bool immediate() const { return insistent_ > 1; }
  // the newest signal, except that SIGHUP does not replace an earlier one; 0 if there is none
  int signal() const { return signal_; }

 private:
  bool requested_ = false;
  int insistent_ = 0, signal_ = 0;
};

}  // namespace sinew
