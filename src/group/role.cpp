#include "group/role.h"

namespace sinew::group {

using Phase = cluster::Member::Phase;

void Role::take(const cluster::View& newer) {
  view_ = newer;
  owed_.clear();
  for (const cluster::ViewMember& other : newer.members) {
    if (other.joining && other.donor == me_ && !served_.contains(other.id)) owed_.insert(other.id);
  }
}

bool Role::joins(MemberId other) const {
  const cluster::ViewMember* its = view_ ? view_->find(other) : nullptr;
  return its != nullptr && its->joining;
}

std::vector<MemberId> Role::serve() {
  const std::vector<MemberId> joiners(owed_.begin(), owed_.end());
  served_.merge(owed_);
  owed_.clear();
  return joiners;
}

void Role::report_view(cluster::MemberReport& report) const {
  report.view = view_;
  const auto is_gone = [&](const auto& other) { return view_->find(other.first) == nullptr; };
  std::erase_if(report.lost, is_gone);
  std::erase_if(report.wrong, is_gone);
  if (!in_view() || report.phase == Phase::leaving || report.phase == Phase::finished) return;
  if (!joining()) report.phase = Phase::computing;
  if (joining() && report.phase == Phase::waiting) report.phase = Phase::joining;
}

bool Role::wants_to_compute(bool ready) {
  if (!joining() || asked_to_compute_ || !ready) return false;
  return asked_to_compute_ = true;
}

}  // namespace sinew::group
