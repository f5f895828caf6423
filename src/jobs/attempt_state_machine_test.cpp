#include "jobs/attempt_state_machine.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <csignal>

#include "base/exit_code.h"
#include "base/random.h"

namespace sinew::jobs {
namespace {

AttemptFacts facts_of(std::vector<ProcessEnd> ends) {
  AttemptFacts facts;
  for (size_t rank = 0; rank < ends.size(); ++rank) facts.ranks.push_back(static_cast<int64_t>(rank));
  facts.ends = std::move(ends);
  return facts;
}

ExitReason ending_of(std::vector<ProcessEnd> ends, std::optional<StopReason> stop = std::nullopt) {
  return classify(facts_of(std::move(ends)), stop, "because").reason;
}

TEST(Classify, DistinguishesTheEndsOfProcesses) {
  EXPECT_EQ(ending_of({{0, 0}}), ExitReason::done);
  EXPECT_EQ(ending_of({{3, 0}}), ExitReason::exit);
  EXPECT_EQ(ending_of({{0, SIGSEGV}}), ExitReason::crash);
  EXPECT_EQ(ending_of({{75, 0}}), ExitReason::preempted);
  EXPECT_EQ(ending_of({{0, 0}, {4, 0}}), ExitReason::exit);
  EXPECT_EQ(ending_of({{75, 0}, {0, SIGTERM}}), ExitReason::preempted);
  EXPECT_EQ(ending_of({{0, SIGKILL}, {75, 0}}), ExitReason::crash);
}

TEST(Classify, UsesTheReasonOfAStop) {
  EXPECT_EQ(ending_of({{0, SIGTERM}}, StopReason::stop), ExitReason::ended);
  EXPECT_EQ(ending_of({{1, 0}}, StopReason::budget), ExitReason::ended);
  EXPECT_EQ(ending_of({{0, SIGTERM}, {75, 0}}, StopReason::stop), ExitReason::preempted);
  EXPECT_EQ(ending_of({{0, 0}}, StopReason::stop), ExitReason::done);  // exit code 0 counts as done
  EXPECT_EQ(ending_of({{75, 0}}, StopReason::timeout), ExitReason::timeout);
  EXPECT_EQ(ending_of({{0, SIGKILL}}, StopReason::memory), ExitReason::out_of_memory);
  EXPECT_EQ(ending_of({{5, 0}, {0, SIGTERM}}, StopReason::rank_failed), ExitReason::exit);
}

TEST(Classify, ATransientStartErrorCountsAsACrash) {
  AttemptFacts facts;
  facts.no_start = "cannot start x";
  EXPECT_EQ(classify(facts, {}, "").reason, ExitReason::no_start);
  facts.transient = true;
  EXPECT_EQ(classify(facts, {}, "").reason, ExitReason::crash);
  EXPECT_EQ(classify(facts, {}, "").why, "cannot start x");
  EXPECT_EQ(classify(facts, StopReason::stop, "stopped").reason, ExitReason::ended);
}

TEST(Classify, AnOrderlyStopGoesBeforeTheMemoryLimit) {
  AttemptFacts facts = facts_of({{0, SIGTERM}});
  facts.over_memory_limit = true;  // the kernel killed a process that the command could do without
  for (const StopReason stop : {StopReason::stop, StopReason::budget, StopReason::early_stop, StopReason::objective})
    EXPECT_EQ(classify(facts, stop, "because").reason, ExitReason::ended);
  EXPECT_EQ(classify(facts, StopReason::timeout, "because").reason, ExitReason::out_of_memory);
}

TEST(Classify, DistinguishesLackOfMemoryFromOtherKills) {
  AttemptFacts facts = facts_of({{0, SIGKILL}});
  EXPECT_EQ(classify(facts, {}, "").reason, ExitReason::crash);
  facts.machine_out_of_memory = true;
  EXPECT_EQ(classify(facts, {}, "").reason, ExitReason::out_of_memory);
  facts.ends[0].signal = SIGSEGV;
  EXPECT_EQ(classify(facts, {}, "").reason, ExitReason::crash);
  facts.over_memory_limit = true;
  EXPECT_EQ(classify(facts, {}, "").reason, ExitReason::out_of_memory);
}

TEST(Classify, NamesTheRankOrTheLostReaper) {
  AttemptFacts facts = facts_of({{0, SIGTERM}});
  facts.ranks = {2};
  EXPECT_EQ(classify(facts, {}, "").why, "rank 2 was killed by SIGTERM");
  EXPECT_EQ(classify(facts, {}, "").rank, 2);
  facts = {};
  facts.reaper_lost = true;
  EXPECT_EQ(classify(facts, {}, "").reason, ExitReason::crash);
  facts = facts_of({{0, 0}});
  facts.reaper_lost = true;  // another rank may have been killed together with the reaper
  EXPECT_EQ(classify(facts, {}, "").reason, ExitReason::crash);
}

TEST(Backoff, DoublesUpToTheLongest) {
  spec::RetryOptions retries;
  for (const double jitter : {0.0, 0.999}) {
    EXPECT_DOUBLE_EQ(backoff_seconds(retries, 1, jitter), 0.5 + 0.5 * jitter);
    EXPECT_DOUBLE_EQ(backoff_seconds(retries, 3, jitter), 4 * (0.5 + 0.5 * jitter));
    EXPECT_DOUBLE_EQ(backoff_seconds(retries, 1'000'000, jitter), 60 * (0.5 + 0.5 * jitter));
  }
}

// ---- random stories of a command, in simulated time ----------------------------------------------------------------

class Story {
 public:
  explicit Story(uint64_t seed) : random_(random_key({seed, 0x5707})) {
    spec::RetryOptions& retries = policy_.retries;
    for (int64_t* times : {&retries.crash, &retries.out_of_memory, &retries.exit, &retries.timeout, &retries.preempted})
      *times = static_cast<int64_t>(random_.below(4));
    if (random_.below(2) == 0) retries.exit_codes = {1, 2};
    policy_.grace_seconds = 0.5 + random_.uniform() * 20;
    if (random_.below(3) == 0) policy_.attempt_seconds = 1 + random_.uniform() * 50;
    if (random_.below(3) == 0) policy_.budget_seconds = 1 + random_.uniform() * 200;
    const uint64_t stops = random_.below(4);
    for (uint64_t i = 0; i < stops; ++i) stops_.push_back(random_.uniform() * 150);
    stops_.push_back(1000);  // this stop request ends a command that would run forever
    std::ranges::sort(stops_);
  }

