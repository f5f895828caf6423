// Checks properties that the decoder must have for any bytes from a peer. The fuzzer and the tests share these checks.
#pragma once

#include <span>

#include "base/check.h"
#include "group/group_frames.h"

namespace sinew::group {

// Decodes the bytes as every kind of message, and checks three things. The decoder does not crash or read past the
// bytes. A refused message comes with a reason. Encoding an accepted report, SmallSums or ReducedHead gives the same
// bytes again. `rows` and `nodes` describe the collective for which a block is read.
inline void judge(const link::Bytes& bytes, int64_t rows, int64_t nodes) {
  if (const auto report = decode_view_change_report(bytes)) {
    SINEW_CHECK(encode(*report) == bytes);
  } else {
    SINEW_CHECK(!report.error().empty());
  }
  if (const auto sums = decode_small_sums(bytes)) {
    SINEW_CHECK(encode(*sums) == bytes);
  } else {
    SINEW_CHECK(!sums.error().empty());
  }
  if (const auto small = decode_reduced_head(bytes)) {
    SINEW_CHECK(encode(*small) == bytes);
  } else {
    SINEW_CHECK(!small.error().empty());
  }
  if (const auto digest = decode_digest(bytes)) {
    SINEW_CHECK(encode(*digest) == bytes);
  } else {
    SINEW_CHECK(!digest.error().empty());
  }
  const auto head = decode_head(bytes);
  SINEW_CHECK(head || !head.error().empty());
  if (!head) return;
  const Shape shape(3, std::vector<int64_t>(static_cast<size_t>(rows), 5));
  BlockHead expected = *head;  // the same head, with its range clipped to the collective
  expected.nodes = nodes;
  expected.end = std::min(expected.end, shape.floats());
  if (expected.begin >= expected.end) return;
  const auto parts = row_parts(shape, expected.begin, expected.end);
  const auto values = read_block(bytes, expected, parts);
  SINEW_CHECK(values || !values.error().empty());
  if (!values) return;
  SINEW_CHECK(values->size() == parts.size() * static_cast<size_t>(nodes));
  for (size_t i = 0; i < values->size(); ++i) {
    const float* at = (*values)[i];
    if (at == nullptr) continue;
    const auto* begin = reinterpret_cast<const std::byte*>(at);
    const auto* end = reinterpret_cast<const std::byte*>(at + parts[i % parts.size()].count);
    SINEW_CHECK(begin >= bytes.data() && end <= bytes.data() + bytes.size());
  }
}

}  // namespace sinew::group
