// Part of checkpoint.h: the digest of a training state, and how a reader compares a checkpoint with it.
//
// The digest covers a text, which stands for everything but the tensors, and then the bytes of the tensors, in an order
// that the trainer chooses. The checksums of a manifest say only that the files are as they were written. The digest
// also says that what was written is the state that the run had: memory may change between the two. So the trainer puts
// the order of the tensors into the state document, and every reader computes the digest again from what it has read.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <nlohmann/json_fwd.hpp>
#include <span>
#include <string>
#include <vector>

#include "base/hash.h"

namespace sinew::checkpoint {

// Computes the digest of a state. Each tensor is divided into blocks of 1 MiB, so that several threads can share the
// work. Not thread-safe.
class StateDigest {
 public:
  // Calls `work` on one thread or on several at once, and returns when all calls have returned.
  using Run = std::function<void(const std::function<void()>& work)>;

  // Adds the bytes of a tensor, which must live until compute() or finish(). Copies them to `copy` unless it is null,
  // so that each byte is read from memory only once.
  void add(std::span<const std::byte> bytes, std::byte* copy = nullptr);
  void add_zeros(uint64_t bytes);
  void add_computed(std::span<const Digest> blocks);  // a tensor, by the digests of its blocks
  // Works on everything that was added so far, and makes the copies. Null: on this thread.
  void compute(const Run& run = nullptr);
  // Returns the digest of the text and all tensors.
  Digest finish(Digest text, const Run& run = nullptr);

 private:
  struct Block {
    const std::byte* from;  // null: a block of zeros
    std::byte* to;
    size_t size;
  };
  static Digest walk(const Block& block);

  std::vector<Block> blocks_;     // the blocks that compute() works on next
  std::vector<Digest> computed_;  // the digests of the blocks before those
};

// A tensor of a state, in the order of the digest: a tensor of a part, or zeros that no part holds.
struct DigestedTensor {
  std::string part, name;  // empty: the tensor is zeros
  uint64_t zeros = 0;      // in bytes
};

// The field of a state document that lets a reader compute the digest again. The trainer puts it there under this key.
// A document without it, of an older version or another writer, is not compared.
inline constexpr const char* kStateDigestKey = "state_digest";
nlohmann::json state_digest_json(Digest text, const std::vector<DigestedTensor>& tensors);

}  // namespace sinew::checkpoint
