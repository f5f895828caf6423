// The arithmetic of a round: sums of nodes for others, roots of pieces, small bytes. Private to group/.
//
// Pure functions of what a member has and was sent; they run without the group's lock, side by side. The order of
// additions is that of the tree (base/tree.h), whoever adds.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/ids.h"
#include "group/group.h"
#include "group/group_frames.h"

namespace sinew::group {

using Payload = std::shared_ptr<const link::Bytes>;
using Merge = std::function<std::string(std::string_view left, std::string_view right)>;

// The open round as this member has it. Leaves stay where they are until the round is finished, which is after all
// lanes have left it.
struct Summing {
  int64_t collective = 0;
  std::shared_ptr<const Shape> shape;
  std::vector<const Leaf*> leaves;  // of this member, by shard; null: absent or another's
  std::vector<bool> mine;
  std::vector<TreeNode> nodes;  // of this member
  int64_t pieces = 0;
};

struct Piece {  // of the flat row of all rows
  MemberId owner;
  int64_t begin = 0, end = 0;
};

struct Sent {  // what another member sent, and the nodes it must be of
  MemberId from;
  std::vector<TreeNode> nodes;
  Payload payload;
};

// This member's sums for a piece of another.
Payload sum_piece(const Summing& summing, const Piece& piece);
// The root of a piece from this member's leaves and all others' sums. Throws PutOut for bytes that are not what they
// must be, Error for a member that takes the round for another.
Payload finish_piece(const Summing& summing, const Piece& piece, const std::vector<Sent>& sent);

SmallSums small_sums(const Summing& summing, const Merge& merge);
// Without note and history. `sent`: of all members, this one too. Throws as finish_piece does.
ReducedHead reduced_head(const Summing& summing, const std::vector<Sent>& sent, const Merge& merge);

}  // namespace sinew::group
