// Joins the group and creates the two objects through which a run uses it: its Members and its Reducer.
#include <unistd.h>

#include "base/error.h"
#include "base/process.h"
#include "distribute/distribute.h"
#include "distribute/group_reducer.h"
#include "distribute/small_sums.h"

namespace sinew::distribute {
namespace {

cluster::CoordinatorInfo read_info(const std::string& path) {
  if (auto info = cluster::read_coordinator_info_file(path)) return *info;
  throw Error("RUN_WITHOUT_COORDINATOR", "there is no " + path + ", which says where the run's coordinator listens",
              "check that the run's supervisor (sinew train) is alive");
}

group::MemberOptions member_options(const JoinOptions& options, const cluster::CoordinatorInfo& info,
                                    const train::Identity& identity) {
  group::MemberOptions wanted;
  wanted.client.url = [path = options.coordinator_file] { return read_info(path).url; };
  wanted.client.secret = info.secret;
  wanted.client.host = host_name();
  wanted.client.pid = getpid();
  wanted.client.identity = {identity.job, identity.machine, identity.probe};
  if (options.standby && !cluster::joined_by_url(info)) {
    wanted.client.standby = options.standby;
    wanted.client.standby->listen = options.listen;
    wanted.client.standby->advertise = options.advertise;
  }
  wanted.link.listen = options.listen;
  wanted.link.advertise = options.advertise;
  wanted.link.job = identity.job;
  wanted.link.credentials.coordinator = cluster::coordinator_key(info.secret);
  wanted.link.tls = info.with_tls();
  wanted.group.merge = merged;
  wanted.group.patience_seconds = options.patience_seconds;
  return wanted;
}

class Joined final : public train::Membership {
 public:
  Joined(const JoinOptions& options, const cluster::CoordinatorInfo& info, const train::Identity& identity,
         Clock& clock)
      : ending_(options.ending),
        member_(member_options(options, info, identity), clock),
        reducer_(member_.group(), options.pace, clock),
        members_(
            member_, [this] { return reducer_.speed(); }, clock, !cluster::joined_by_url(info)),
        id_(member_.group().id()) {
    if (options.on_joined) options.on_joined(id_);
  }

  ~Joined() override {
    if (ending_ != nullptr) ending_->exit_code = members_.exit_code_if_fenced();
  }

  MemberId id() const override { return id_; }
  loop::Members& members() override { return members_; }
  train::Reducer& reducer() override { return reducer_; }

 private:
  MembershipEnd* ending_;
  group::Member member_;
  GroupReducer reducer_;
  loop::GroupMembers members_;
  const MemberId id_;
};

}  // namespace

std::unique_ptr<train::Membership> join(const JoinOptions& options, const train::Identity& identity, Clock& clock) {
  try {
    return std::make_unique<Joined>(options, read_info(options.coordinator_file), identity, clock);
  } catch (const group::Fenced& out) {
    if (options.ending != nullptr && out.finished) options.ending->exit_code = static_cast<int>(*out.finished);
    throw;
  }
}

}  // namespace sinew::distribute
