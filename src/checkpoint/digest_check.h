// Private to checkpoint/: compares what was read of a checkpoint with the digest of its state.
#pragma once

#include <functional>
#include <optional>
#include <string>

#include "base/hash.h"
#include "checkpoint/checkpoint.h"

namespace sinew::checkpoint {

// Returns a part of the checkpoint, which lives until the next call, or null if there is no such part.
using FindPart = std::function<const TensorFile*(const std::string& part)>;

// Returns what is wrong with the state document or the tensors, or nullopt if the digest is `expected` or the document
// does not say how the digest was made. `bytes` is the size of the checkpoint. Asks for each part once.
std::optional<std::string> wrong_state_digest(const std::string& state_json, Digest expected, uint64_t bytes,
                                              const FindPart& find_part);

}  // namespace sinew::checkpoint
