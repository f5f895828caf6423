#include "loop/group_members.h"

#include <utility>

#include "base/exit_code.h"
#include "group/group.h"

namespace sinew::loop {
namespace {

constexpr double kTellSeconds = 0.2;  // the time between two reports of step and speed to the coordinator
constexpr double kLookSeconds = 0.005;
constexpr double kFinishedSeconds = 10;  // how long the leader waits until the coordinator knows of the end
constexpr double kDissolveSeconds = 60;  // how long the coordinator may take to end the group

using Phase = cluster::Member::Phase;

}  // namespace

GroupMembers::GroupMembers(group::Membership& member, std::function<double()> speed, Clock& clock,
                           bool has_run_directory)
    : member_(member), speed_(std::move(speed)), clock_(clock), has_run_directory_(has_run_directory) {}

bool GroupMembers::is_leader() const {
  return member_.is_leader();
}
bool GroupMembers::has_peers() const {
  return computing() > 1;
}
int64_t GroupMembers::computing() const {
  return static_cast<int64_t>(member_.group().view().computing().size());
}
bool GroupMembers::is_alone() const {
  return member_.group().view().members.size() < 2;
}
bool GroupMembers::may_write() const {
  return member_.leased();
}

std::optional<checkpoint::Loaded> GroupMembers::take_state() {
  if (!member_.joining()) return std::nullopt;
  group::Membership::Received received = member_.receive_state();
  collective_ = received.collective;
  history_ = received.history;
  return std::move(received.state);
}

void GroupMembers::begin(Step step, Digest origin) {
  member_.group().start_at(collective_, {step.value, origin.high}, history_);
}

void GroupMembers::boundary(const State& state, const std::function<checkpoint::OwnedSnapshot()>& take) {
  member_.boundary(take);
  member_.maybe_caught_up();
  mark_taken(state.control.newest_request());
  const double now = clock_.monotonic_seconds();
  if (now - reported_at_ < kTellSeconds) return;
  reported_at_ = now;
  member_.report([&](cluster::MemberReport& report) {
    report.step = state.step.value;
    report.speed = speed_();
  });
}

// A request counts as taken once the step whose control message contained it is committed, because the control logs of
// all members then contain it. Every member reports this, because the leader and the coordinator may die first. A
// request that makes no entry of the control log counts as taken at the next call.
std::vector<ControlEntry> GroupMembers::requests() {
  mark_taken(std::exchange(given_, 0));
  std::vector<ControlEntry> entries;
  for (const cluster::ControlRequest& request : member_.requests()) {
    if (request.number <= taken_) continue;
    given_ = std::max(given_, request.number);
    if (const auto kind = control_kind(request.kind))
      entries.push_back({Step(0), *kind, request.value, request.reason, false, request.number});
  }
  return entries;
}

void GroupMembers::report(std::optional<Step> durable, const std::string& facts_json) {
  member_.report([&](cluster::MemberReport& report) {
    if (durable) report.durable_step = durable->value;
    report.facts = facts_json;
  });
}

void GroupMembers::leave() {
  leaving_ = true;
  member_.report([](cluster::MemberReport& report) { report.phase = Phase::leaving; });
}

// Waits until the coordinator has fenced this member: it has then fenced all others, too. Otherwise a member that does
// not know yet that the group ends could go on alone.
void GroupMembers::dissolve(const std::string& why) {
  member_.report([&](cluster::MemberReport& report) { report.dissolve = why; });
  const double end = clock_.monotonic_seconds() + kDissolveSeconds;
  while (clock_.monotonic_seconds() < end) {
    member_.check();
    clock_.sleep_seconds(kLookSeconds);
  }
  throw group::Fenced(why);
}

GoingBack GroupMembers::going_back() const {
  return member_.group().view().going_back;
}

void GroupMembers::check_membership() const {
  member_.check();
}

std::optional<std::string> GroupMembers::unled(const std::string& run_directory) const {
  if (!member_.unled()) return std::nullopt;
  if (member_.joining()) return "this worker had not caught up with the others";
  return cluster::why_not_last(run_directory, member_.group().id());
}

void GroupMembers::finished(int exit_code) {
  member_.report([&](cluster::MemberReport& report) {
    report.finished = exit_code;
    report.phase = Phase::finished;
  });
  // The other members wait for this report. It must reach the coordinator before the connection closes.
  const double end = clock_.monotonic_seconds() + kFinishedSeconds;
  while (!member_.finished() && clock_.monotonic_seconds() < end) clock_.sleep_seconds(kLookSeconds);
}

std::optional<int> GroupMembers::wait_for_end() {
  while (true) {
    if (const auto code = member_.finished()) return static_cast<int>(*code);
    member_.check();
    if (member_.is_leader()) return std::nullopt;
    clock_.sleep_seconds(kLookSeconds);
  }
}

int GroupMembers::exit_code_if_fenced() const {
  if (const auto code = member_.finished()) return static_cast<int>(*code);
  return leaving_ ? kResumable : kRejoin;
}

void GroupMembers::mark_taken(int64_t number) {
  if (number > taken_) member_.taken(taken_ = number);
}

}  // namespace sinew::loop
