#include "store/testing.h"

namespace sinew::store {
namespace {

using Reason = Refusal::Reason;

class Trials : public OnBoth {
 protected:
  void SetUp() override {
    store = open();
    done(*store, Create{{Kind::kStudy, "s"}});
  }
  std::unique_ptr<Store> store;
};
ON_BOTH(Trials);

class Leases : public OnBoth {};
ON_BOTH(Leases);

class Batches : public OnBoth {};
ON_BOTH(Batches);

TEST_P(Trials, LiveFromTheClaimToTheResult) {
  const Answer trial = done(*store, NewTrial{"s", "w1", "{\"x\":1}", 60});
  EXPECT_EQ(trial.number, 0);
  EXPECT_EQ(trial.fence, 1);
  done(*store, Report{"s", 0, 1, "{\"loss\":3}", 60});
  done(*store, Report{"s", 0, 1, "", 60});
  done(*store, Tell{"s", 0, 1, TrialState::kDone, "2.5"});
  const auto trials = store->trials("s");
  ASSERT_EQ(trials.size(), 1U);
  EXPECT_EQ(trials[0].state, TrialState::kDone);
  EXPECT_EQ(trials[0].worker, "w1");
  EXPECT_EQ(trials[0].asked_body, "{\"x\":1}");
  EXPECT_EQ(trials[0].told_body, "2.5");
  std::string log;
  for (const Event& event : store->events({.subject = Subject{Kind::kStudy, "s"}})) {
    log += event.what + " " + std::to_string(event.subject.number) + " " + event.body + "\n";
  }
  EXPECT_EQ(log,
            "create 0 {\"name\":\"s\",\"parent\":\"\"}\ntrial.new 0 {\"x\":1}\ntrial.report 0 {\"loss\":3}\ntrial.done "
            "0 2.5\n");
}

TEST_P(Trials, ATellRepeatedIsRecognisedAndAnotherIsRefused) {
  done(*store, NewTrial{"s", "w", "", 60});
  EXPECT_FALSE(done(*store, Tell{"s", 0, 1, TrialState::kDone, "2.5"}).repeated);
  EXPECT_TRUE(done(*store, Tell{"s", 0, 1, TrialState::kDone, "2.5"}).repeated);
  EXPECT_TRUE(is_refused(store->write(Tell{"s", 0, 1, TrialState::kDone, "2.6"}), Reason::kStale));
  EXPECT_TRUE(is_refused(store->write(Tell{"s", 0, 1, TrialState::kFailed, "2.5"}), Reason::kStale));
  EXPECT_TRUE(is_refused(store->write(Tell{"s", 0, 2, TrialState::kDone, "2.5"}), Reason::kStale));
  EXPECT_TRUE(is_refused(store->write(Tell{"s", 1, 1, TrialState::kDone, "2.5"}), Reason::kNotFound));
  EXPECT_TRUE(is_refused(store->write(Tell{"s", 0, 1, TrialState::kRunning, ""}), Reason::kInvalid));
}

TEST_P(Trials, ADeadWorkersTrialIsTakenAndItsOldHolderIsRefused) {
  done(*store, NewTrial{"s", "w1", "", 60});
  EXPECT_TRUE(is_refused(store->write(TakeTrial{"s", "w2", 60}), Reason::kNothing));
  EXPECT_TRUE(is_refused(store->write(TakeTrial{"s", "w2", 60, 0}), Reason::kHeld));
  clock.seconds = clock.seconds + 40;
  done(*store, Report{"s", 0, 1, "", 60});  // a sign of life
  clock.seconds = clock.seconds + 59;
  EXPECT_TRUE(is_refused(store->write(TakeTrial{"s", "w2", 60}), Reason::kNothing));
  clock.seconds = clock.seconds + 2;
  const Answer taken = done(*store, TakeTrial{"s", "w2", 60});
  EXPECT_EQ(taken.number, 0);
  EXPECT_EQ(taken.fence, 2);
  EXPECT_TRUE(is_refused(store->write(Report{"s", 0, 1, "late", 60}), Reason::kStale));
  EXPECT_TRUE(is_refused(store->write(Tell{"s", 0, 1, TrialState::kDone, "late"}), Reason::kStale));
  done(*store, Tell{"s", 0, 2, TrialState::kDone, "1"});
  EXPECT_TRUE(is_refused(store->write(TakeTrial{"s", "w3", 60, 0}), Reason::kConflict));
}

TEST_P(Trials, WhoIsLateButNotReplacedMayGoOn) {
  done(*store, NewTrial{"s", "w1", "", 6000});
  clock.seconds = clock.seconds + 10000;
  EXPECT_LT(store->trials("s")[0].lease_seconds, 0);
  done(*store, Report{"s", 0, 1, "", 6000});
  EXPECT_NEAR(store->trials("s")[0].lease_seconds, 6000,
              600);  // connections meet the server's clock one after the other
}

TEST_P(Trials, PausedOnesAreTakenUpLowestFirst) {
  for (int i = 0; i < 3; ++i) done(*store, NewTrial{"s", "w", std::to_string(i), 60});
  done(*store, NewTrial{"s", "", "queued", 60});
  done(*store, Tell{"s", 2, 1, TrialState::kWaiting, "rung 1"});
  done(*store, Tell{"s", 1, 1, TrialState::kWaiting, "rung 1"});
  EXPECT_TRUE(done(*store, Tell{"s", 1, 1, TrialState::kWaiting, "rung 1"}).repeated);
  EXPECT_EQ(done(*store, TakeTrial{"s", "v", 60}).number, 1);
  EXPECT_EQ(done(*store, TakeTrial{"s", "v", 60, 3}).number, 3);
  EXPECT_EQ(done(*store, TakeTrial{"s", "v", 60}).number, 2);
  EXPECT_TRUE(is_refused(store->write(TakeTrial{"s", "v", 60}), Reason::kNothing));
  EXPECT_TRUE(is_refused(store->write(TakeTrial{"s", "v", 60, 9}), Reason::kNotFound));
}

TEST_P(Trials, AreClaimedOnTheNewsTheyWereDecidedOn) {
  const Subject study{Kind::kStudy, "s"};
  const int64_t seq = store->events({.subject = study}).back().seq;
  const Batch batch{{NewTrial{"s", "w", "", 60}}, "", {}, {{study, seq}}};
  EXPECT_TRUE(store->write(batch).has_value());
  EXPECT_TRUE(is_refused(store->write(batch), Reason::kConflict));
}

TEST_P(Trials, TheSumOfALifeIsOneCommit) {
  // Telling one and asking for the next is one batch.
  done(*store, NewTrial{"s", "w", "a", 60});
  const auto receipt = store->write(Batch{{Tell{"s", 0, 1, TrialState::kDone, "1"}, NewTrial{"s", "w", "b", 60}}});
  ASSERT_TRUE(receipt.has_value());
  EXPECT_EQ(receipt->answers.at(1).number, 1);
  EXPECT_EQ(receipt->seq, store->events({}).back().seq);
  EXPECT_TRUE(is_refused(store->write(NewTrial{"other", "w", "", 60}), Reason::kNotFound));
}

TEST_P(Leases, HaveOneHolder) {
  auto store = open(), other = open();
  const Answer first = done(*store, Acquire{"server", "a", 1000});
  EXPECT_TRUE(is_refused(other->write(Acquire{"server", "b", 1000}), Reason::kHeld));
  EXPECT_TRUE(is_refused(store->write(Acquire{"server", "a", 1000}), Reason::kHeld)) << "a name is not a proof";
  clock.seconds = clock.seconds + 700;
  done(*store, Renew{"server", first.fence, 1000});
  clock.seconds = clock.seconds + 700;
  EXPECT_EQ(other->lease("server").holder, "a");
  EXPECT_NEAR(other->lease("server").seconds, 300, 200);
  clock.seconds = clock.seconds + 600;
  const Answer second = done(*other, Acquire{"server", "b", 1000});
  EXPECT_GT(second.fence, first.fence);
  EXPECT_TRUE(is_refused(store->write(Renew{"server", first.fence, 1000}), Reason::kStale));
  EXPECT_TRUE(is_refused(store->write(Release{"server", first.fence}), Reason::kStale));
  EXPECT_TRUE(is_refused(store->write(Batch{{SetNote{"n", "by a"}}, "", {{"server", first.fence}}}), Reason::kStale));
  EXPECT_TRUE(other->write(Batch{{SetNote{"n", "by b"}}, "", {{"server", second.fence}}}).has_value());
  EXPECT_EQ(store->note("n"), "by b");
  done(*other, Release{"server", second.fence});
  EXPECT_TRUE(done(*other, Release{"server", second.fence}).repeated);
  EXPECT_EQ(store->lease("server").holder, "");
  EXPECT_TRUE(is_refused(other->write(Batch{{SetNote{"n", "late"}}, "", {{"server", second.fence}}}), Reason::kStale));
  EXPECT_GT(done(*store, Acquire{"server", "a", 1000}).fence, second.fence);
}

TEST_P(Leases, EndWithTheMachine) {
  if (place.postgres()) return;  // whose leases are told by the server's clock
  auto store = open();
  done(*store, Create{{Kind::kStudy, "s"}});
  done(*store, NewTrial{"s", "w", "", 1000});
  done(*store, Acquire{"server", "a", 1000});
  store.reset();
  clock.seconds = 5;  // the clock begins anew
  Options options;
  options.clock = &clock;
  options.boot = "the next";
  store = std::make_unique<Store>(place.where(), options);
  EXPECT_EQ(done(*store, TakeTrial{"s", "v", 60}).fence, 2);
  EXPECT_EQ(done(*store, Acquire{"server", "b", 1000}).fence, 2);
}

TEST_P(Batches, AreWrittenWholeOrNotAtAll) {
  auto store = open();
  make_run(*store);
  const auto before = store->events({});
  const auto outcome =
      store->write(Batch{{SetTags{{Kind::kRun, "r"}, {{"a", "1"}}}, AddPoints{"r", "loss", {{1, 1, 1}}},
                          Create{{Kind::kRun, "r2"}, "e"}, Create{{Kind::kRun, "r"}, "e"}},
                         "key"});
  EXPECT_TRUE(is_refused(outcome, Reason::kExists));
  EXPECT_EQ(outcome.error().why.find("change 4 of 4"), 0U);
  EXPECT_EQ(store->events({}).size(), before.size());
  EXPECT_TRUE(store->find({Kind::kRun, "r"})->tags.empty());
  EXPECT_TRUE(store->find({Kind::kRun, "r"})->metrics.empty());
  EXPECT_FALSE(store->find({Kind::kRun, "r2"}));
  // The series that was not made can be made, and the key was not used up.
  EXPECT_TRUE(store->write(Batch{{AddPoints{"r", "loss", {{2, 2, 2}}}}, "key"}).has_value());
  EXPECT_EQ(store->find({Kind::kRun, "r"})->metrics.at("loss").last.step, 2);
}

// A store that is opened keeps the receipts of 30 days, on the machine it was on as well.
TEST_P(Batches, AKeyIsForgottenAfterAMonth) {
  constexpr double kDay = 86'400;
  auto store = open();
  done(*store, Create{{Kind::kModel, "m"}});
  const Batch old{{Create{{Kind::kVersion, "m"}}}, "old"}, young{{Create{{Kind::kVersion, "m"}}}, "young"};
  EXPECT_FALSE(store->write(old)->repeated);
  clock.seconds = clock.seconds + 20 * kDay;
  EXPECT_FALSE(store->write(young)->repeated);
  store = open();
  EXPECT_TRUE(store->write(old)->repeated);
  clock.seconds = clock.seconds + 11 * kDay;
  store = open();
  EXPECT_FALSE(store->write(old)->repeated);
  EXPECT_TRUE(store->write(young)->repeated);
}

TEST_P(Batches, AKeyIsWrittenOnce) {
  auto store = open();
  done(*store, Create{{Kind::kModel, "m"}});
  const Batch batch{{Create{{Kind::kVersion, "m"}}, Create{{Kind::kVersion, "m"}}}, "request-17"};
  const auto first = store->write(batch);
  store = open();
  const auto again = store->write(batch);
  ASSERT_TRUE(first.has_value() && again.has_value());
  EXPECT_FALSE(first->repeated);
  EXPECT_TRUE(again->repeated);
  EXPECT_EQ(again->seq, first->seq);
  ASSERT_EQ(again->answers.size(), 2U);
  EXPECT_EQ(again->answers[1].number, 2);
  EXPECT_EQ(store->list({.kind = Kind::kVersion}).size(), 2U);
}

TEST_P(Batches, EventsAreNumberedWithoutAGap) {
  auto store = open();
  make_run(*store);
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&, t] {
      for (int i = 0; i < 20; ++i) {
        store->write(Batch{{SetTags{{Kind::kRun, "r"}, {{"a" + std::to_string(t), std::to_string(i)}}},
                            Create{{Kind::kRun, i % 2 == 0 ? "r" : "x" + std::to_string(t * 100 + i)}, "e"}}});
      }
    });
  }
  for (auto& thread : threads) thread.join();
  const auto events = store->events({.limit = 100000});
  EXPECT_EQ(events.size(), 2 + 4 * 10 * 2U);
  for (size_t i = 0; i < events.size(); ++i) EXPECT_EQ(events[i].seq, static_cast<int64_t>(i) + 1);
  EXPECT_TRUE(store->check().empty());
  EXPECT_EQ(store->events({.after = 5, .limit = 2}).at(1).seq, 7);
}

TEST_P(Batches, SubmittedOnesAreAnsweredInOrder) {
  auto store = open();
  make_run(*store);
  std::vector<int> order;
  for (int i = 0; i < 200; ++i) {
    store->submit(Batch{{SetTags{{Kind::kRun, "r"}, {{"n", std::to_string(i)}}}}},
                  [&order, i](const Outcome& outcome, const std::exception_ptr& trouble) {
                    EXPECT_TRUE(outcome.has_value() && !trouble);
                    order.push_back(i);
                  });
    if (i % 50 == 0) done(*store, SetTags{{Kind::kRun, "r"}, {{"n", "between"}}});
  }
  store.reset();  // answers all
  ASSERT_EQ(order.size(), 200U);
  for (int i = 0; i < 200; ++i) EXPECT_EQ(order[static_cast<size_t>(i)], i);
  EXPECT_EQ(open()->find({Kind::kRun, "r"})->tags.at("n"), "199");
}

}  // namespace
}  // namespace sinew::store
