// Computes each member's share of the work from the members' speeds. Shares change neither too often nor for small
// changes of a speed.
#include <algorithm>
#include <cmath>
#include <cstdio>

#include "cluster/membership.h"

namespace sinew::cluster {
namespace {

// The least share. Shares are also rounded to multiples of it, so that a tiny change of speed does not change the
// share.
constexpr double kLeastShare = 0.001;

std::string percent(double part) {
  char text[32];
  std::snprintf(text, sizeof text, "%.0f%%", 100 * part);
  return text;
}

bool follows_speed(const ViewMember& view_member, const ClusterState& state) {
  const auto member = state.members.find(view_member.id);
  if (view_member.joining || member == state.members.end()) return false;
  return member->second.phase != Member::Phase::leaving && member->second.phase != Member::Phase::finished;
}

// Returns the speed of each member. A member without a measured speed gets the mean of the others. The result is empty
// if no speed was measured.
std::map<MemberId, double> speeds_of(const std::vector<ViewMember>& members, const ClusterState& state) {
  std::map<MemberId, double> speeds;
  double sum = 0;
  int64_t measured = 0;
  for (const ViewMember& view_member : members) {
    if (!follows_speed(view_member, state)) continue;
    const double speed = state.members.at(view_member.id).speed;
    speeds[view_member.id] = speed;
    sum += speed;
    measured += speed > 0 ? 1 : 0;
  }
  if (measured == 0) return {};
  for (auto& [id, speed] : speeds) {
    if (!(speed > 0)) speed = sum / static_cast<double>(measured);
  }
  return speeds;
}

double sum_of(const std::map<MemberId, double>& numbers) {
  double sum = 0;
  for (const auto& [id, number] : numbers) sum += number;
  return sum;
}

struct Move {
  MemberId id;
  double from = 0, to = 0;  // parts of the work
  double size() const { return std::abs(to - from); }
};

std::string sentence(std::vector<Move> moves) {
  constexpr size_t kMostNamed = 4;
  std::stable_sort(moves.begin(), moves.end(), [](const Move& a, const Move& b) { return a.size() > b.size(); });
  std::string text;
  for (size_t i = 0; i < std::min(moves.size(), kMostNamed); ++i) {
    text += i == 0 ? "shares follow speed: " : ", ";
    text += list_of({moves[i].id}) + " goes from " + percent(moves[i].from) + " to " + percent(moves[i].to);
  }
  if (moves.size() > kMostNamed) text += " and " + std::to_string(moves.size() - kMostNamed) + " more";
  return text;
}

}  // namespace

Shares shares_by_speed(const std::vector<ViewMember>& members, const ClusterState& state,
                       const ClusterOptions& options) {
  const auto speeds = speeds_of(members, state);
  if (speeds.size() < 2) return {};
  std::map<MemberId, double> old;
  for (const ViewMember& view_member : members) {
    if (speeds.contains(view_member.id)) old[view_member.id] = view_member.share;
  }
  Shares shares;
  const double mean = sum_of(speeds) / static_cast<double>(speeds.size());
  for (const auto& [id, speed] : speeds) {
    shares.by_id[id] = std::max(kLeastShare, std::round(speed / mean / kLeastShare) * kLeastShare);
  }
  const double old_sum = sum_of(old), new_sum = sum_of(shares.by_id);
  std::vector<Move> moves;
  for (const auto& [id, share] : shares.by_id) {
    const Move move{id, old_sum > 0 ? old[id] / old_sum : 0, share / new_sum};
    if (move.size() > options.share_change * std::max(move.from, move.to)) moves.push_back(move);
  }
  if (moves.empty()) return {};
  shares.why = sentence(moves);
  return shares;
}

}  // namespace sinew::cluster