  void live() {
    double then = -1;
    for (int turns = 0, still = 0; state_.phase != AttemptStateMachine::Phase::over; ++turns) {
      ASSERT_LT(turns, 5000) << "it does not end";
      still = now_ > then ? 0 : still + 1;
      ASSERT_LT(still, 20) << "it loops without waiting";
      then = now_;
      for (const Action& action : next_actions(now_, state_, policy_)) ASSERT_NO_FATAL_FAILURE(act(action));
      if (state_.phase == AttemptStateMachine::Phase::over) break;
      ASSERT_NO_FATAL_FAILURE(advance());
    }
    EXPECT_EQ(finishes_, 1);
    EXPECT_TRUE(next_actions(now_ + 1e6, state_, policy_).empty());
  }

 private:
  // Draws when and how the command ends by itself, and whether it reacts to SIGTERM.
  void start() {
    ASSERT_FALSE(runs_);
    ASSERT_TRUE(stopped_at_ < 0) << "started after it was asked to stop";
    attempt_began(now_, state_);
    runs_ = true;
    ++starts_;
    began_ = now_;
    ends_at_ = now_ + (random_.below(8) == 0 ? 1e9 : random_.uniform() * 60);
    asked_ = killed_ = -1;
    over_limit_ = rest_ = left_ = false;
    rest_kills_ = 0;
    const ProcessEnd ends[] = {{0, 0}, {75, 0}, {1, 0}, {9, 0}, {0, SIGSEGV}, {0, SIGKILL}};
    end_ = ends[random_.below(6)];
  }

