// A run's membership in the group.
#include <unistd.h>

#include "base/error.h"
#include "base/process.h"
#include "distribute/distribute.h"
#include "distribute/group_reducer.h"
#include "distribute/small_sums.h"

namespace sinew::distribute {
namespace {

constexpr double kTellSeconds = 0.2;  // between two reports of step and speed
constexpr double kLookSeconds = 0.005;

using Phase = cluster::Member::Phase;

cluster::CoordinatorInfo read_info(const std::string& path) {
  if (auto info = cluster::read_coordinator_info_file(path)) return *info;
  throw Error("RUN_WITHOUT_COORDINATOR", "there is no " + path + ", which says where the run's coordinator listens",
              "check that the run's supervisor (sinew train) is alive");
}

group::MemberOptions member_options(const JoinOptions& options, const train::Identity& identity) {
  const cluster::CoordinatorInfo info = read_info(options.coordinator_file);
  group::MemberOptions wanted;
  wanted.client.url = [path = options.coordinator_file] { return read_info(path).url; };
  wanted.client.secret = info.secret;
  wanted.client.host = host_name();
  wanted.client.pid = getpid();
  wanted.client.identity = {identity.job, identity.machine, identity.probe};
  wanted.link.listen = options.listen;
  wanted.link.advertise = options.advertise;
  wanted.link.job = identity.job;
  wanted.link.secret = info.secret;
  wanted.link.tls = info.with_tls();
  wanted.group.merge = merged;
  wanted.group.patience_seconds = options.patience_seconds;
  return wanted;
}

class GroupMembers final : public train::Members {
 public:
  GroupMembers(const JoinOptions& options, const train::Identity& identity, Clock& clock)
      : ending_(options.ending),
        clock_(clock),
        member_(member_options(options, identity), clock),
        group_(member_.group()),
        reducer_(group_, options.pace, clock) {}

  ~GroupMembers() override {
    if (ending_ == nullptr) return;
    if (leaving_) ending_->exit_code = kResumable;
    if (const auto code = member_.finished()) ending_->exit_code = static_cast<int>(*code);
  }

  train::Reducer& reducer() override { return reducer_; }
  bool is_leader() const override { return member_.is_leader(); }
  bool has_peers() const override { return group_.view().computing().size() > 1; }
  bool is_alone() const override { return group_.view().members.size() < 2; }
  bool may_write() const override { return member_.leased(); }

  std::optional<checkpoint::Loaded> take_state() override {
    if (!member_.joining()) return std::nullopt;
    group::Member::Received received = member_.receive_state();
    collective_ = received.collective;
    history_ = received.history;
    return std::move(received.state);
  }

  void begin(Step step, Digest origin) override { group_.start_at(collective_, {step.value, origin.high}, history_); }

  void boundary(const train::TrainingState& state, const std::function<checkpoint::OwnedSnapshot()>& take) override {
    member_.boundary(take);
    member_.maybe_caught_up();
    mark_taken(state.control.newest_request());
    const double now = clock_.monotonic_seconds();
    if (now - reported_at_ < kTellSeconds) return;
    reported_at_ = now;
    member_.client().report([&](cluster::MemberReport& report) {
      report.step = state.step.value;
      report.speed = reducer_.speed();
    });
  }

  // A request counts as taken when the step is committed whose control message contained it. Then the control logs of
  // all members contain it. Every member reports that, because the leader and the coordinator may die first. A request
  // that makes no entry of the control log counts as taken at the next call.
  std::vector<train::ControlEntry> requests() override {
    mark_taken(std::exchange(given_, 0));
    std::vector<train::ControlEntry> entries;
    for (const cluster::ControlRequest& request : member_.requests()) {
      if (request.number <= taken_) continue;
      given_ = std::max(given_, request.number);
      if (const auto kind = train::control_kind(request.kind))
        entries.push_back({Step(0), *kind, request.value, request.reason, false, request.number});
    }
    return entries;
  }

  void report(std::optional<Step> durable, const std::string& facts_json) override {
    member_.client().report([&](cluster::MemberReport& report) {
      if (durable) report.durable_step = durable->value;
      report.facts = facts_json;
    });
  }

  void leave() override {
    leaving_ = true;
    member_.client().report([](cluster::MemberReport& report) { report.phase = Phase::leaving; });
  }

  void check_membership() const override { member_.check(); }

  void finished(int exit_code) override {
    member_.client().report([&](cluster::MemberReport& report) {
      report.finished = exit_code;
      report.phase = Phase::finished;
    });
    // The other members wait for this report. It must reach the coordinator before the connection closes.
    const double end = clock_.monotonic_seconds() + 10;
    while (!member_.finished() && clock_.monotonic_seconds() < end) clock_.sleep_seconds(kLookSeconds);
  }

  std::optional<int> wait_for_end() override {
    while (true) {
      if (const auto code = member_.finished()) return static_cast<int>(*code);
      member_.check();
      if (member_.is_leader()) return std::nullopt;
      clock_.sleep_seconds(kLookSeconds);
    }
  }

 private:
  void mark_taken(int64_t number) {
    if (number > taken_) member_.taken(taken_ = number);
  }

  Ending* ending_;
  Clock& clock_;
  group::Member member_;
  group::Group& group_;  // the member's
  GroupReducer reducer_;
  int64_t collective_ = 0;
  int64_t given_ = 0, taken_ = 0;  // highest numbers of people's requests
  std::optional<uint64_t> history_;
  double reported_at_ = 0;
  bool leaving_ = false;
};

}  // namespace

std::unique_ptr<train::Members> join(const JoinOptions& options, const train::Identity& identity, Clock& clock) {
  try {
    return std::make_unique<GroupMembers>(options, identity, clock);
  } catch (const group::Fenced& out) {
    if (options.ending != nullptr && out.finished) options.ending->exit_code = static_cast<int>(*out.finished);
    throw;
  }
}

}  // namespace sinew::distribute
