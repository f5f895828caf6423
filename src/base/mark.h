// A mark is the digest of a part of a member's training state. The members of a group compare their marks, because
// their work forms one training only while their states are equal.
#pragma once

#include <cstdint>

#include "base/hash.h"

namespace sinew {

struct Mark {
  static constexpr int64_t kWhole = -1;
  int64_t step = 0;       // the mark describes the state before this step
  int64_t part = kWhole;  // the number of the part, or kWhole for the whole state
  Digest digest;
  bool operator==(const Mark&) const = default;
};

}  // namespace sinew
