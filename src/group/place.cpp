#include "group/place.h"

namespace sinew::group {

using Phase = cluster::Member::Phase;

void Place::take(const cluster::View& newer) {
  view_ = newer;
  owed_.clear();
  for (const cluster::Seat& other : newer.seats) {
    if (other.joining && other.donor == me_ && !served_.contains(other.id)) owed_.insert(other.id);
  }
}

bool Place::joins(MemberId other) const {
  const cluster::Seat* its = view_ ? view_->find(other) : nullptr;
  return its != nullptr && its->joining;
}

std::vector<MemberId> Place::serve() {
  const std::vector<MemberId> joiners(owed_.begin(), owed_.end());
  served_.merge(owed_);
  owed_.clear();
  return joiners;
}

void Place::tell_view(cluster::Told& told) const {
  told.view = view_;
  std::erase_if(told.lost, [&](const auto& lost) { return view_->find(lost.first) == nullptr; });
  if (!seated() || told.phase == Phase::leaving || told.phase == Phase::finished) return;
  if (!joining()) told.phase = Phase::computing;
  if (joining() && told.phase == Phase::waiting) told.phase = Phase::joining;
}

bool Place::wants_to_compute(bool ahead) {
  if (!joining() || told_caught_up_ || ahead) return false;
  return told_caught_up_ = true;
}

}  // namespace sinew::group
