// A part of the program receives requests as signal numbers: SIGTERM asks it to stop, SIGUSR1 to save a checkpoint.
//
// A main program reads the signals of its process (Signals). A program that embeds several trainings gives each one a
// SignalQueue, so that it can stop one of them alone.
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

// Returns whether this is a signal of terminals, SIGINT or SIGHUP, that this process ignores because its parent process
// did (nohup, background jobs of a script). Such a signal must stay ignored. Call it before a handler is installed.
bool parent_ignored(int signal);

// Returns whether a second such signal may make a stop immediate (StopRequests).
constexpr bool can_insist(int signal) {
  return signal != SIGHUP;
}

// Recognizes a SIGINT or SIGTERM that arrives twice for one request: timeout(1) and some launchers signal a process and
// then its whole group, so a member of the group gets the signal twice within microseconds. A signal handler may call
// the method.
class RepeatedStops {
 public:
  static constexpr double kSeconds = 0.5;
  // The signal arrived at this time of a monotonic clock. Returns true if the same signal counted less than kSeconds
  // before. One that repeats another does not count.
  bool repeats(int signal, double seconds);

 private:
  static constexpr double kNever = -1;
  std::atomic<double> interrupted_{kNever}, terminated_{kNever};  // when the last one that counted arrived
  static_assert(std::atomic<double>::is_always_lock_free);
};

// The signals of this process.
//
// Create it on the main thread before any other thread starts. It blocks the signals for the rest of the process's
// life, so a signal that arrives while the process ends neither kills it nor changes its exit code. let_through()
// unblocks them.
class Signals final : public SignalSource {
 public:
  // Leaves out signals that the parent process ignored (parent_ignored). SIGPIPE is ignored from here on, since the
  // reader of our output may exit at any time. Throws Error if the kernel has no free descriptor.
  explicit Signals(std::initializer_list<int> wanted);
  ~Signals() override;
  Signals(const Signals&) = delete;
  Signals& operator=(const Signals&) = delete;

  int descriptor() const override { return descriptor_; }
  // Leaves out a signal that arrived twice for one request (RepeatedStops).
  int next() override;
  // Gives the signals their default effect again, on the calling thread. For a process that may take long to end: the
  // next signal kills it.
  void let_through();

 private:
  sigset_t set_{};
  int descriptor_ = -1;
  RepeatedStops repeated_;
};

// Requests that other threads of this process send. Any thread may call any method.
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

// Stop requests, counted. The first asks for an orderly stop, the second for an immediate one.
class StopRequests {
 public:
  // Returns true for the first stop request.
  bool add(int signal);
  bool requested() const { return requested_; }
  // SIGHUP never makes a stop immediate: a closing terminal may send it twice, and the end of a login session sends it
  // together with SIGTERM.
  bool immediate() const { return insistent_ > 1; }
  int signal() const { return signal_; }  // the newest request that counts; 0 if there is none

 private:
  bool requested_ = false;
  int insistent_ = 0, signal_ = 0;
};

}  // namespace sinew
