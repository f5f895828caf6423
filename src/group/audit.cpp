#include "group/audit.h"

#include <algorithm>
#include <span>
#include <tuple>
#include <utility>

#include "base/check.h"
#include "base/random.h"

namespace sinew::group {
namespace {

constexpr const char* kRepeatable =
    "A model that does not compute the same result twice does this, too; sinew check finds out";

class Auditors {
 public:
  Auditors(const cluster::View& view, const std::vector<MemberId>& owners, uint64_t key) : key_(key) {
    for (const cluster::ViewMember& one : view.members) {
      if (!one.joining)
        members_.push_back({one.id, machine_of(one.address), one.share, std::ranges::count(owners, one.id)});
    }
  }

  // Returns the member that would be done first if it computed one shard more; members of `except` do not count. If
  // `elsewhere`, members on another machine than that of except.front() come before all others.
  std::optional<MemberId> best(int64_t shard, const std::vector<MemberId>& except, bool elsewhere) const {
    const std::string& machine = find(except.front()).machine;
    const auto order = [&](const Candidate& one) {
      return std::pair(elsewhere && one.machine == machine, rank(one, shard));
    };
    const Candidate* found = nullptr;
    for (const Candidate& one : members_) {
      if (std::ranges::find(except, one.id) != except.end()) continue;
      if (found == nullptr || order(one) < order(*found)) found = &one;
    }
    return found == nullptr ? std::nullopt : std::optional(found->id);
  }

  int64_t load(MemberId id) const { return find(id).shards; }
  void add(MemberId id) { ++std::ranges::find(members_, id, &Candidate::id)->shards; }

 private:
  struct Candidate {
    MemberId id;
    std::string machine;
    double share = 1;
    int64_t shards = 0;
  };
  const Candidate& find(MemberId id) const { return *std::ranges::find(members_, id, &Candidate::id); }
  static std::string machine_of(const std::string& address) { return address.substr(0, address.rfind(':')); }
  // Members with a lower rank come first. A member without a share comes last: it works only if no other member can.
  std::tuple<bool, double, uint64_t> rank(const Candidate& one, int64_t shard) const {
    const double work = static_cast<double>(one.shards + 1);
    const uint64_t lot = random_key({key_, static_cast<uint64_t>(shard), static_cast<uint64_t>(one.id.value)}).value;
    return {one.share <= 0, one.share > 0 ? work / one.share : work, lot};
  }

