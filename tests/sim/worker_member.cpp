// Implements the methods of group::Membership for a simulated worker. In the product, group::Member implements them
// with a mutex and threads.
#include <algorithm>

#include "worker.h"

namespace sinew::sim {
namespace {

constexpr double kLeaseSeconds = 1;

}  // namespace

void Worker::report(const std::function<void(cluster::MemberReport&)>& change) {
  const bool urgent = membership_->report([&](cluster::MemberReport& report) {
    change(report);
    if (!report.dissolve.empty()) scene_.judge.notices(trainer_->origin->attempt, false);
  });
  if (!urgent) return;
  dirty_ = true;
  speak();
}

bool Worker::leased() const {
  return process.alive() && role_->is_leader() && membership_->leased(scene_.world.now(), kLeaseSeconds);
}

void Worker::check() const {
  if (!out_.empty()) throw group::Fenced(out_);
}

group::Membership::Received Worker::receive_state() {
  wait_until([this] { return !out_.empty() || received_.complete(); });
  check();
  return {received_.result(), received_.collective(), received_.history()};
}

void Worker::boundary(const std::function<checkpoint::OwnedSnapshot()>& take) {
  if (!role_->owes_state() || !group_->may_give_state()) return;
  group_->ask_to_compare();
  const auto taken = std::make_shared<const checkpoint::OwnedSnapshot>(take());
  for (const MemberId joiner : role_->serve()) {
    scene_.world.say("process " + std::to_string(pid) + " sends its state of step " +
                     std::to_string(taken->step.value) + " to member " + std::to_string(joiner.value));
    later(scene_.world.random.uniform(0, 0.3),
          [this, taken, collective = group_->collective(), history = group_->history(), joiner] {
            send_state(taken, collective, history, joiner);
          });
  }
}

void Worker::maybe_caught_up() {
  if (role_->wants_to_compute(group_->compared() && !group_->ahead()))
    report([](cluster::MemberReport& report) { report.phase = cluster::Member::Phase::caught_up; });
}

void Worker::taken(int64_t number) {
  std::erase_if(requests_, [&](const auto& request) { return request.number <= number; });
  report([&](cluster::MemberReport& report) { report.taken_requests = std::max(report.taken_requests, number); });
}

}  // namespace sinew::sim
