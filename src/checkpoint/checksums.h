// Private to checkpoint/: computes the size and the checksums of a file (one for each MiB and one for the whole file),
// and checks them while the file is read.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/disk.h"
#include "base/hash.h"

namespace sinew::checkpoint {

inline constexpr uint64_t kChunkBytes = 1 << 20;  // part of the format

struct FileChecksums {
  uint64_t bytes = 0;
  Digest whole;
  std::vector<Digest> chunks;  // one for each kChunkBytes; the last chunk may be shorter
  bool operator==(const FileChecksums&) const = default;
};

// Computes the digest of each kChunkBytes of a stream of bytes that arrives in pieces of any size.
class ChunkDigests {
 public:
  void update(std::span<const std::byte> bytes);
  std::vector<Digest> finish();  // the last chunk may be shorter; the next update() begins another stream

 private:
  void end_chunk();

  uint64_t filled_ = 0;  // bytes of the chunk that is not complete
  DigestStream chunk_;
  std::vector<Digest> chunks_;
};

// The digests of the chunks of each tensor of a part, by the tensor's name. They are the blocks of the state's digest.
using TensorDigests = std::map<std::string, std::vector<Digest>>;

// Computes the checksums of a stream of bytes that arrives in pieces of any size.
class ChecksumStream {
 public:
  void update(std::span<const std::byte> bytes);
  FileChecksums finish();

 private:
  uint64_t bytes_ = 0;
  DigestStream whole_;
  ChunkDigests chunks_;
};

// Reads the file once, chunk by chunk. Passes each chunk that has the right checksum to `take`. Returns the problem
// with the first wrong chunk, or nullopt if the file is right. Throws DiskError if the disk cannot read the file.
using TakeChunk = std::function<void(std::span<const std::byte>)>;
std::optional<std::string> read_checked(Disk& disk, const std::string& path, const FileChecksums& checksums,
                                        const TakeChunk& take);

}  // namespace sinew::checkpoint
