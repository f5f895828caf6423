#include "jobs/conduct.h"

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

Ending ending_of(std::vector<ProcessEnd> ends, std::optional<Cause> cause = std::nullopt) {
  return judge(facts_of(std::move(ends)), cause, "because").ending;
}

TEST(Judge, TellsEndsApart) {
  EXPECT_EQ(ending_of({{0, 0}}), Ending::done);
  EXPECT_EQ(ending_of({{3, 0}}), Ending::exit);
  EXPECT_EQ(ending_of({{0, SIGSEGV}}), Ending::crash);
  EXPECT_EQ(ending_of({{75, 0}}), Ending::preempted);
  EXPECT_EQ(ending_of({{0, 0}, {4, 0}}), Ending::exit);
  EXPECT_EQ(ending_of({{75, 0}, {0, SIGTERM}}), Ending::preempted);
  EXPECT_EQ(ending_of({{0, SIGKILL}, {75, 0}}), Ending::crash);
}

TEST(Judge, TakesAWishOfOursForTheReason) {
  EXPECT_EQ(ending_of({{0, SIGTERM}}, Cause::stop), Ending::ended);
  EXPECT_EQ(ending_of({{1, 0}}, Cause::budget), Ending::ended);
  EXPECT_EQ(ending_of({{0, SIGTERM}, {75, 0}}, Cause::stop), Ending::preempted);
  EXPECT_EQ(ending_of({{0, 0}}, Cause::stop), Ending::done);  // it says that it is done
  EXPECT_EQ(ending_of({{75, 0}}, Cause::timeout), Ending::timeout);
  EXPECT_EQ(ending_of({{0, SIGKILL}}, Cause::memory), Ending::out_of_memory);
  EXPECT_EQ(ending_of({{5, 0}, {0, SIGTERM}}, Cause::rank_failed), Ending::exit);
}

TEST(Judge, WhatIsMissingForNowIsWorthAnotherTry) {
  AttemptFacts facts;
  facts.no_start = "cannot start x";
  EXPECT_EQ(judge(facts, {}, "").ending, Ending::no_start);
  facts.for_now = true;
  EXPECT_EQ(judge(facts, {}, "").ending, Ending::crash);
  EXPECT_EQ(judge(facts, {}, "").why, "cannot start x");
  EXPECT_EQ(judge(facts, Cause::stop, "stopped").ending, Ending::ended);
}

TEST(Judge, AWishGoesBeforeWhatTheKernelKilledInItsGroup) {
  AttemptFacts facts = facts_of({{0, SIGTERM}});
  facts.over_memory_limit = true;  // of a process that it did without
  for (const Cause cause : {Cause::stop, Cause::budget, Cause::early_stop, Cause::objective})
    EXPECT_EQ(judge(facts, cause, "because").ending, Ending::ended);
  EXPECT_EQ(judge(facts, Cause::timeout, "because").ending, Ending::out_of_memory);
}

TEST(Judge, KnowsMemoryFromOtherKills) {
  AttemptFacts facts = facts_of({{0, SIGKILL}});
  EXPECT_EQ(judge(facts, {}, "").ending, Ending::crash);
  facts.machine_out_of_memory = true;
  EXPECT_EQ(judge(facts, {}, "").ending, Ending::out_of_memory);
  facts.ends[0].signal = SIGSEGV;
  EXPECT_EQ(judge(facts, {}, "").ending, Ending::crash);
  facts.over_memory_limit = true;
  EXPECT_EQ(judge(facts, {}, "").ending, Ending::out_of_memory);
}

TEST(Judge, NamesTheRankAndWhatWatchedOverIt) {
  AttemptFacts facts = facts_of({{0, SIGTERM}});
  facts.ranks = {2};
  EXPECT_EQ(judge(facts, {}, "").why, "rank 2 was killed by SIGTERM");
  EXPECT_EQ(judge(facts, {}, "").rank, 2);
  facts = {};
  facts.guardian_lost = true;
  EXPECT_EQ(judge(facts, {}, "").ending, Ending::crash);
  facts = facts_of({{0, 0}});
  facts.guardian_lost = true;  // another rank may have been killed with it
  EXPECT_EQ(judge(facts, {}, "").ending, Ending::crash);
}

