// Defines the views of the group, and assigns the work to the members of a view.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/going_back.h"
#include "base/ids.h"

namespace sinew::cluster {

// One member's entry in a view. A joining member computes nothing yet. The other members send it the reduced results of
// all collectives from this view's first one on, and its donor sends it a snapshot of the state. When the joining
// member has caught up, it asks to compute.
struct ViewMember {
  MemberId id;
  std::string address;  // where the member listens for links
  double share = 1;     // its part of the work, relative to the other shares; 0: no work
  bool joining = false;
  MemberId donor;  // set only for a joining member
  bool operator==(const ViewMember&) const = default;
};

// The group as all its members see it. The leader writes the run's files, decides what enters the control log, and ends
// the run. It is the computing member with the lowest id, unless the view names another one: a member that joined by a
// token leads only while no member with the run's secret has the state (cluster_state.h).
struct View {
  Generation generation;
  std::vector<ViewMember> members;  // ordered by id, ascending
  // True if no member of this view has the training state of an earlier view. Then all members begin with the same
  // state: that of the newest checkpoint or, if there is no checkpoint, of step 0.
  bool fresh = false;
  std::string why;  // the reason of the view, as a sentence
  // How often the run went back to a checkpoint. If that was too often, the leader ends the run.
  GoingBack going_back = {};
  // True only in view.json: the group of this view was ended, because its work cannot be trusted. None of its members
  // may go on, also under a later coordinator.
  bool dissolved = false;
  MemberId named_leader = {};  // a computing member; 0: the computing member with the lowest id leads
  bool operator==(const View&) const = default;

  const ViewMember* find(MemberId id) const;  // null if it is not a member
  std::vector<MemberId> computing() const;    // ascending
  std::optional<MemberId> leader() const;     // nullopt if no member computes
};
std::string to_json(const View& view);
std::optional<View> view_of_json(const std::string& json);

// ---- assignment of work: pure functions that give the same result on every member -----------------------------------

// Returns the owner of every shard of a collective. If a member already has the result of shard s, `held[s]` names it;
// a computing member keeps the shards that it holds. The other shards go to the members in proportion to their shares
// of the work, in contiguous runs. A cut between two runs lies at the edge of an aligned subtree if the balance allows
// it. Every shard has exactly one owner. A member with share 0 gets no further shard unless all shares are 0.
std::vector<MemberId> plan_shards(const View& view, int64_t shards,
                                  const std::vector<std::optional<MemberId>>& held = {});

// A slice [begin, end) of a flat row of n floats, and the member that adds up the tree for these floats. The slices
// are in order and cover the row without holes. Boundaries are multiples of 1024 floats. Empty slices are left out.
struct Slice {
  MemberId owner;
  int64_t begin = 0, end = 0;
  bool operator==(const Slice&) const = default;
};
std::vector<Slice> plan_slices(const View& view, int64_t n);

}  // namespace sinew::cluster
