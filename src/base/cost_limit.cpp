#include "base/cost_limit.h"

#include <string>

namespace sinew {

thread_local CostLimit* CostLimit::current_ = nullptr;

void CostLimit::check() const {
  if (is_abandoned()) throw Error("REQUEST_ABANDONED", "the client has left before the answer was ready", "");
  if (clock_.monotonic_seconds() <= until_) return;
  throw Error("REQUEST_TOO_LONG", "the request takes longer than the server's limit of time",
              "ask for less at once: fewer runs, a narrower range of steps, or a filter that is cheaper to check");
}

void CostLimit::hold(int64_t bytes) {
  held_ += bytes;
  if (held_ <= bytes_) return;
  throw Error("REQUEST_TOO_LARGE",
              "the request needs more than " + std::to_string(bytes_ >> 20) + " MiB of memory on the server",
              "ask for less at once: fewer runs, a narrower range of steps, or smaller pages");
}

}  // namespace sinew
