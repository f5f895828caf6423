// What members of a group tell each other, as bytes. Private to group/.
//
// Decoding is strict and bounded: whatever a peer sends gives a value or a sentence saying what is wrong with it, needs
// memory in proportion to the bytes that came, and never reads past them. Numbers are little-endian. A payload is read
// where it lies: floats stand at multiples of 64 bytes from its begin, and are not copied.
#pragma once

#include <cstdint>
#include <expected>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/tree.h"
#include "group/group.h"
#include "link/link.h"

namespace sinew::group {

// Kinds 1 to 31 of link::Frame belong to the group.
enum class Kind : uint16_t {
  view_change_report = 1,  // where a member stands as a view begins; to all
  sums = 2,                // sums of the sender's nodes for one piece; to its owner
  small = 3,               // small bytes of the sender's nodes; to the lead
  reduced_piece = 4,       // to all: made now, or handed over
  reduced_head = 5,
  gone = 6,      // the roots you need are kept nowhere any more
  progress = 7,  // the sender computes shards of this round; to all, now and then
};

template <typename T>
using Decoded = std::expected<T, std::string>;

// What a round is made of; the same on all members or they do not train the same model.
struct Shape {
  Shape() = default;
  Shape(int64_t shards, std::vector<int64_t> lengths);
  int64_t shards = 0;
  std::vector<int64_t> lengths;  // by row
  std::vector<int64_t> offsets;  // of each row in the flat row of all; one more: the number of floats
  uint64_t digest = 0;
  int64_t floats() const { return offsets.back(); }
};

// The part of a row that lies in [begin, end) of the flat row; empty ones are left out.
struct RowPart {
  int64_t row = 0, offset = 0, count = 0;  // offset: within the row
};
std::vector<RowPart> row_parts(const Shape& shape, int64_t begin, int64_t end);

// ---- where a member stands -----------------------------------------------------------------------------------------

struct ViewChangeReport {
  int64_t collective = -1;          // the first whose root it does not have; -1: it has no state yet
  std::optional<uint64_t> history;  // of the notes of all rounds before
  bool joining = false;
  bool computed_before = false;  // it computed in the view it had before
  std::optional<Origin> origin;  // of one that began with a fresh view: the state it began with
  std::vector<bool> held;        // of that round, by shard: results it has or is computing; empty: not in it yet
  bool operator==(const ViewChangeReport&) const = default;
};
link::Bytes encode(const ViewChangeReport& report);
Decoded<ViewChangeReport> decode_view_change_report(const link::Bytes& bytes);

// ---- rows of floats: sums of nodes, or a piece of the root (one node) ----------------------------------------------

struct BlockHead {
  uint64_t shape = 0;          // digest
  int64_t begin = 0, end = 0;  // of the flat row
  int64_t nodes = 0;
  int64_t pieces = 0;  // of this round
  bool operator==(const BlockHead&) const = default;
};
Decoded<BlockHead> decode_head(const link::Bytes& bytes);

// A block to be filled: where the present ones go, by node and row part; null where absent.
struct BlockDraft {
  std::shared_ptr<link::Bytes> bytes;
  std::vector<float*> values;
};
BlockDraft draft_block(const BlockHead& head, const std::vector<RowPart>& parts, const std::vector<bool>& present);
// The same, read; the block must be exactly the expected one.
Decoded<std::vector<const float*>> read_block(const link::Bytes& bytes, const BlockHead& expected,
                                              const std::vector<RowPart>& parts);

// ---- small bytes ---------------------------------------------------------------------------------------------------

struct SmallSums {
  uint64_t shape = 0;
  std::vector<bool> rows;                         // some leaf of the sender has this row
  std::vector<std::optional<std::string>> nodes;  // of the sender, in order; nullopt: absent
  bool operator==(const SmallSums&) const = default;
};
link::Bytes encode(const SmallSums& sums);
Decoded<SmallSums> decode_small_sums(const link::Bytes& bytes);

struct ReducedHead {
  uint64_t shape = 0;
  int64_t pieces = 0;   // how many belong to this root
  uint64_t before = 0;  // history of the notes of all rounds before
  Reduced reduced;
};
link::Bytes encode(const ReducedHead& reduced);
Decoded<ReducedHead> decode_reduced_head(const link::Bytes& bytes);

// The history behind a round with this note.
uint64_t history_after(uint64_t before, const std::string& control_message);

}  // namespace sinew::group
