#include "data/range_reader.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "base/error.h"

namespace sinew::data {
namespace {

[[noreturn]] void fail_to_read(const std::string& path, const std::string& why) {
  throw Error("DATA_UNREADABLE_FILE", "cannot read " + path + ": " + why,
              "check the path, the permissions of the file and the disk it is on");
}

}  // namespace

class RangeReader::Descriptor {
 public:
  explicit Descriptor(const std::string& path) : value_(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK)) {
    struct stat facts {};
    if (value_ < 0) fail_to_read(path, std::strerror(errno));
    if (fstat(value_, &facts) != 0 || !S_ISREG(facts.st_mode)) {
      ::close(value_);
      fail_to_read(path, "it is no file");
    }
    // Samples are read in random order. Without this advice, the kernel also reads what follows a sample.
    ::posix_fadvise(value_, 0, 0, POSIX_FADV_RANDOM);
  }
  ~Descriptor() { ::close(value_); }
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;
  int value() const { return value_; }

 private:
  int value_;
};

std::shared_ptr<const RangeReader::Descriptor> RangeReader::opened(const std::string& path) const {
  {
    const std::lock_guard lock(mutex_);
    if (const auto found = by_path_.find(path); found != by_path_.end()) {
      opened_.splice(opened_.begin(), opened_, found->second);
      return found->second->second;
    }
  }
  auto descriptor = std::make_shared<const Descriptor>(path);  // without the lock, because a network can be slow
  const std::lock_guard lock(mutex_);
  if (by_path_.contains(path)) return descriptor;  // another thread has opened the file, too
  opened_.emplace_front(path, descriptor);
  by_path_.emplace(path, opened_.begin());
  if (opened_.size() > most_open_) {
    by_path_.erase(opened_.back().first);
    opened_.pop_back();  // closes the file when no thread reads it any more
  }
  return descriptor;
}

void RangeReader::read(const std::string& path, uint64_t offset, std::span<std::byte> out) const {
  const auto descriptor = opened(path);
  while (!out.empty()) {
    const size_t piece = std::min<size_t>(out.size(), 1U << 30);
    const ssize_t got = ::pread(descriptor->value(), out.data(), piece, static_cast<off_t>(offset));
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) fail_to_read(path, std::strerror(errno));
    if (got == 0) fail_to_read(path, "it ends at byte " + std::to_string(offset) + ", but a sample goes on there");
    out = out.subspan(static_cast<size_t>(got));
    offset += static_cast<uint64_t>(got);
  }
}

}  // namespace sinew::data
