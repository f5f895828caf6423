// Does the arithmetic of a collective: computes the sums of nodes for other members, the reduced pieces, and the
// reduced small bytes. Private to group/.
//
// All functions are pure functions of a member's leaves and of what it received. They run in parallel and without the
// group's mutex. The order of additions is that of the tree (base/tree.h), whichever member adds.
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

// This member's leaves and nodes of the open collective. The leaves stay in place until the collective is finished, and
// all lanes have left the collective by then.
struct Summing {
  int64_t collective = 0;
  std::shared_ptr<const Shape> shape;
  std::vector<const Leaf*> leaves;  // this member's leaves by shard; null: absent, or the shard of another member
  std::vector<bool> mine;
  std::vector<TreeNode> nodes;  // the maximal nodes that cover this member's shards
  int64_t pieces = 0;
};

struct Piece {  // a range of the flat row
  MemberId owner;
  int64_t begin = 0, end = 0;
};

struct Sent {  // what another member sent, and the nodes that it must contain
  MemberId from;
  std::vector<TreeNode> nodes;
  Payload payload;
};

// Returns the sums of this member's leaves for a piece that another member owns.
Payload sum_piece(const Summing& summing, const Piece& piece);
// Reduces a piece from this member's leaves and the sums of all others. Returns null if another member has another
// shape for the collective: then the leader ends the group. Throws Fenced if the received bytes are invalid.
Payload finish_piece(const Summing& summing, const Piece& piece, const std::vector<Sent>& sent);

SmallSums small_sums(const Summing& summing, const Merge& merge);
// Reduces the small bytes. The result has no control message and no history yet. `sent` comes from all members,
// including this one, and all have this shape. Throws Fenced if the received bytes are invalid.
ReducedHead reduced_head(const Summing& summing, const std::vector<Sent>& sent, const Merge& merge);

}  // namespace sinew::group