  void act(const Action& action) {
    switch (action.kind) {
      case Action::Kind::start: ASSERT_NO_FATAL_FAILURE(start()); break;
      case Action::Kind::terminate:
        ASSERT_TRUE(runs_);
        ASSERT_LT(asked_, 0) << "asked twice";
        EXPECT_FALSE(action.why.empty());
        asked_ = now_;
        if (rest_ || random_.below(3) == 0) break;  // the command ignores SIGTERM
        ends_at_ = std::min(ends_at_, now_ + random_.uniform() * policy_.grace_seconds * 1.5);
        end_ = random_.below(2) == 0 ? ProcessEnd{75, 0} : ProcessEnd{0, SIGTERM};
        break;
      case Action::Kind::kill:
        ASSERT_TRUE(runs_);
        if (!state_.stop.immediate() && !over_limit_ && !rest_) {
          ASSERT_GE(asked_, 0) << "killed without SIGTERM before";
          EXPECT_GE(now_, asked_ + policy_.grace_seconds);
        }
        if (killed_ >= 0) {
          EXPECT_GE(now_, killed_ + 1) << "killed again and again";
        }
        killed_ = now_;
        if (rest_) {
          left_ = ++rest_kills_ == 4 && random_.below(2) == 0;
          if (rest_kills_ == 4 || random_.below(3) == 0) ends_at_ = std::min(ends_at_, now_ + random_.uniform());
          break;
        }
        ends_at_ = std::min(ends_at_, now_ + random_.uniform());
        end_ = {0, SIGKILL};
        break;
      case Action::Kind::finish: finish(action); break;
    }
  }

  void finish(const Action& action) {
    ++finishes_;
    EXPECT_FALSE(runs_) << "it finished while the command ran";
    EXPECT_FALSE(action.why.empty());
    const bool done = state_.last && state_.last->reason == ExitReason::done && !left_;
    EXPECT_EQ(action.status == "done", done) << "the story has no other reason for it";
    const std::map<std::string, std::vector<int>> codes = {{"done", {kDone}},
                                                           {"failed", {kTrainingError}},
                                                           {"budget", {kBudget}},
                                                           {"stopped", {kResumable, 129, 130, 143}}};
    ASSERT_TRUE(codes.contains(action.status)) << action.status;
    EXPECT_TRUE(std::ranges::count(codes.at(action.status), action.code)) << action.status << ' ' << action.code;
    if (policy_.budget_seconds == 0) {
      EXPECT_NE(action.status, "budget");
    }
    if (stopped_at_ < 0 && action.status == "stopped") {
      EXPECT_EQ(action.code, kResumable);
    }
    const spec::RetryOptions& r = policy_.retries;
    EXPECT_LE(starts_, 1 + r.crash + r.out_of_memory + r.exit + r.timeout + r.preempted);
    // A stop takes at most the grace, plus the time until the kill has been sent and has had its effect.
    if (stopped_at_ >= 0) {
      EXPECT_LE(now_, stopped_at_ + policy_.grace_seconds + 4 + (rest_ ? 8 : 0));
    }
    if (policy_.budget_seconds > 0) {
      EXPECT_LE(state_.used_seconds, policy_.budget_seconds + policy_.grace_seconds + 4 + (rest_ ? 8 : 0));
    }
  }

