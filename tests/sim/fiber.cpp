#include "fiber.h"

#include <cxxabi.h>
#include <sys/mman.h>
#include <ucontext.h>
#include <unistd.h>

#include <utility>
#include <vector>

#include "base/check.h"

#ifdef __SANITIZE_ADDRESS__
#include <sanitizer/common_interface_defs.h>
#endif
#ifdef __SANITIZE_THREAD__
#include <sanitizer/tsan_interface.h>
#endif

namespace sinew::sim {
namespace {

constexpr size_t kStackBytes = size_t{1} << 20;

Fiber* running = nullptr;

// A stack with a protected page below it, so that an overflow crashes. Stacks are reused, because a story needs
// thousands.
class Stack {
 public:
  Stack() : bytes_(take()) {}
  ~Stack() { spare().push_back(bytes_); }
  Stack(const Stack&) = delete;
  Stack& operator=(const Stack&) = delete;
  char* bytes() const { return bytes_; }

 private:
  static std::vector<char*>& spare() {
    static std::vector<char*>& all = *new std::vector<char*>;
    return all;
  }
  static char* take() {
    if (!spare().empty()) {
      char* found = spare().back();
      spare().pop_back();
      return found;
    }
    const auto page = static_cast<size_t>(sysconf(_SC_PAGESIZE));
    void* made =
        mmap(nullptr, page + kStackBytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    SINEW_CHECK(made != MAP_FAILED);
    SINEW_CHECK(mprotect(made, page, PROT_NONE) == 0);
    return static_cast<char*>(made) + page;
  }

  char* bytes_;
};

// The C++ runtime keeps, for each thread, a list of the exceptions that are being handled. Each fiber needs a list of
// its own.
struct HandledExceptions {
  void* caught = nullptr;
  unsigned int uncaught = 0;
  void swap() {
    auto* of_thread = reinterpret_cast<HandledExceptions*>(abi::__cxa_get_globals());
    std::swap(caught, of_thread->caught);
    std::swap(uncaught, of_thread->uncaught);
  }
};

}  // namespace

struct Fiber::Context {
  Stack stack;
  ucontext_t body = {}, caller = {};
  HandledExceptions handled;  // the list of the side (body or caller) that is not running
  // The state that the sanitizers need when the thread switches between body and caller.
  void* fake_stack = nullptr;
  const void* caller_stack = nullptr;
  size_t caller_size = 0;
  void* tsan_body = nullptr;
  void* tsan_caller = nullptr;
};

Fiber::Fiber(const Process& process, std::function<void()> body) : process_(process), body_(std::move(body)) {}

Fiber::~Fiber() {
  cancel();
}

Fiber* Fiber::current() {
  return running;
}

void Fiber::enter() {
  running->run();
}

void Fiber::run() {
#ifdef __SANITIZE_ADDRESS__
  __sanitizer_finish_switch_fiber(nullptr, &context_->caller_stack, &context_->caller_size);
#endif
  try {
    body_();
  } catch (const Cancelled&) {
  }
  body_ = nullptr;
  over_ = true;
  switch_to_caller();
}

void Fiber::switch_to_body() {
  caller_ = std::exchange(running, this);
  context_->handled.swap();
#ifdef __SANITIZE_ADDRESS__
  void* fake_stack = nullptr;
  __sanitizer_start_switch_fiber(&fake_stack, context_->stack.bytes(), kStackBytes);
#endif
#ifdef __SANITIZE_THREAD__
  context_->tsan_caller = __tsan_get_current_fiber();
  __tsan_switch_to_fiber(context_->tsan_body, 0);
#endif
  swapcontext(&context_->caller, &context_->body);
#ifdef __SANITIZE_ADDRESS__
  __sanitizer_finish_switch_fiber(fake_stack, nullptr, nullptr);
#endif
  context_->handled.swap();
  running = caller_;
}

void Fiber::switch_to_caller() {
#ifdef __SANITIZE_ADDRESS__
  __sanitizer_start_switch_fiber(over_ ? nullptr : &context_->fake_stack, context_->caller_stack,
                                 context_->caller_size);
#endif
#ifdef __SANITIZE_THREAD__
  __tsan_switch_to_fiber(context_->tsan_caller, 0);
#endif
  swapcontext(&context_->body, &context_->caller);
#ifdef __SANITIZE_ADDRESS__
  __sanitizer_finish_switch_fiber(context_->fake_stack, &context_->caller_stack, &context_->caller_size);
#endif
}

void Fiber::resume() {
  SINEW_CHECK(!over_ && running != this);
  if (!std::exchange(begun_, true)) {
    context_ = std::make_unique<Context>();
    getcontext(&context_->body);
    context_->body.uc_stack.ss_sp = context_->stack.bytes();
    context_->body.uc_stack.ss_size = kStackBytes;
    makecontext(&context_->body, &Fiber::enter, 0);
#ifdef __SANITIZE_THREAD__
    context_->tsan_body = __tsan_create_fiber(0);
#endif
  }
  switch_to_body();
  if (!over_) return;
#ifdef __SANITIZE_THREAD__
  __tsan_destroy_fiber(context_->tsan_body);
#endif
  context_.reset();
}

void Fiber::cancel() {
  cancelled_ = true;
  if (!begun_) over_ = true;
  if (!over_) resume();
}

void Fiber::pause() {
  SINEW_CHECK(running == this);
  if (!cancelled_) switch_to_caller();
  if (cancelled_) throw Cancelled();
}

void Fiber::sleep(double seconds) {
  if (!cancelled_) process_.after(seconds, [this] { resume(); });
  pause();
}

void Fiber::wait() {
  waits_ = true;
  pause();
  waits_ = false;
}

}  // namespace sinew::sim
