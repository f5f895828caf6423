// Private to checkpoint/: compares what was read of a checkpoint with the digest of its state.
#pragma once

#include <map>
#include <optional>
#include <string>

#include "base/hash.h"
#include "checkpoint/checksums.h"

namespace sinew::checkpoint {

// Returns what is wrong with the state document or the tensors, or nullopt if the digest is `expected` or the document
// does not say how the digest was made. `bytes` is the size of the checkpoint. `parts` has the digests of all tensors,
// by the part's name.
std::optional<std::string> wrong_state_digest(const std::string& state_json, Digest expected, uint64_t bytes,
                                              const std::map<std::string, TensorDigests>& parts);

}  // namespace sinew::checkpoint