  // Advances to the next event: the command ends, a stop request arrives, or a deadline passes.
  void advance() {
    const auto moment = next_deadline(state_, policy_);
    double next = runs_ ? ends_at_ : 1e12;
    if (moment) next = std::min(next, *moment);
    if (!stops_.empty()) next = std::min(next, stops_.front());
    // A check of the command's limits may come first.
    if (runs_ && random_.below(3) == 0) next = std::min(next, now_ + random_.uniform() * 10);
    if (state_.phase == AttemptStateMachine::Phase::ended) next = now_;
    ASSERT_LT(next, 1e8) << "it would wait for ever";
    now_ = std::max(now_, next);
    if (!stops_.empty() && now_ >= stops_.front()) {
      stops_.erase(stops_.begin());
      if (stopped_at_ < 0) stopped_at_ = now_;
      const int signals[] = {SIGTERM, SIGINT, SIGHUP};
      request_stop(now_, state_, signals[random_.below(3)]);
    }
    if (runs_ && random_.below(16) == 0) {
      const auto stop = random_.below(2) == 0 ? StopReason::memory : StopReason::pids;
      over_limit_ = !stop_attempt(state_, stop, "over its limit").empty() || over_limit_;
    }
    if (!runs_ || now_ < ends_at_) return;
    // The rank has ended and has left other processes.
    if (!rest_ && random_.below(8) == 0) {
      rest_ = true;
      ends_at_ = now_ + (random_.below(4) == 0 ? 1e9 : random_.uniform() * 100);
      return only_leftovers_remain(now_, state_);
    }
    runs_ = false;
    std::vector<ProcessEnd> ends = {end_};
    // There are two ranks. The second one is ended if the first one fails.
    if (random_.below(3) == 0) {
      if (end_ != ProcessEnd{0, 0}) stop_attempt(state_, StopReason::rank_failed, "rank 0 failed");
      ends.push_back(end_ == ProcessEnd{0, 0} || random_.below(3) == 0 ? end_ : ProcessEnd{0, SIGTERM});
    }
    AttemptFacts facts = facts_of(std::move(ends));
    facts.unkillable = left_;
    facts.machine_out_of_memory = random_.below(4) == 0;
    const AttemptResult result = attempt_ended(now_, state_, policy_, facts, random_.uniform());
    EXPECT_FALSE(result.why.empty());
    const double longest = policy_.retries.longest_seconds;
    if (state_.phase == AttemptStateMachine::Phase::waiting) {
      EXPECT_LE(state_.next_start, now_ + longest);
    }
    if (result.reason == ExitReason::done || left_) {
      EXPECT_EQ(state_.phase, AttemptStateMachine::Phase::ended);
    }
  }

