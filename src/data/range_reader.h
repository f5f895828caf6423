// Private to data/: reads ranges of large files.
#pragma once

#include <cstddef>
#include <cstdint>
#include <list>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <unordered_map>
#include <utility>

namespace sinew::data {

// Keeps the descriptors of the files that were read last open, at most `most_open` of them. Any thread may use it.
//
// It reads with pread(2). Memory that maps a file would save a copy, but a device that fails, or a file that was cut
// meanwhile, would kill the process with SIGBUS. Here both are an Error. The kernel's page cache is the cache.
class RangeReader {
 public:
  explicit RangeReader(size_t most_open = 64) : most_open_(most_open) {}
  // Fills `out` from the bytes at `offset`. Throws Error if the file cannot be read, or ends before.
  void read(const std::string& path, uint64_t offset, std::span<std::byte> out) const;

 private:
  class Descriptor;
  using Opened = std::list<std::pair<std::string, std::shared_ptr<const Descriptor>>>;
  std::shared_ptr<const Descriptor> opened(const std::string& path) const;

  const size_t most_open_;
  mutable std::mutex mutex_;
  mutable Opened opened_;  // the one that was used last is first
  mutable std::unordered_map<std::string, Opened::iterator> by_path_;
};

}  // namespace sinew::data
