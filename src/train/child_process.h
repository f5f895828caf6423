// Does work in a copy of this process, so that it can be ended at any moment and leaves nothing here. Private to
// train/.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <limits>
#include <string>
#include <string_view>

namespace sinew::train {

struct ChildOptions {
  // the child never holds more; see ResidentMemory
  int64_t most_bytes = std::numeric_limits<int64_t>::max();
  double ends_at = 0;  // on the system's monotonic clock: then nobody waits for the child any more
  const std::atomic<int>* stop_signals = nullptr;  // above 0: the same
};

enum class ChildEnd {
  measured,    // the child has ended by itself
  too_long,    // ends_at came first
  stopped,     // a stop was asked for
  impossible,  // this process has threads, or may not fork
};

struct ChildResult {
  ChildEnd end = ChildEnd::impossible;
  std::string text;     // all that the child wrote
  bool killed = false;  // a signal has ended the child; probably it held too much
};

// Takes a part of the text. The parent reads it at once.
using ChildWrite = std::function<void(std::string_view)>;
// Forks; the child calls `work`, shows nothing, and ends. Its allocations fail before it holds more than most_bytes,
// and this process ends it if it holds more nevertheless. So the kernel has no reason to end any process.
ChildResult in_child(const ChildOptions& options, const std::function<void(const ChildWrite&)>& work);

// Whether the error means that memory ran out. An error in a shard has the text of the one that caused it.
bool ran_out(const std::exception& error);

}  // namespace sinew::train