  RandomStream random_;
  Policy policy_;
  AttemptStateMachine state_;
  std::vector<double> stops_;
  double now_ = 0, began_ = 0, ends_at_ = 0, asked_ = -1, killed_ = -1, stopped_at_ = -1;
  ProcessEnd end_;
  bool runs_ = false, over_limit_ = false;
  bool rest_ = false;  // true: all ranks have ended, and other processes remain
  bool left_ = false;  // true: one of the remaining processes survives SIGKILL
  int rest_kills_ = 0;
  int64_t starts_ = 0, finishes_ = 0;
};

TEST(AttemptStateMachine, EveryRandomSequenceHasOneAllowedEnd) {
  for (uint64_t seed = 0; seed < 20'000; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    Story(seed).live();
    if (HasFailure()) return;
  }
}

// Returns the only action that is due.
Action only_action(double now, AttemptStateMachine& state, const Policy& policy) {
  const auto actions = next_actions(now, state, policy);
  EXPECT_EQ(actions.size(), 1U);
  return actions.empty() ? Action() : actions[0];
}

TEST(AttemptStateMachine, StartsNoAttemptWhileAProcessOfAnotherSurvives) {
  for (const ProcessEnd end : {ProcessEnd{0, SIGSEGV}, ProcessEnd{75, 0}, ProcessEnd{0, 0}}) {
    AttemptStateMachine state;
    Policy policy;
    policy.retries.crash = 5;
    attempt_began(0, state);
    AttemptFacts facts = facts_of({end});
    facts.unkillable = true;
    const AttemptResult result = attempt_ended(1, state, policy, facts, 0);
    EXPECT_TRUE(result.why.ends_with("cannot be killed")) << result.why;
    const Action action = only_action(1, state, policy);
    EXPECT_EQ(action.kind, Action::Kind::finish);
    EXPECT_EQ(action.status, "failed") << to_string(end);
    EXPECT_EQ(action.why, result.why);
  }
}

TEST(AttemptStateMachine, ASavedAttemptIsResumableWhenNoRetryIsLeft) {
  AttemptStateMachine state;
  Policy policy;
  policy.retries.preempted = 0;
  attempt_began(0, state);
  stop_attempt(state, StopReason::rank_failed, "rank 0 ended with exit code 75; the others are ended");
  attempt_ended(1, state, policy, facts_of({{75, 0}, {0, SIGTERM}}), 0);
  const Action action = only_action(1, state, policy);
  EXPECT_EQ(action.status, "stopped");
  EXPECT_EQ(action.code, kResumable);
}

TEST(AttemptStateMachine, TheFirstFailedRankDecidesAboutARetry) {
  Policy policy;
  policy.retries.exit = 1;
  policy.retries.exit_codes = {3};
  const auto is_forgiven = [&](std::vector<ProcessEnd> ends) {
    AttemptStateMachine state;
    attempt_began(0, state);
    stop_attempt(state, StopReason::rank_failed, "a rank failed");
    attempt_ended(1, state, policy, facts_of(std::move(ends)), 0);
    return state.phase == AttemptStateMachine::Phase::waiting;
  };
  EXPECT_TRUE(is_forgiven({{3, 0}, {75, 0}}));
  EXPECT_TRUE(is_forgiven({{0, 0}, {3, 0}, {1, 0}, {0, SIGTERM}}));
  EXPECT_FALSE(is_forgiven({{4, 0}, {3, 0}}));
}

// When a terminal closes, its shell and the kernel both send SIGHUP. The end of the session also sends SIGTERM.
TEST(AttemptStateMachine, AClosedTerminalLeavesTheCommandItsGrace) {
  for (const int second : {SIGHUP, SIGTERM}) {
    AttemptStateMachine state;
    const Policy policy;
    attempt_began(0, state);
    for (const int signal : {SIGHUP, second, SIGHUP}) request_stop(1, state, signal);
    EXPECT_EQ(only_action(1, state, policy).kind, Action::Kind::terminate);
    EXPECT_TRUE(next_actions(1.001, state, policy).empty());
    EXPECT_EQ(next_deadline(state, policy), 1 + policy.grace_seconds);
    attempt_ended(2, state, policy, facts_of({{0, SIGTERM}}), 0);
    EXPECT_EQ(only_action(2, state, policy).code, 128 + second);
  }
}

TEST(AttemptStateMachine, KillsLeftoversAfterABoundedTime) {
  AttemptStateMachine state;
  const Policy policy;
  attempt_began(0, state);
  only_leftovers_remain(10, state);
  only_leftovers_remain(11, state);
  EXPECT_TRUE(next_actions(69, state, policy).empty());
  EXPECT_EQ(next_deadline(state, policy), 70);
  for (double now = 70; now < 80; now += 2) {
    const auto actions = next_actions(now, state, policy);
    ASSERT_EQ(actions.size(), 1U);
    EXPECT_EQ(actions[0].kind, Action::Kind::kill);
    EXPECT_EQ(actions[0].why.empty(), now > 70) << "said once";
    EXPECT_TRUE(next_actions(now + 1, state, policy).empty());
    EXPECT_EQ(next_deadline(state, policy), now + 2);
  }
}

TEST(AttemptStateMachine, AStopAfterAKillGivesNoGraceAgain) {
  AttemptStateMachine state;
  Policy policy;
  policy.grace_seconds = 1000;
  attempt_began(0, state);
  stop_attempt(state, StopReason::memory, "too much");
  ASSERT_EQ(next_actions(1, state, policy)[0].kind, Action::Kind::kill);
  request_stop(2, state, SIGTERM);
  EXPECT_TRUE(next_actions(2, state, policy).empty());
  const auto actions = next_actions(*next_deadline(state, policy), state, policy);
  ASSERT_EQ(actions.size(), 1U);
  EXPECT_EQ(actions[0].kind, Action::Kind::kill);
}

TEST(AttemptStateMachine, AStopBetweenTwoAttemptsPreventsTheNextOne) {
  AttemptStateMachine state;
  Policy policy;
  policy.retries.crash = 1;
  attempt_began(0, state);
  attempt_ended(1, state, policy, facts_of({{0, SIGSEGV}}), 0);
  ASSERT_EQ(state.phase, AttemptStateMachine::Phase::waiting);
  request_stop(1.1, state, SIGINT);
  const auto actions = next_actions(1.1, state, policy);
  ASSERT_EQ(actions.size(), 1U);
  EXPECT_EQ(actions[0].kind, Action::Kind::finish);
  EXPECT_EQ(actions[0].code, 130);
}

}  // namespace
}  // namespace sinew::jobs
