// Encodes and decodes the messages between the members of a group. Private to group/.
//
// Decoding is strict and bounded. For any bytes from a peer it gives a value or a text that says what is wrong.
// Decoding needs memory in proportion to the received bytes and never reads past them. Numbers are little-endian.
// Floats are read in place, without a copy, so they begin at multiples of 64 bytes from the start of the payload.
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
  view_change_report = 1,  // what the sender has when a view begins; sent to all members
  sums = 2,                // sums of the sender's nodes for one piece; sent to the piece's owner
  small = 3,               // small bytes of the sender's nodes; sent to the leader
  reduced_piece = 4,       // rows of a reduced result; sent to all members, or to one that lacks them
  reduced_head = 5,        // everything else of a reduced result; sent like its rows
  gone = 6,                // no member keeps the results that the receiver needs
  progress = 7,            // the sender computes shards of this collective; sent to all members, about once a second
  audit = 8,               // digest of a shard's result, to all computing members; `part` is the shard
};

template <typename T>
using Decoded = std::expected<T, std::string>;

std::string member_name(MemberId id);  // "member 3", for messages

// The shape of a collective. Members with different shapes do not train the same model.
struct Shape {
  Shape() = default;
  Shape(int64_t shards, std::vector<int64_t> lengths, Purpose purpose = {});
  int64_t shards = 0;
  std::vector<int64_t> lengths;  // the number of floats of each row
  std::vector<int64_t> offsets;  // where each row begins in the flat row; the last entry is the number of all floats
  Purpose purpose;
  uint64_t digest = 0;  // of all fields above
  int64_t floats() const { return offsets.back(); }
};

// The parts of rows that are in [begin, end) of the flat row, without empty parts.
struct RowPart {
  int64_t row = 0, offset = 0, count = 0;  // `offset` counts from the beginning of the row
};
std::vector<RowPart> row_parts(const Shape& shape, int64_t begin, int64_t end);

// ---- report at a view change ---------------------------------------------------------------------------------------

struct ViewChangeReport {
  int64_t collective = -1;  // the first collective whose result the sender lacks; -1: the sender has no state yet
  std::optional<uint64_t> history;  // digest of the control messages of all collectives before that one
  bool joining = false;
  bool computed_before = false;  // true: the sender computed in its previous view
  std::optional<Origin> origin;  // the state with which the sender began, if it began with a fresh view
  // For each shard of that collective: whether the sender has the result or computes the shard. Empty if the sender has
  // not begun the collective.
  std::vector<bool> held;
  bool operator==(const ViewChangeReport&) const = default;
};
link::Bytes encode(const ViewChangeReport& report);
Decoded<ViewChangeReport> decode_view_change_report(const link::Bytes& bytes);

// ---- rows of floats: sums of nodes, or a piece of a reduced result (one node) ---------------------------------------

struct BlockHead {
  uint64_t shape = 0;          // the digest of the collective's Shape
  int64_t begin = 0, end = 0;  // the range in the flat row that the floats cover
  int64_t nodes = 0;
  int64_t pieces = 0;  // the number of pieces into which this collective is cut
  bool operator==(const BlockHead&) const = default;
};
Decoded<BlockHead> decode_head(const link::Bytes& bytes);

// A block whose values the caller fills in. `values` has their addresses by node and row part; null if absent.
struct BlockDraft {
  std::shared_ptr<link::Bytes> bytes;
  std::vector<float*> values;
};
BlockDraft draft_block(const BlockHead& head, const std::vector<RowPart>& parts, const std::vector<bool>& present);
// Reads a block. Its head must equal `expected`.
Decoded<std::vector<const float*>> read_block(const link::Bytes& bytes, const BlockHead& expected,
                                              const std::vector<RowPart>& parts);

// ---- small bytes ---------------------------------------------------------------------------------------------------

// What a member says of its collective. The members of a group say the same, as long as their states are equal.
struct Claim {
  Purpose purpose;
  uint64_t shape = 0;  // Shape::digest
  bool operator==(const Claim&) const = default;
};

struct SmallSums {
  uint64_t shape = 0;
  std::vector<bool> rows;                         // for each row: true if at least one leaf of the sender has it
  std::vector<std::optional<std::string>> nodes;  // the small bytes of the sender's nodes, in order; nullopt: absent
  bool compare = false;                           // see Group::ask_to_compare
  std::optional<Mark> mark;                       // the mark of the sender's state
  Purpose purpose;
  bool operator==(const SmallSums&) const = default;
};
link::Bytes encode(const SmallSums& sums);
Decoded<Claim> decode_claim(const link::Bytes& small_sums);  // reads only the beginning
Decoded<SmallSums> decode_small_sums(const link::Bytes& bytes);

struct ReducedHead {
  uint64_t shape = 0;
  int64_t pieces = 0;   // the number of pieces into which this result is cut
  uint64_t before = 0;  // digest of the control messages of all collectives before this one
  Reduced reduced;
};
link::Bytes encode(const ReducedHead& reduced);
Decoded<ReducedHead> decode_reduced_head(const link::Bytes& bytes);

// ---- audits

link::Bytes encode(const Digest& digest);
Decoded<Digest> decode_digest(const link::Bytes& bytes);

// Returns the history after a collective with this control message. `compare` changes the history, too: a collective
// that asks for a comparison is followed by another collective than one that does not.
uint64_t history_after(uint64_t before, const std::string& control_message, bool compare = false);

}  // namespace sinew::group
