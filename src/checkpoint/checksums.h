// What a file must be, MiB by MiB, and reading one while checking it.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/disk.h"
#include "base/hash.h"

namespace sinew::checkpoint {

inline constexpr uint64_t kChunkBytes = 1 << 20;  // part of the format

struct FileFacts {
  uint64_t bytes = 0;
  Digest whole;
  std::vector<Digest> chunks;  // of kChunkBytes each, the last one shorter
  bool operator==(const FileFacts&) const = default;
};

// Facts of bytes that come in pieces, cut anyhow.
class FactsStream {
 public:
  void update(std::span<const std::byte> bytes);
  FileFacts finish();

 private:
  FileFacts facts_;
  DigestStream whole_, chunk_;
};

// Reads the file once, a chunk at a time, and gives each chunk that checks to `take`; returns what is wrong with the
// first that does not. Throws DiskError when the disk does.
using TakeChunk = std::function<void(std::span<const std::byte>)>;
std::optional<std::string> read_checked(Disk& disk, const std::string& path, const FileFacts& facts,
                                        const TakeChunk& take);

}  // namespace sinew::checkpoint