  uint64_t key_;
  std::vector<Candidate> members_;
};

}  // namespace

std::vector<PlannedAudit> plan_audits(const cluster::View& view, const std::vector<MemberId>& owners,
                                      const Audit& audit) {
  std::vector<PlannedAudit> planned;
  if (audit.shards.empty()) return planned;
  Auditors auditors(view, owners, audit.key);
  for (const int64_t shard : audit.shards) {
    SINEW_CHECK(shard >= 0 && shard < static_cast<int64_t>(owners.size()), shard, owners.size());
    const MemberId owner = owners[static_cast<size_t>(shard)];
    const auto auditor = auditors.best(shard, {owner}, audit.of_copies);
    if (!auditor) return planned;
    const auto third = auditors.best(shard, {owner, *auditor}, audit.of_copies);
    const int64_t load = auditors.load(*auditor);
    auditors.add(*auditor);
    planned.push_back(
        {shard, owner, *auditor, third,
         "member " + std::to_string(auditor->value) + " is done first: it has " + std::to_string(load) + " shards"});
  }
  return planned;
}

AuditVerdict judge_audit(const PlannedAudit& planned, const Opinions& opinions, const Audit& audit) {
  using Kind = AuditVerdict::Kind;
  const auto of = [&](MemberId id) {
    const auto found = opinions.find(id);
    return found == opinions.end() ? std::nullopt : std::optional(found->second);
  };
  const auto first = of(planned.owner), second = of(planned.auditor);
  AuditVerdict verdict;
  if (!first) verdict.missing.push_back(planned.owner);
  if (!second) verdict.missing.push_back(planned.auditor);
  std::ranges::sort(verdict.missing);
  if (!verdict.missing.empty()) return verdict;
  if (*first == *second) return {Kind::equal, std::nullopt, {}};
  if (audit.of_copies && (*first == Digest() || *second == Digest()))
    return {Kind::wrong, *first == Digest() ? planned.auditor : planned.owner, {}};
  if (!planned.third) return {Kind::undecided, std::nullopt, {}};
  const auto third = of(*planned.third);
  if (!third) return {Kind::needs_third, std::nullopt, {*planned.third}};
  if (*third != *first && *third != *second) return {Kind::undecided, std::nullopt, {}};
  return {Kind::wrong, *third == *second ? planned.owner : planned.auditor, {}};
}

std::string text_of(const AuditVerdict& verdict, const PlannedAudit& planned, const Opinions& opinions,
                    const Audit& audit, const std::function<std::string(MemberId)>& name) {
  using Kind = AuditVerdict::Kind;
  const std::string shard = shard_name(audit, ShardIndex(planned.shard));
  if (verdict.kind == Kind::waiting) return shard + " is not computed twice yet";
  if (verdict.kind == Kind::equal)
    return shard + " has the same result on " + name(planned.owner) + " and " + name(planned.auditor);
  const auto result = [&](MemberId id) { return to_hex(opinions.at(id)); };
  if (verdict.kind == Kind::wrong) {
    const MemberId wrong = *verdict.wrong, right = wrong == planned.owner ? planned.auditor : planned.owner;
    const std::string text = name(wrong) + " computed a wrong result of " + shard + ": ";
    // In an audit of copies, the absent result is right, and no third member computes the shard.
    if (audit.of_copies && opinions.at(right) == Digest()) return text + "it is not, on " + name(right);
    return text + result(wrong) + ", and " + name(right) + " and " + name(*planned.third) + " computed " +
           result(right);
  }
  const std::string text = shard + " has result " + result(planned.owner) + " on " + name(planned.owner) + " and " +
                           result(planned.auditor) + " on " + name(planned.auditor);
  if (verdict.kind == Kind::needs_third) return text + "; " + name(*planned.third) + " is to decide";
  if (!planned.third) return text + ", and no third member can compute it. " + kRepeatable;
  return text + ", and " + result(*planned.third) + " on " + name(*planned.third) + ". " + kRepeatable;
}

Audits::Audits(std::vector<PlannedAudit> planned) : planned_(std::move(planned)) {
  for (size_t place = 0; place < planned_.size(); ++place) {
    places_.emplace(planned_[place].shard, place);
    unsettled_.insert(place);
    to_judge_.insert(place);
  }
}

void Audits::heard(int64_t shard) {
  const auto found = places_.find(shard);
  if (found != places_.end()) to_judge_.insert(found->second);
}

const PlannedAudit* Audits::next_to_judge() {
  if (to_judge_.empty()) return nullptr;
  return &planned_[to_judge_.extract(to_judge_.begin()).value()];
}

void Audits::settle(int64_t shard) {
  unsettled_.erase(places_.at(shard));
}

std::vector<const PlannedAudit*> Audits::unsettled() const {
  std::vector<const PlannedAudit*> found;
  for (const size_t place : unsettled_) found.push_back(&planned_[place]);
  return found;
}

Digest leaf_digest(const Leaf* leaf, const std::vector<int64_t>& lengths) {
  if (leaf == nullptr) return {};
  std::vector<Digest> parts(lengths.size());
  for (size_t row = 0; row < leaf->rows.size(); ++row) {
    if (leaf->rows[row] == nullptr) continue;
    parts[row] = digest_of(std::as_bytes(std::span(leaf->rows[row], static_cast<size_t>(lengths[row]))));
  }
  parts.push_back(digest_of(leaf->small));
  return digest_of(parts);
}

}  // namespace sinew::group
