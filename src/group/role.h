// A member's role in the newest view: whether it is the leader, to which joiners it must send the state, and what it
// reports. Private to group/. The class has no threads, so that a simulation runs the same rules.
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

  // owes_state() returns whether joiners wait for this member as their donor. serve() returns each of these joiners
  // once; the caller then sends it a snapshot.
  bool owes_state() const { return !owed_.empty(); }
  std::vector<MemberId> serve();

  // report_view writes the newest view and the phase into the report. wants_to_compute returns true once: when this
  // joiner is ready. It is ready when it has nothing left to replay and its state was found equal to the group's.
  void report_view(cluster::MemberReport& report) const;
  bool wants_to_compute(bool ready);

 private:
  const cluster::ViewMember* view_member() const { return view_ ? view_->find(me_) : nullptr; }

  const MemberId me_;
  std::optional<cluster::View> view_;
  std::set<MemberId> owed_, served_;
  bool asked_to_compute_ = false;
};

}  // namespace sinew::group
