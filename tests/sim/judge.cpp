#include "judge.h"

#include <algorithm>
#include <bit>

namespace sinew::sim {
namespace {

using group::simulation::CollectiveShape;
using group::simulation::Job;

constexpr double kLeaseSeconds = 1;

std::string number(int64_t value) {
  return std::to_string(value);
}

std::vector<CollectiveShape> random_shapes(uint64_t seed) {
  RandomStream random(derive(random_key({seed}), "shapes"));
  const auto shards = static_cast<int64_t>(1 + random.below(12));
  const int64_t large[] = {300, 2500, 6000};
  const std::vector<int64_t> lengths = {large[random.below(3)], static_cast<int64_t>(random.below(700)), 1};
  const size_t steps = 30 + random.below(40);
  std::vector<CollectiveShape> shapes(3 * steps + 2, {.shards = shards, .lengths = lengths});
  for (size_t other = steps; other < shapes.size(); ++other) shapes[other].lengths.clear();
  for (size_t comparison = 2 * steps + 1; comparison < shapes.size(); ++comparison) shapes[comparison].shards = 1;
  return shapes;
}

bool is_same(const loop::ControlEntry& a, const loop::ControlEntry& b) {
  return a.effective == b.effective && a.kind == b.kind && a.value == b.value && a.request == b.request;
}

}  // namespace

TrainingJob::TrainingJob(uint64_t seed) : numbers(seed, random_shapes(seed)), steps((numbers.collectives() - 2) / 3) {}

uint64_t Control::with(uint64_t state) const {
  return random_key({state, std::bit_cast<uint64_t>(learning_rate), std::bit_cast<uint64_t>(batch_size)}).value;
}

uint64_t Control::of_shards(uint64_t state) const {
  return Control{.batch_size = batch_size}.with(state);
}

void Judge::Tally::operator+=(const Tally& other) {
  stories += other.stories;
  attempts += other.attempts;
  steps += other.steps;
  views += other.views;
  recomputed += other.recomputed;
  effects += other.effects;
  entries += other.entries;
  changes += other.changes;
  noticed += other.noticed;
  splits += other.splits;
  not_judged += other.not_judged;
  lies += other.lies;
  blamed += other.blamed;
  replaced += other.replaced;
  elections += other.elections;
}

Judge::Tally Judge::tally() const {
  Tally tally{.stories = 1,
              .attempts = static_cast<int64_t>(attempts_.size()),
              .steps = 0,
              .views = static_cast<int64_t>(views_.size()),
              .recomputed = 0,
              .effects = effects_,
              .entries = 0,
              .changes = changes_,
              .noticed = noticed_,
              .splits = splits_,
              .not_judged = not_judged_ ? 1 : 0,
              .lies = lies_,
              .blamed = static_cast<int64_t>(blamed_.size()),
              .replaced = replaced_,
              .elections = elections_};
  for (const Attempt& attempt : attempts_) {
    tally.steps += static_cast<int64_t>(attempt.after.size());
    for (const auto& [shard, by] : attempt.computed) tally.recomputed += static_cast<int64_t>(by.size()) - 1;
  }
  for (const History& history : histories_) tally.entries += static_cast<int64_t>(history.entries.size());
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

// A fenced member that does not know it yet may load a newer checkpoint than the other members, or, if it was
// suspended, an older one. Such a member gets an attempt of its own, in which it commits no step.
Origin Judge::begins(MemberId id, const cluster::View& view, int64_t step, uint64_t state, std::optional<Origin> from,
                     bool disturbed) {
  const int64_t history = static_cast<int64_t>(histories_.size());
  histories_.push_back({step, from ? histories_[static_cast<size_t>(from->history)].control : Control(), {}});
  const auto computing = view.computing();
  // Looks for the newest attempt with this member, step and state. If there is one, adds the computing members of the
  // member's view to it, because the view may have changed before the member began.
  const auto theirs = std::find_if(attempts_.rbegin(), attempts_.rend(), [&](const Attempt& one) {
    return one.members.contains(id) && one.begins_at == step && one.before == state;
  });
  if (theirs != attempts_.rend()) {
    theirs->members.insert(computing.begin(), computing.end());
    return {attempts_.rend() - theirs - 1, history};
  }
  world_.say("attempt " + number(static_cast<int64_t>(attempts_.size())) + " begins at step " + number(step));
  if (step < durable_ && !disturbed)
    complain("member " + number(id.value) + " begins at step " + number(step) + ", and step " + number(durable_) +
             " was durable");
  Attempt* const before = from ? &attempts_[static_cast<size_t>(from->attempt)] : nullptr;
  if (before && before->wrong_from && step > *before->wrong_from && !not_judged_)
    complain("member " + number(id.value) + " begins at step " + number(step) + " from a state that may be wrong");
  // A state that may be wrong has no digest in `digests`.
  std::map<int64_t, Digest> digests;
  if (before)
    if (const auto found = before->digests.find(step); found != before->digests.end()) digests.insert(*found);
  attempts_.push_back({.begins_at = step,
                       .members = {computing.begin(), computing.end()},
                       .after = {},
                       .before = state,
                       .wrong_from = {},
                       .noticed = false,
                       .has_liar = false,
                       .digests = std::move(digests),
                       .computed = {},
                       .committed = {}});
  return {static_cast<int64_t>(attempts_.size()) - 1, history};
}

// ---- steps ---------------------------------------------------------------------------------------------------------

// Complains if a process computes a shard of which another process has the result. Disturbed processes are excepted,
// because they perhaps do not know yet that others took over their work.
void Judge::delivers(int64_t attempt, int64_t step, int64_t shard, int64_t pid) {
  auto& by = attempts_[static_cast<size_t>(attempt)].computed[{step, shard}];
  for (const int64_t before : by) {
    if (!is_disturbed(before) && !is_disturbed(pid))
      complain("process " + number(pid) + " computes shard " + number(shard) + " of step " + number(step) +
               ", and process " + number(before) + " has it");
  }
  by.push_back(pid);
}

Origin Judge::commits(const Commit& commit) {
  check_control(commit);
  judge_result(attempts_[static_cast<size_t>(commit.origin.attempt)], commit);
  return take_control_message(commit.origin, commit.step, commit.reduced.control_message);
}

void Judge::judge_result(Attempt& of, const Commit& commit) {
  const std::string step = "step " + number(commit.step);
  of.committed[commit.step].push_back(commit.pid);
  if (may_be_wrong(of, commit.step)) return;
  const auto before = of.after.find(commit.step - 1);
  const bool first = commit.step == of.begins_at;
  if (!first && before == of.after.end()) return complain(step + " is committed and the one before is not");
  if (commit.before != (first ? of.before : before->second))
    return complain(step + " is computed from another state than the group's");
  const auto [found, added] = of.after.emplace(commit.step, commit.after);
  if (found->second != commit.after) return complain("there are two digests for " + step);
  if (!added) return;
  const auto expected = job_.numbers.expected(commit.step, commit.control.of_shards(commit.before));
  const auto wrong = difference(expected, commit.rows, commit.reduced);
  if (!wrong.empty()) complain(step + " is not what one undisturbed member gets: " + wrong);
  if (Job::next_state(commit.control.with(commit.before), expected.rows, expected.reduced) != commit.after)
    complain(step + " has another digest than one undisturbed member's");
}

// Checks that a step used the learning rate and batch size of the control messages before it, and that the member's
// control log has each of their entries once.
void Judge::check_control(const Commit& commit) {
  const History& of = histories_[static_cast<size_t>(commit.origin.history)];
  if (of.control != commit.control)
    complain("step " + number(commit.step) + " has another learning rate or batch size than was asked for");
  std::vector<loop::ControlEntry> due, has;
  const auto take = [&](const std::vector<loop::ControlEntry>& from, std::vector<loop::ControlEntry>& to) {
    std::ranges::copy_if(from, std::back_inserter(to), [&](const loop::ControlEntry& entry) {
      return entry.effective.value > of.begins_at && entry.effective.value <= commit.step;
    });
  };
  take(of.entries, due);
  take(commit.log.entries(), has);
  if (!std::ranges::equal(due, has, is_same))
    complain("before step " + number(commit.step) + " the control log of process " + number(commit.pid) + " has " +
             number(static_cast<int64_t>(has.size())) + " entries that are not the " +
             number(static_cast<int64_t>(due.size())) + " of the control messages");
  for (const loop::ControlEntry& entry : has) {
    if (!entry.done && entry.kind != loop::ControlEntry::Kind::stop)
      complain("step " + number(commit.step) + " begins, and its control entry was not obeyed");
  }
}

Origin Judge::take_control_message(Origin before, int64_t step, const std::string& message) {
  const std::vector<loop::ControlEntry> entries = loop::step_message_of(message).entries;
  if (entries.empty()) return before;
  const auto [known, added] = next_.emplace(std::pair(before.history, message), histories_.size());
  if (!added) return {before.attempt, known->second};
  History of = histories_[static_cast<size_t>(before.history)];
  using Kind = loop::ControlEntry::Kind;
  for (const loop::ControlEntry& entry : entries) {
    if (entry.effective.value != step + 1) complain("a control entry of step " + number(step) + " is of another step");
    for (const loop::ControlEntry& earlier : of.entries) {
      if (entry.request > 0 && entry.request <= earlier.request)
        complain("request " + number(entry.request) + " is obeyed twice, or after a later one");
    }
    if (entry.kind == Kind::learning_rate) of.control.learning_rate = entry.value;
    if (entry.kind == Kind::batch_size) of.control.batch_size = static_cast<double>(static_cast<int64_t>(entry.value));
    if (entry.kind == Kind::stop) stops_ = true;
    of.entries.push_back(entry);
  }
  histories_.push_back(std::move(of));
  return {before.attempt, known->second};
}

void Judge::evaluates(int64_t pid, int64_t attempt, int64_t at, uint64_t state, const group::Reduced& reduced) {
  Attempt& of = attempts_[static_cast<size_t>(attempt)];
  of.committed[at].push_back(pid);
  if (may_be_wrong(of, at - job_.steps)) return;
  const auto wrong = difference(job_.numbers.expected(at, state), {}, reduced);
  if (!wrong.empty()) complain("an evaluation is not what one undisturbed member gets: " + wrong);
}

void Judge::compares(int64_t pid, int64_t attempt, int64_t at) {
  attempts_[static_cast<size_t>(attempt)].committed[at].push_back(pid);
}

void Judge::digest(int64_t attempt, int64_t step, Digest digest) {
  if (const Attempt& of = attempts_[static_cast<size_t>(attempt)]; of.wrong_from && step > *of.wrong_from) return;
  if (attempts_[static_cast<size_t>(attempt)].digests.emplace(step, digest).first->second != digest)
    complain("the state at step " + number(step) + " has two digests");
}

// ---- memory that changes --------------------------------------------------------------------------------------------

void Judge::memory_changes(int64_t pid, int64_t attempt, int64_t step) {
  Attempt& of = attempts_[static_cast<size_t>(attempt)];
  of.wrong_from = std::min(of.wrong_from.value_or(step), step);
  changed_[pid] = attempt;
  ++changes_;
}

void Judge::notices(int64_t attempt, bool is_split) {
  Attempt& of = attempts_[static_cast<size_t>(attempt)];
  if (!of.wrong_from && !of.has_liar && !not_judged_)
    complain("the members find different states, and no memory has changed");
  // A second change may leave no majority after the first one was noticed.
  if (is_split && !std::exchange(of.split, true)) ++splits_;
  if (!std::exchange(of.noticed, true)) ++noticed_;
}

// A member that lies is fenced, so its process counts as disturbed.
void Judge::lies(int64_t pid, MemberId id, int64_t attempt) {
  world_.say("process " + number(pid) + ", member " + number(id.value) + ", computes a wrong result");
  attempts_[static_cast<size_t>(attempt)].has_liar = true;
  liars_.insert(id);
  ++lies_;
  disturbed(pid);
}

void Judge::blames(MemberId id) {
  blamed_.insert(id);
  if (!liars_.contains(id)) complain("member " + number(id.value) + " is blamed for a wrong result, and had none");
}

void Judge::is_alone(MemberId id, int64_t attempt, int64_t step) {
  if (!liars_.contains(id)) return;
  not_judged_ = true;
  Attempt& of = attempts_[static_cast<size_t>(attempt)];
  of.wrong_from = std::min(of.wrong_from.value_or(step), step);
}

// If the memory of this process has changed unnoticed, the other members may continue with wrong results that it
// contributed. No comparison can find them any more, so the story is not judged.
void Judge::disturbed(int64_t pid) {
  disturbed_.insert(pid);
  const auto found = changed_.find(pid);
  if (found != changed_.end() && !attempts_[static_cast<size_t>(found->second)].noticed) not_judged_ = true;
}

bool Judge::result_is_gone(int64_t attempt, int64_t step) const {
  const auto& committed = attempts_[static_cast<size_t>(attempt)].committed;
  const auto by = committed.find(step);
  return by != committed.end() && std::ranges::all_of(by->second, [&](int64_t pid) { return is_disturbed(pid); });
}

// ---- effects on the disk --------------------------------------------------------------------------------------------

void Judge::durable(int64_t step, int64_t attempt) {
  durable_ = std::max(durable_, step);
  const Attempt& of = attempts_[static_cast<size_t>(attempt)];
  if (of.wrong_from && step > *of.wrong_from && !not_judged_)
    complain("the checkpoint of step " + number(step) + " has a state that may be wrong");
}

void Judge::makes(int64_t term, const cluster::View& made) {
  if (term < view_term_)
    complain("the coordinator of term " + number(term) + " makes view " + number(made.generation.value) +
             " after one of term " + number(view_term_) + " made a view");
  view_term_ = std::max(view_term_, term);
}

void Judge::elects() {
  ++elections_;
}

void Judge::effect(int64_t pid, bool leads, double confirmed, int64_t term, const std::string& path) {
  ++effects_;
  if (term < effect_term_)
    complain("process " + number(pid) + " changes " + path + " under term " + number(term) + ", and term " +
             number(effect_term_) + " had effects before");
  effect_term_ = std::max(effect_term_, term);
  if (leads && world_.now() - confirmed < kLeaseSeconds) return;
  complain("process " + number(pid) + " changes " + path + (leads ? " and its lease is over" : " and does not lead"));
}

// A former leader that was suspended may continue at any call of the disk.
void Judge::renames(int64_t member, int64_t newest, const std::string& path) {
  appends(member, path);
  if (newest > member)
    complain("member " + number(member) + " changes " + path + ", and member " + number(newest) + " has taken over");
}

void Judge::appends(int64_t member, const std::string& path) {
  int64_t& newest = changed_by_[path];
  if (newest > member)
    complain("member " + number(member) + " changes " + path + ", and member " + number(newest) + " has changed it");
  newest = std::max(newest, member);
}

// A run may end in three ways:
// - with exit code 0.
// - stopped, because its only worker was asked to leave. The exit code is "resumable", or "training error" if the
//   supervisor started another worker meanwhile: the coordinator of a stopped run refuses that worker.
// - with a training error, after the members' states differed and no majority agreed.
void Judge::ends(int code) {
  constexpr int kResumable = 75, kTrainingError = 1;
  if (stops_ && (code == kResumable || code == kTrainingError)) return;
  if (splits_ > 0 && code == kTrainingError) return;
  if (code != 0) return complain("the run ends with exit code " + number(code));
  ended_well_ = true;
  for (const Attempt& attempt : attempts_) {
    for (const auto& [step, after] : attempt.after) {
      for (int64_t shard = 0; shard < job_.numbers.shape(step).shards; ++shard) {
        if (!attempt.computed.contains({step, shard}))
          complain("nobody computed shard " + number(shard) + " of step " + number(step));
      }
    }
  }
}

// Checks that the last state is durable and that the ledger has every step once, in order. For each line, some attempt
// must have the digest of this line and the digest of the line before. No metrics may be there twice.
void Judge::ends_with(const std::vector<std::pair<int64_t, Digest>>& ledger, std::optional<Step> saved,
                      const std::vector<std::pair<int64_t, std::string>>& metrics) {
  if (not_judged_) return;
  std::set<std::pair<int64_t, std::string>> seen;
  for (const auto& line : metrics) {
    if (!seen.insert(line).second)
      return complain("the metrics have two lines of step " + number(line.first) + " with " + line.second);
  }
  if (saved != Step(job_.steps)) return complain("the run ends and its last state is not durable");
  for (size_t i = 0; i < ledger.size(); ++i) {
    const auto& [step, digest] = ledger[i];
    if (step != static_cast<int64_t>(i) + 1)
      return complain("line " + number(static_cast<int64_t>(i) + 1) + " of the ledger is of step " + number(step));
    const bool known = std::ranges::any_of(attempts_, [&, at = step, its = digest](const Attempt& of) {
      const auto has = [&](int64_t of_step, Digest value) {
        const auto found = of.digests.find(of_step);
        return found != of.digests.end() && found->second == value;
      };
      return of.after.contains(at - 1) && has(at, its) && (i == 0 || has(at - 1, ledger[i - 1].second));
    });
    if (!known) return complain("the ledger has a digest of step " + number(step) + " that does not follow");
  }
  if (static_cast<int64_t>(ledger.size()) != job_.steps)
    complain("the ledger ends at step " + number(static_cast<int64_t>(ledger.size())));
}

}  // namespace sinew::sim
