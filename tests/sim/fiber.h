// A Fiber is a thread of a simulated process. The world has one real thread, so code that blocks runs as a fiber. A
// fiber that waits gives the real thread back to the events of the world, and an event continues the fiber later.
#pragma once

#include <cstddef>
#include <exception>
#include <functional>
#include <memory>

#include "world.h"

namespace sinew::sim {

class Fiber {
 public:
  // cancel() unwinds the body of a fiber: the call in which the body waits throws Cancelled. Cancelled is not derived
  // from std::exception, so no error handler of the product catches it.
  struct Cancelled {};

  Fiber(const Process& process, std::function<void()> body);
  ~Fiber();
  Fiber(const Fiber&) = delete;
  Fiber& operator=(const Fiber&) = delete;

  static Fiber* current();  // the running fiber, or null while the world runs an event
  const Process& process() const { return process_; }

  // ---- called by events
  void resume();  // continues the body until it waits or ends
  void cancel();  // unwinds the body
  bool over() const { return over_; }
  bool waits() const { return waits_; }  // the body is in wait()

  // ---- called by the body
  void sleep(double seconds);  // if the process is suspended meanwhile, the sleep lasts until it continues
  void wait();                 // until an event calls resume(); the caller checks whether its condition holds

 private:
  struct Context;
  static void enter();
  void run();
  void pause();
  void switch_to_body();
  void switch_to_caller();

  const Process& process_;
  std::function<void()> body_;
  std::unique_ptr<Context> context_;
  Fiber* caller_ = nullptr;  // the fiber that called resume(); null if an event did
  bool begun_ = false, over_ = false, cancelled_ = false, waits_ = false;
};

}  // namespace sinew::sim
