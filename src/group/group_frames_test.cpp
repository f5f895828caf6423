#include "group/group_frames.h"

#include <gtest/gtest.h>

#include <cstring>

#include "base/random.h"
#include "group/group_frames_judge.h"

namespace sinew::group {
namespace {

std::vector<bool> random_bits(RandomStream& random, uint64_t most) {
  std::vector<bool> bits(random.below(most));
  for (size_t i = 0; i < bits.size(); ++i) bits[i] = random.below(2) == 0;
  return bits;
}

std::string random_text(RandomStream& random) {
  std::string text(random.below(20), '\0');
  for (char& letter : text) letter = static_cast<char>(random.below(256));
  return text;
}

ViewChangeReport random_view_change_report(RandomStream& random) {
  ViewChangeReport report;
  report.joining = random.below(2) == 0;
  report.collective = static_cast<int64_t>(random.below(100)) - (report.joining ? 1 : 0);
  if (random.below(2) == 0) report.history = random.bits64();
  report.computed_before = random.below(2) == 0;
  if (random.below(2) == 0) report.origin = Origin{static_cast<int64_t>(random.below(1000)), random.bits64()};
  report.held = random_bits(random, 40);
  return report;
}

Mark random_mark(RandomStream& random) {
  return {static_cast<int64_t>(random.below(1000)),
          static_cast<int64_t>(random.below(5)) - 1,
          {random.bits64(), random.bits64()}};
}

SmallSums random_sums(RandomStream& random) {
  SmallSums sums{random.bits64(), random_bits(random, 40), {}};
  for (uint64_t n = random.below(6); n > 0; --n) {
    sums.nodes.push_back(random.below(3) == 0 ? std::nullopt : std::optional(random_text(random)));
  }
  sums.compare = random.below(2) == 0;
  if (random.below(2) == 0) sums.mark = random_mark(random);
  return sums;
}

ReducedHead random_result(RandomStream& random) {
  ReducedHead small;
  small.shape = random.bits64();
  small.pieces = static_cast<int64_t>(random.below(50));
  small.before = random.bits64();
  small.reduced = {random_bits(random, 30), random.below(2) == 0, random_text(random), random_text(random), {}, false};
  for (uint64_t n = random.below(4); n > 0; --n)
    small.reduced.marks.push_back({MemberId(static_cast<int64_t>(random.below(100))), random_mark(random)});
  small.reduced.compare = random.below(2) == 0;
  return small;
}

struct Block {
  Shape shape;
  BlockHead head;
  std::vector<RowPart> parts;
  std::vector<bool> present;
  BlockDraft draft;
};

Block random_block(RandomStream& random) {
  Block block;
  block.shape = Shape(3, std::vector<int64_t>(1 + random.below(5), 5));
  const auto floats = static_cast<uint64_t>(block.shape.floats());
  block.head = {block.shape.digest, static_cast<int64_t>(random.below(floats)), 0,
                static_cast<int64_t>(1 + random.below(4)), 9};
  block.head.end =
      block.head.begin + 1 + static_cast<int64_t>(random.below(floats - static_cast<uint64_t>(block.head.begin)));
  block.parts = row_parts(block.shape, block.head.begin, block.head.end);
  for (size_t i = 0; i < block.parts.size() * static_cast<size_t>(block.head.nodes); ++i)
    block.present.push_back(random.below(3) != 0);
  block.draft = draft_block(block.head, block.parts, block.present);
  float next = 1;
  for (size_t i = 0; i < block.present.size(); ++i) {
    for (int64_t k = 0; block.present[i] && k < block.parts[i % block.parts.size()].count; ++k)
      block.draft.values[i][k] = next++;
  }
  return block;
}

TEST(GroupFrames, MessagesAreReadBackAsWritten) {
  RandomStream random(random_key({1}));
  for (int trial = 0; trial < 2000; ++trial) {
    const ViewChangeReport report = random_view_change_report(random);
    EXPECT_EQ(decode_view_change_report(encode(report)), report);
    const SmallSums sums = random_sums(random);
    EXPECT_EQ(decode_small_sums(encode(sums)), sums);
    const ReducedHead reduced = random_result(random);
    const auto read = decode_reduced_head(encode(reduced));
    ASSERT_TRUE(read);
    EXPECT_EQ(encode(*read), encode(reduced));
    EXPECT_EQ(read->reduced.control_message, reduced.reduced.control_message);
  }
}

TEST(GroupFrames, BlocksContainOnlyThePresentValues) {
  RandomStream random(random_key({2}));
  for (int trial = 0; trial < 2000; ++trial) {
    const Block block = random_block(random);
    EXPECT_EQ(decode_head(*block.draft.bytes), block.head);
    const auto values = read_block(*block.draft.bytes, block.head, block.parts);
    ASSERT_TRUE(values) << values.error();
    float next = 1;
    for (size_t i = 0; i < block.present.size(); ++i) {
      ASSERT_EQ((*values)[i] != nullptr, block.present[i]);
      for (int64_t k = 0; block.present[i] && k < block.parts[i % block.parts.size()].count; ++k)
        ASSERT_EQ((*values)[i][k], next++);
    }
    EXPECT_LT(block.draft.bytes->size(), static_cast<size_t>(next) * sizeof(float) + 128);
    auto other = block.head;
    ++other.nodes;
    EXPECT_FALSE(read_block(*block.draft.bytes, other, block.parts));
    auto shorter = *block.draft.bytes;
    shorter.pop_back();
    EXPECT_FALSE(read_block(shorter, block.head, block.parts));
  }
}

TEST(GroupFrames, RowPartsCoverEachNumberOnce) {
  RandomStream random(random_key({3}));
  for (int trial = 0; trial < 500; ++trial) {
    std::vector<int64_t> lengths(random.below(6));
    for (int64_t& length : lengths) length = static_cast<int64_t>(random.below(4) * random.below(40));
    const Shape shape(1, lengths);
    std::vector<int64_t> seen(lengths.size(), 0);
    for (int64_t begin = 0; begin < shape.floats();) {
      const int64_t end = std::min(shape.floats(), begin + 1 + static_cast<int64_t>(random.below(30)));
      for (const RowPart& part : row_parts(shape, begin, end)) {
        EXPECT_EQ(part.offset, seen[static_cast<size_t>(part.row)]);
        EXPECT_GT(part.count, 0);
        seen[static_cast<size_t>(part.row)] += part.count;
      }
      begin = end;
    }
    EXPECT_EQ(seen, lengths);
  }
}

TEST(GroupFrames, DifferentShapesHaveDifferentDigests) {
  EXPECT_NE(Shape(3, {5, 6}).digest, Shape(4, {5, 6}).digest);
  EXPECT_NE(Shape(3, {5, 6}).digest, Shape(3, {6, 5}).digest);
  EXPECT_NE(Shape(3, {5, 6}).digest, Shape(3, {11}).digest);
  EXPECT_EQ(Shape(3, {5, 6}).digest, Shape(3, {5, 6}).digest);
}

// The frames have flipped bits, bytes that are cut, added or moved, and numbers replaced by extreme ones.
TEST(GroupFrames, AnyBytesGiveAValueOrAReason) {
  RandomStream random(random_key({4}));
  for (int trial = 0; trial < 60000; ++trial) {
    link::Bytes bytes;
    switch (random.below(5)) {
      case 0: bytes = encode(random_view_change_report(random)); break;
      case 1: bytes = encode(random_sums(random)); break;
      case 2: bytes = encode(random_result(random)); break;
      case 3: bytes = *random_block(random).draft.bytes; break;
      default: bytes.resize(random.below(80));
    }
    for (uint64_t changes = random.below(4); changes > 0 && !bytes.empty(); --changes) {
      const size_t at = random.below(bytes.size());
      switch (random.below(4)) {
        case 0: bytes[at] ^= std::byte{1} << random.below(8); break;
        case 1: bytes.resize(at); break;
        case 2: bytes.insert(bytes.begin() + static_cast<std::ptrdiff_t>(at), std::byte(random.below(256))); break;
        default: {
          const int64_t extremes[] = {-1, INT64_MIN, INT64_MAX, int64_t{1} << 50, int64_t{1} << 19, int64_t{1} << 32};
          if (at + 8 <= bytes.size()) std::memcpy(bytes.data() + at, &extremes[random.below(6)], 8);
        }
      }
    }
    judge(bytes, static_cast<int64_t>(1 + random.below(5)), static_cast<int64_t>(1 + random.below(4)));
  }
}

}  // namespace
}  // namespace sinew::group
