#include "judge.h"

#include <algorithm>
#include <bit>

namespace sinew::sim {
namespace {

using group::simulation::Job;

constexpr double kLeaseSeconds = 1;

std::string number(int64_t value) {
  return std::to_string(value);
}

}  // namespace

uint64_t Control::with(uint64_t state) const {
  return random_key({state, std::bit_cast<uint64_t>(learning_rate), std::bit_cast<uint64_t>(batch_size)}).value;
}

void Judge::Tally::operator+=(const Tally& other) {
  stories += other.stories;
  attempts += other.attempts;
  steps += other.steps;
  views += other.views;
  recomputed += other.recomputed;
  effects += other.effects;
}

Judge::Tally Judge::tally() const {
  Tally tally{.stories = 1,
              .attempts = static_cast<int64_t>(attempts_.size()),
              .steps = 0,
              .views = static_cast<int64_t>(views_.size()),
              .recomputed = 0,
              .effects = effects_};
  for (const Attempt& attempt : attempts_) {
    tally.steps += static_cast<int64_t>(attempt.after.size());
    for (const auto& [shard, by] : attempt.computed) tally.recomputed += static_cast<int64_t>(by.size()) - 1;
  }
  return tally;
}

void Judge::complain(const std::string& what) {
  world_.say("WRONG: " + what);
  if (!complaint_) complaint_ = what;
  world_.stop();
}

// ---- members -------------------------------------------------------------------------------------------------------

void Judge::given(MemberId id) {
  if (!ids_.insert(id).second) complain("id " + number(id.value) + " is given twice");
}

void Judge::view(const cluster::View& heard) {
  const std::string text = to_json(heard);
  if (views_.emplace(heard.generation, text).first->second != text)
    complain("there are two views " + number(heard.generation.value));
}

// A member that the group has fenced and that has not heard of it may find a newer checkpoint than the others. It gets
// an attempt of its own, in which it makes no step.
int64_t Judge::begins(MemberId id, const cluster::View& view, int64_t step, uint64_t state) {
  const auto computing = view.computing();
  // The newest attempt that fits. A member whose view changed before it began starts with the next group that contains
  // it.
  const auto theirs = std::find_if(attempts_.rbegin(), attempts_.rend(), [&](const Attempt& one) {
    return one.members.contains(id) && one.begins_at == step && one.before == state;
  });
  if (theirs != attempts_.rend()) {
    theirs->members.insert(computing.begin(), computing.end());
    return attempts_.rend() - theirs - 1;
  }
  world_.say("attempt " + number(static_cast<int64_t>(attempts_.size())) + " begins at step " + number(step));
  if (step < durable_)
    complain("member " + number(id.value) + " begins at step " + number(step) + ", and step " + number(durable_) +
             " was durable");
  attempts_.push_back({.begins_at = step,
                       .members = {computing.begin(), computing.end()},
                       .after = {},
                       .before = state,
                       .computed = {},
                       .committed = {}});
  return static_cast<int64_t>(attempts_.size()) - 1;
}

// ---- steps ---------------------------------------------------------------------------------------------------------

// A shard is computed once while a member has its result. An exception is a member that has not heard yet that its work
// moved to others.
void Judge::delivers(int64_t attempt, int64_t step, int64_t shard, int64_t pid) {
  auto& by = attempts_[static_cast<size_t>(attempt)].computed[{step, shard}];
  for (const int64_t before : by) {
    if (!is_disturbed(before) && !is_disturbed(pid))
      complain("process " + number(pid) + " computes shard " + number(shard) + " of step " + number(step) +
               ", and process " + number(before) + " has it");
  }
  by.push_back(pid);
}

void Judge::commits(const Commit& commit) {
  Attempt& of = attempts_[static_cast<size_t>(commit.attempt)];
  const std::string step = "step " + number(commit.step);
  const auto before = of.after.find(commit.step - 1);
  const bool first = commit.step == of.begins_at;
  if (!first && before == of.after.end()) return complain(step + " is committed and the one before is not");
  if (commit.before != (first ? of.before : before->second))
    return complain(step + " is computed from another state than the group's");
  const auto [found, added] = of.after.emplace(commit.step, commit.after);
  if (found->second != commit.after) return complain("there are two digests for " + step);
  of.committed[commit.step].push_back(commit.pid);
  if (!added) return;
  const uint64_t numbers = commit.control.with(commit.before);
  const auto expected = job_.expected(commit.step, numbers);
  const auto wrong = difference(expected, commit.rows, commit.reduced);
  if (!wrong.empty()) complain(step + " is not what one undisturbed member gets: " + wrong);
  if (Job::next_state(numbers, expected.rows, expected.reduced) != commit.after)
    complain(step + " has another digest than one undisturbed member's");
}

bool Judge::result_is_gone(int64_t attempt, int64_t step) const {
  const auto& committed = attempts_[static_cast<size_t>(attempt)].committed;
  const auto by = committed.find(step);
  return by != committed.end() && std::ranges::all_of(by->second, [&](int64_t pid) { return is_disturbed(pid); });
}

// ---- effects on the disk --------------------------------------------------------------------------------------------

void Judge::durable(int64_t step) {
  durable_ = std::max(durable_, step);
}

void Judge::effect(int64_t pid, bool leads, double confirmed, const std::string& path) {
  ++effects_;
  if (leads && world_.now() - confirmed < kLeaseSeconds) return;
  complain("process " + number(pid) + " changes " + path + (leads ? " and its lease is over" : " and does not lead"));
}

// If the only worker of a run is asked to leave, the run stops and can be resumed. To the supervisor this may look like
// a failure, when the coordinator refuses the next worker before it has joined.
void Judge::ends(int code) {
  constexpr int kResumable = 75, kTrainingError = 1;
  if (stops_ && (code == kResumable || code == kTrainingError)) return;
  if (code != 0) return complain("the run ends with exit code " + number(code));
  const bool all_made = std::any_of(attempts_.begin(), attempts_.end(), [&](const Attempt& one) {
    return one.begins_at == job_.collectives() || one.after.contains(job_.collectives() - 1);
  });
  if (!all_made) return complain("the run ends and its last step was not made");
  if (durable_ != job_.collectives()) complain("the run ends and its last state is not durable");
  for (const Attempt& attempt : attempts_) {
    for (const auto& [step, after] : attempt.after) {
      for (int64_t shard = 0; shard < job_.shape(step).shards; ++shard) {
        if (!attempt.computed.contains({step, shard}))
          complain("nobody computed shard " + number(shard) + " of step " + number(step));
      }
    }
  }
}

}  // namespace sinew::sim