TEST(Backoff, DoublesUpToTheLongest) {
  spec::RetryOptions retries;
  for (const double jitter : {0.0, 0.999}) {
    EXPECT_DOUBLE_EQ(backoff_seconds(retries, 1, jitter), 0.5 + 0.5 * jitter);
    EXPECT_DOUBLE_EQ(backoff_seconds(retries, 3, jitter), 4 * (0.5 + 0.5 * jitter));
    EXPECT_DOUBLE_EQ(backoff_seconds(retries, 1'000'000, jitter), 60 * (0.5 + 0.5 * jitter));
  }
}

// ---- stories: a command that does what a seed says, in simulated time ----------------------------------------------

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
    stops_.push_back(1000);  // a command may hang for ever
    std::ranges::sort(stops_);
  }

  void live() {
    double then = -1;
    for (int turns = 0, still = 0; state_.phase != Conduct::Phase::over; ++turns) {
      ASSERT_LT(turns, 5000) << "it does not end";
      still = now_ > then ? 0 : still + 1;
      ASSERT_LT(still, 20) << "it turns and waits for nothing";
      then = now_;
      for (const Action& action : next_actions(now_, state_, policy_)) ASSERT_NO_FATAL_FAILURE(act(action));
      if (state_.phase == Conduct::Phase::over) break;
      ASSERT_NO_FATAL_FAILURE(advance());
    }
    EXPECT_EQ(finishes_, 1);
    EXPECT_TRUE(next_actions(now_ + 1e6, state_, policy_).empty());
  }

 private:
  // A command that would end by itself at some time, hears SIGTERM or does not, and may fail in any way.
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
        if (rest_ || random_.below(3) == 0) break;  // it does not hear
        ends_at_ = std::min(ends_at_, now_ + random_.uniform() * policy_.grace_seconds * 1.5);
        end_ = random_.below(2) == 0 ? ProcessEnd{75, 0} : ProcessEnd{0, SIGTERM};
        break;
      case Action::Kind::kill:
        ASSERT_TRUE(runs_);
        if (state_.stop_signals < 2 && !over_limit_ && !rest_) {
          ASSERT_GE(asked_, 0) << "killed without having been asked";
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
    const bool done = state_.last && state_.last->ending == Ending::done && !left_;
    EXPECT_EQ(action.status == "done", done) << "nothing else was wished for here";
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
    // Nobody waits longer than the grace, what a kill takes to be told, and what it takes to work.
    if (stopped_at_ >= 0) {
      EXPECT_LE(now_, stopped_at_ + policy_.grace_seconds + 4 + (rest_ ? 8 : 0));
    }
    if (policy_.budget_seconds > 0) {
      EXPECT_LE(state_.used_seconds, policy_.budget_seconds + policy_.grace_seconds + 4 + (rest_ ? 8 : 0));
    }
  }

  // To the next thing that happens: the command ends, somebody stops it, or it is time to decide.
  void advance() {
    const auto moment = next_moment(state_, policy_);
    double next = runs_ ? ends_at_ : 1e12;
    if (moment) next = std::min(next, *moment);
    if (!stops_.empty()) next = std::min(next, stops_.front());
    if (runs_ && random_.below(3) == 0) next = std::min(next, now_ + random_.uniform() * 10);  // a look at its limits
    if (state_.phase == Conduct::Phase::ended) next = now_;
    ASSERT_LT(next, 1e8) << "it would wait for ever";
    now_ = std::max(now_, next);
    if (!stops_.empty() && now_ >= stops_.front()) {
      stops_.erase(stops_.begin());
      if (stopped_at_ < 0) stopped_at_ = now_;
      const int signals[] = {SIGTERM, SIGINT, SIGHUP};
      stop_asked(now_, state_, signals[random_.below(3)]);
    }
    if (runs_ && random_.below(16) == 0) {
      const auto cause = random_.below(2) == 0 ? Cause::memory : Cause::pids;
      over_limit_ = !end_attempt(state_, cause, "over its limit").empty() || over_limit_;
    }
    if (!runs_ || now_ < ends_at_) return;
    if (!rest_ && random_.below(8) == 0) {  // it has ended, and something of it has not
      rest_ = true;
      ends_at_ = now_ + (random_.below(4) == 0 ? 1e9 : random_.uniform() * 100);
      return only_rest_left(now_, state_);
    }
    runs_ = false;
    std::vector<ProcessEnd> ends = {end_};
    if (random_.below(3) == 0) {  // of two ranks, the second of which is ended if the first fails
      if (end_ != ProcessEnd{0, 0}) end_attempt(state_, Cause::rank_failed, "rank 0 failed");
      ends.push_back(end_ == ProcessEnd{0, 0} || random_.below(3) == 0 ? end_ : ProcessEnd{0, SIGTERM});
    }
    AttemptFacts facts = facts_of(std::move(ends));
    facts.left = left_;
    facts.machine_out_of_memory = random_.below(4) == 0;
    const Judgement judged = attempt_ended(now_, state_, policy_, facts, random_.uniform());
    EXPECT_FALSE(judged.why.empty());
    const double longest = policy_.retries.longest_seconds;
    if (state_.phase == Conduct::Phase::waiting) {
      EXPECT_LE(state_.next_start, now_ + longest);
    }
    if (judged.ending == Ending::done || left_) {
      EXPECT_EQ(state_.phase, Conduct::Phase::ended);
    }
  }

  RandomStream random_;
  Policy policy_;
  Conduct state_;
  std::vector<double> stops_;
  double now_ = 0, began_ = 0, ends_at_ = 0, asked_ = -1, killed_ = -1, stopped_at_ = -1;
  ProcessEnd end_;
  bool runs_ = false, over_limit_ = false;
  bool rest_ = false, left_ = false;  // all ranks have ended and something is there; it does not even die of SIGKILL
  int rest_kills_ = 0;
  int64_t starts_ = 0, finishes_ = 0;
};

