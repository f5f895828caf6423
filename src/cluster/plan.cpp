// Assigns shards and slices to members.
//
// Every member computes the assignment for itself, and all must get the same result. An assignment therefore depends
// only on the view, the number of shards or floats, and `held`. Shares are added in the order of ids.
#include <algorithm>
#include <bit>
#include <cmath>

#include "base/check.h"
#include "cluster/cluster.h"

namespace sinew::cluster {
namespace {

struct Taker {
  MemberId id;
  double share = 1;
};

// Returns the members that get work, ascending by id: the computing members with a share above 0. If there is no such
// member, all computing members get equal shares.
std::vector<Taker> takers_of(const View& view) {
  std::vector<Taker> takers;
  for (const ViewMember& view_member : view.members) {
    if (!view_member.joining && view_member.share > 0) takers.push_back({view_member.id, view_member.share});
  }
  if (!takers.empty()) return takers;
  for (const MemberId id : view.computing()) takers.push_back({id, 1});
  SINEW_CHECK(!takers.empty(), view.generation);
  return takers;
}

double total_of(const std::vector<Taker>& takers) {
  double total = 0;
  for (const Taker& taker : takers) total += taker.share;
  return total;
}

// The least number of shards of a taker, and whether it may get one more. The time of a collective is the largest
// quotient count/share. A taker may get one more shard if this time stays as short as possible.
struct Quota {
  int64_t base = 0;
  bool may_have_one_more = false;
};

std::vector<Quota> quotas_of(const std::vector<Taker>& takers, int64_t count, int64_t& left_over) {
  const double total = total_of(takers);
  std::vector<Quota> quotas;
  std::vector<double> times;  // the time of each taker with one shard more than its base
  left_over = count;
  for (const Taker& taker : takers) {
    const double exact = static_cast<double>(count) * (taker.share / total);
    const auto base = std::min(left_over, static_cast<int64_t>(std::floor(exact + 1e-9)));
    quotas.push_back({base, false});
    times.push_back(static_cast<double>(base + 1) / taker.share);
    left_over -= base;
  }
  if (left_over == 0) return quotas;
  SINEW_CHECK(left_over <= static_cast<int64_t>(takers.size()), left_over, takers.size());
  auto sorted = times;
  std::sort(sorted.begin(), sorted.end());
  const double longest = sorted[static_cast<size_t>(left_over - 1)] * (1 + 1e-9);
  for (size_t i = 0; i < times.size(); ++i) quotas[i].may_have_one_more = times[i] <= longest;
  return quotas;
}

// Returns the cost of a cut before open[at]. A cut at the edge of a larger aligned subtree costs less.
int64_t cost_of_cut(const std::vector<int64_t>& open, int64_t at) {
  if (at == 0 || at == static_cast<int64_t>(open.size())) return 0;
  const int64_t shard = open[static_cast<size_t>(at)];
  if (open[static_cast<size_t>(at - 1)] + 1 != shard) return 0;  // the two shards are not neighbours
  return 64 - std::countr_zero(static_cast<uint64_t>(shard));
}

// Returns the number of shards of each taker. The takers get contiguous runs of `open` in their order. If the quotas
// leave a choice, a cut is placed at the end of a subtree. best[i][extra] is the least cost of the cuts after the first
// i takers if `extra` of them got one more.
std::vector<int64_t> counts_of(const std::vector<Taker>& takers, const std::vector<int64_t>& open) {
  int64_t left_over = 0;
  const auto quotas = quotas_of(takers, static_cast<int64_t>(open.size()), left_over);
  constexpr int64_t kNever = int64_t{1} << 60;
  const size_t width = static_cast<size_t>(left_over) + 1;
  std::vector<std::vector<int64_t>> best(takers.size() + 1, std::vector<int64_t>(width, kNever));
  best[0][0] = 0;
  int64_t base = 0;  // the sum of the bases of the takers so far
  for (size_t i = 0; i < takers.size(); ++i) {
    base += quotas[i].base;
    for (size_t extra = 0; extra < width; ++extra) {
      int64_t cost = best[i][extra];
      if (quotas[i].may_have_one_more && extra > 0) cost = std::min(cost, best[i][extra - 1]);
      if (cost < kNever) best[i + 1][extra] = cost + cost_of_cut(open, base + static_cast<int64_t>(extra));
    }
  }
  std::vector<int64_t> counts(takers.size());
  size_t extra = static_cast<size_t>(left_over);
  for (size_t i = takers.size(); i-- > 0;) {
    const bool more = quotas[i].may_have_one_more && extra > 0 && best[i][extra - 1] < best[i][extra];
    counts[i] = quotas[i].base + (more ? 1 : 0);
    if (more) --extra;
  }
  SINEW_CHECK(extra == 0, left_over, takers.size());
  return counts;
}

}  // namespace

std::vector<MemberId> plan_shards(const View& view, int64_t shards, const std::vector<std::optional<MemberId>>& held) {
  SINEW_CHECK(shards >= 0, shards);
  std::vector<MemberId> owners(static_cast<size_t>(shards));
  std::vector<int64_t> open;  // shards whose result no computing member has
  for (int64_t shard = 0; shard < shards; ++shard) {
    const auto at = static_cast<size_t>(shard);
    const ViewMember* holder = at < held.size() && held[at] ? view.find(*held[at]) : nullptr;
    if (holder != nullptr && !holder->joining) {
      owners[at] = holder->id;
    } else {
      open.push_back(shard);
    }
  }
  const auto takers = takers_of(view);
  const auto counts = counts_of(takers, open);
  auto next = open.begin();
  for (size_t i = 0; i < takers.size(); ++i) {
    for (int64_t n = 0; n < counts[i]; ++n) owners[static_cast<size_t>(*next++)] = takers[i].id;
  }
  SINEW_CHECK(next == open.end(), shards);
  return owners;
}

std::vector<Slice> plan_slices(const View& view, int64_t n) {
  constexpr int64_t kUnit = 1024;  // floats; 4 KiB
  SINEW_CHECK(n >= 0, n);
  const auto takers = takers_of(view);
  const double total = total_of(takers);
  const int64_t units = n / kUnit + (n % kUnit == 0 ? 0 : 1);
  std::vector<Slice> slices;
  double sum = 0;
  int64_t begin = 0;
  for (size_t i = 0; i < takers.size(); ++i) {
    sum += takers[i].share;
    const bool last = i + 1 == takers.size();
    const auto cut = last ? units : static_cast<int64_t>(std::llround(static_cast<double>(units) * (sum / total)));
    const int64_t end = std::min(n, std::min(units, cut) * kUnit);
    if (end > begin) slices.push_back({takers[i].id, begin, end});
    begin = std::max(begin, end);
  }
  return slices;
}

}  // namespace sinew::cluster
