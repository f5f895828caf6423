// A member's place in the newest view: whether it leads, to whom it owes the state, what it says of itself. Private to
// group/; no threads of its own, so that a simulation lives by the same rules.
#pragma once

#include <optional>
#include <set>
#include <vector>

#include "cluster/cluster.h"

namespace sinew::group {

class Role {
 public:
  explicit Role(MemberId me) : me_(me) {}

  void take(const cluster::View& newer);
  const std::optional<cluster::View>& view() const { return view_; }
  bool is_leader() const { return view_ && view_->leader() == me_; }
  bool in_view() const { return view_member() != nullptr; }
  bool joining() const { return view_member() != nullptr && view_member()->joining; }
  bool joins(MemberId other) const;

  // Joiners whose donor this member is. Each is served once: a snapshot is on its way from then on.
  bool owes_state() const { return !owed_.empty(); }
  std::vector<MemberId> serve();

  // What the coordinator is told of acting by the newest view; true once: a joiner that has nothing left to replay
  // (`ahead`: it has) asks to compute.
  void report_view(cluster::MemberReport& report) const;
  bool wants_to_compute(bool ahead);

 private:
  const cluster::ViewMember* view_member() const { return view_ ? view_->find(me_) : nullptr; }

  const MemberId me_;
  std::optional<cluster::View> view_;
  std::set<MemberId> owed_, served_;
  bool asked_to_compute_ = false;
};

}  // namespace sinew::group
