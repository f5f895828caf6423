// The audit of shards: who computes a shard again, and what follows from the results. Pure functions, which give the
// same result on every member. Private to group/. What an audit is, base/audit.h explains.
#pragma once

#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "base/audit.h"
#include "cluster/cluster.h"
#include "group/group.h"

namespace sinew::group {

// The members that compute an audited shard. They are different members. `third` computes it only if the results of the
// first two differ; nullopt: no third member computes in the group.
struct PlannedAudit {
  int64_t shard = 0;
  MemberId owner, auditor;
  std::optional<MemberId> third;
  std::string why;  // why this auditor, as a sentence
  bool operator==(const PlannedAudit&) const = default;
};

// Chooses the auditors of the audited shards. `owners` has the owner of each shard of the collective. An auditor is the
// member that would be done first: the time of a member is its number of shards, with those that it audits, divided by
// its share. So a member without shards audits, if there is one, and the collective takes no longer. Nothing is planned
// if only one member computes.
std::vector<PlannedAudit> plan_audits(const cluster::View& view, const std::vector<MemberId>& owners,
                                      const Audit& audit);

// The digests of the results of one shard, by the member that sent them.
using Opinions = std::map<MemberId, Digest>;

struct AuditVerdict {
  enum class Kind {
    waiting,      // a result is missing
    equal,        // owner and auditor have the same result
    needs_third,  // they differ, and `third` has not computed the shard yet
    wrong,        // two of three have the same result; `wrong` is the other member
    undecided,    // nobody can tell which result is right
  };
  Kind kind = Kind::waiting;
  std::optional<MemberId> wrong;
  // The members whose result is missing, ascending. A member that dies is missing and never wrong.
  std::vector<MemberId> missing;
};
AuditVerdict judge_audit(const PlannedAudit& planned, const Opinions& opinions, const Audit& audit);
// The verdict with its reason, as a sentence. `name` returns how a member is named in it.
std::string text_of(const AuditVerdict& verdict, const PlannedAudit& planned, const Opinions& opinions,
                    const Audit& audit, const std::function<std::string(MemberId)>& name);

// The audits of a collective under one view. It tells which of them are to be judged: those for which a result has come
// since they were last judged. So the work of a collective is in proportion to the number of results. Not thread-safe.
class Audits {
 public:
  Audits() = default;
  explicit Audits(std::vector<PlannedAudit> planned);  // all are to be judged, because results may have come before
  const std::vector<PlannedAudit>& planned() const { return planned_; }
  void heard(int64_t shard);            // a result of the shard has come; ignored if the shard is not audited
  const PlannedAudit* next_to_judge();  // returns each once, then null; valid while this object lives
  void settle(int64_t shard);           // the shard has two equal results
  bool settled() const { return unsettled_.empty(); }  // whether all shards have two equal results
  std::vector<const PlannedAudit*> unsettled() const;

 private:
  std::vector<PlannedAudit> planned_;
  std::map<int64_t, size_t> places_;  // for each audited shard, its index in planned_
  std::set<size_t> unsettled_, to_judge_;
};

// The digest of everything that a shard contributes to the sums: each row, absent or not, and the small bytes.
// `lengths` are those of the collective's rows.
Digest leaf_digest(const Leaf* leaf, const std::vector<int64_t>& lengths);

}  // namespace sinew::group
