// Refuses to allocate a tensor for which the machine has no memory. Otherwise Linux grants the address space, and kills
// the worker (or another process) when the tensor is filled.
#include <c10/core/CPUAllocator.h>

#include <algorithm>
#include <charconv>
#include <limits>

#include "base/proc.h"
#include "model/makers.h"

namespace sinew::model {
namespace {

constexpr uint64_t kUnknown = std::numeric_limits<uint64_t>::max();

// Returns the first number after `key` at the beginning of a line.
uint64_t number_after(const std::string& text, const std::string& key) {
  for (size_t at = text.find(key); at != std::string::npos; at = text.find(key, at + 1)) {
    if (at > 0 && text[at - 1] != '\n') continue;
    const size_t first = text.find_first_not_of(" \t", at + key.size());
    uint64_t value = 0;
    if (first != std::string::npos &&
        std::from_chars(text.data() + first, text.data() + text.size(), value).ec == std::errc())
      return value;
  }
  return kUnknown;
}

class LimitedAllocator final : public c10::Allocator {
 public:
  explicit LimitedAllocator(c10::Allocator& inner) : inner_(inner) {}

  c10::DataPtr allocate(size_t bytes) override {
    constexpr size_t kLarge = 256ULL << 20;
    if (bytes >= kLarge) check(bytes);
    return inner_.allocate(bytes);
  }
  c10::DeleterFnPtr raw_deleter() const override { return inner_.raw_deleter(); }
  bool is_simple_data_ptr(const c10::DataPtr& data) const override { return inner_.is_simple_data_ptr(data); }
  void copy_data(void* to, const void* from, size_t count) const override { inner_.copy_data(to, from, count); }

 private:
  static void check(size_t bytes) {
    const std::string group = "/sys/fs/cgroup/memory.";
    const uint64_t free = free_memory(kernel_text("/proc/meminfo"), kernel_text(group + "max"),
                                      kernel_text(group + "current"), kernel_text(group + "stat"));
    TORCH_CHECK_WITH(OutOfMemoryError, bytes <= free, "a tensor needs ", bytes >> 20U, " MiB of memory, but ",
                     free >> 20U, " MiB are free");
  }

  c10::Allocator& inner_;
};

}  // namespace

uint64_t free_memory(const std::string& meminfo, const std::string& max, const std::string& current,
                     const std::string& stat) {
  constexpr uint64_t kUnit = 1024;  // meminfo counts in kB
  const uint64_t available = number_after(meminfo, "MemAvailable:"), swap = number_after(meminfo, "SwapFree:");
  uint64_t free = available == kUnknown ? kUnknown : (available + (swap == kUnknown ? 0 : swap)) * kUnit;
  const uint64_t limit = number_after(max, ""), used = number_after(current, "");
  if (limit == kUnknown || used == kUnknown) return free;        // no limit: "max"
  const uint64_t cached = number_after(stat, "inactive_file ");  // the kernel gives it back when memory is needed
  const uint64_t kept = used - std::min(used, cached == kUnknown ? 0 : cached);
  return std::min(free, limit - std::min(limit, kept));
}

void limit_allocations() {
  static const bool limited = [] {
    // Leaked on purpose: tensors of other threads may outlive everything else.
    c10::SetCPUAllocator(new LimitedAllocator(*c10::GetCPUAllocator()), /*priority=*/0);
    return true;
  }();
  static_cast<void>(limited);
}

}  // namespace sinew::model