TEST(Conduct, EveryStoryHasOneEndThatItsPolicyAllows) {
  for (uint64_t seed = 0; seed < 20'000; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    Story(seed).live();
    if (HasFailure()) return;
  }
}

// The only thing to be done.
Action only_action(double now, Conduct& state, const Policy& policy) {
  const auto actions = next_actions(now, state, policy);
  EXPECT_EQ(actions.size(), 1U);
  return actions.empty() ? Action() : actions[0];
}

TEST(Conduct, NoAttemptBeginsBesideTheRestOfAnother) {
  for (const ProcessEnd end : {ProcessEnd{0, SIGSEGV}, ProcessEnd{75, 0}, ProcessEnd{0, 0}}) {
    Conduct state;
    Policy policy;
    policy.retries.crash = 5;
    attempt_began(0, state);
    AttemptFacts facts = facts_of({end});
    facts.left = true;
    const Judgement judged = attempt_ended(1, state, policy, facts, 0);
    EXPECT_TRUE(judged.why.ends_with("; something of it can not be killed")) << judged.why;
    const Action action = only_action(1, state, policy);
    EXPECT_EQ(action.kind, Action::Kind::finish);
    EXPECT_EQ(action.status, "failed") << to_string(end);
    EXPECT_EQ(action.why, judged.why);
  }
}

TEST(Conduct, RanksThatSavedAreToBeResumedWhenNoRetryIsLeft) {
  Conduct state;
  Policy policy;
  policy.retries.preempted = 0;
  attempt_began(0, state);
  end_attempt(state, Cause::rank_failed, "rank 0 ended with exit code 75; the others are ended");
  attempt_ended(1, state, policy, facts_of({{75, 0}, {0, SIGTERM}}), 0);
  const Action action = only_action(1, state, policy);
  EXPECT_EQ(action.status, "stopped");
  EXPECT_EQ(action.code, kResumable);
}

TEST(Conduct, AnExitCodeIsForgivenByTheRankThatFailedFirst) {
  Policy policy;
  policy.retries.exit = 1;
  policy.retries.exit_codes = {3};
  const auto is_forgiven = [&](std::vector<ProcessEnd> ends) {
    Conduct state;
    attempt_began(0, state);
    end_attempt(state, Cause::rank_failed, "a rank failed");
    attempt_ended(1, state, policy, facts_of(std::move(ends)), 0);
    return state.phase == Conduct::Phase::waiting;
  };
  EXPECT_TRUE(is_forgiven({{3, 0}, {75, 0}}));
  EXPECT_TRUE(is_forgiven({{0, 0}, {3, 0}, {1, 0}, {0, SIGTERM}}));
  EXPECT_FALSE(is_forgiven({{4, 0}, {3, 0}}));
}

// Its shell and the kernel both send SIGHUP, and the end of a session sends SIGTERM, too.
TEST(Conduct, ATerminalThatGoesLeavesTheCommandItsGrace) {
  for (const int second : {SIGHUP, SIGTERM}) {
    Conduct state;
    const Policy policy;
    attempt_began(0, state);
    for (const int signal : {SIGHUP, second, SIGHUP}) stop_asked(1, state, signal);
    EXPECT_EQ(only_action(1, state, policy).kind, Action::Kind::terminate);
    EXPECT_TRUE(next_actions(1.001, state, policy).empty());
    EXPECT_EQ(next_moment(state, policy), 1 + policy.grace_seconds);
    attempt_ended(2, state, policy, facts_of({{0, SIGTERM}}), 0);
    EXPECT_EQ(only_action(2, state, policy).code, 128 + second);
  }
}

TEST(Conduct, WhatAnAttemptLeavesIsKilledAndNotWaitedForWithoutBound) {
  Conduct state;
  const Policy policy;
  attempt_began(0, state);
  only_rest_left(10, state);
  only_rest_left(11, state);
  EXPECT_TRUE(next_actions(69, state, policy).empty());
  EXPECT_EQ(next_moment(state, policy), 70);
  for (double now = 70; now < 80; now += 2) {
    const auto actions = next_actions(now, state, policy);
    ASSERT_EQ(actions.size(), 1U);
    EXPECT_EQ(actions[0].kind, Action::Kind::kill);
    EXPECT_EQ(actions[0].why.empty(), now > 70) << "said once";
    EXPECT_TRUE(next_actions(now + 1, state, policy).empty());
    EXPECT_EQ(next_moment(state, policy), now + 2);
  }
}

TEST(Conduct, AStopAfterAKillGivesNoGraceAgain) {
  Conduct state;
  Policy policy;
  policy.grace_seconds = 1000;
  attempt_began(0, state);
  end_attempt(state, Cause::memory, "too much");
  ASSERT_EQ(next_actions(1, state, policy)[0].kind, Action::Kind::kill);
  stop_asked(2, state, SIGTERM);
  EXPECT_TRUE(next_actions(2, state, policy).empty());
  const auto actions = next_actions(*next_moment(state, policy), state, policy);
  ASSERT_EQ(actions.size(), 1U);
  EXPECT_EQ(actions[0].kind, Action::Kind::kill);
}

TEST(Conduct, AStopBetweenTwoAttemptsStartsNoOther) {
  Conduct state;
  Policy policy;
  policy.retries.crash = 1;
  attempt_began(0, state);
  attempt_ended(1, state, policy, facts_of({{0, SIGSEGV}}), 0);
  ASSERT_EQ(state.phase, Conduct::Phase::waiting);
  stop_asked(1.1, state, SIGINT);
  const auto actions = next_actions(1.1, state, policy);
  ASSERT_EQ(actions.size(), 1U);
  EXPECT_EQ(actions[0].kind, Action::Kind::finish);
  EXPECT_EQ(actions[0].code, 130);
}

}  // namespace
}  // namespace sinew::jobs
