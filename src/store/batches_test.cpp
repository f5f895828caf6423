#include "store/testing.h"

namespace sinew::store {
namespace {

using Reason = Refusal::Reason;

class Leases : public OnBoth {};
ON_BOTH(Leases);

class Batches : public OnBoth {};
ON_BOTH(Batches);

TEST_P(Leases, HaveOneHolder) {
  auto store = open(), other = open();
  const Answer first = done(*store, Acquire{"server", "a", 1000});
  EXPECT_TRUE(is_refused(other->write(Acquire{"server", "b", 1000}), Reason::kHeld));
  EXPECT_TRUE(is_refused(store->write(Acquire{"server", "a", 1000}), Reason::kHeld))
      << "a holder is identified by its fence, not by its name";
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

TEST_P(Leases, ExpireAtAReboot) {
  if (location.postgres()) return;  // a PostgreSQL store measures leases by the server's clock
  auto store = open();
  done(*store, Acquire{"server", "a", 1000});
  store.reset();
  clock.seconds = 5;  // the machine has rebooted, and its clock has restarted
  Options options;
  options.clock = &clock;
  options.boot_id = "the next";
  store = std::make_unique<Store>(location.where(), options);
  EXPECT_EQ(done(*store, Acquire{"server", "b", 1000}).fence, 2);
}

TEST_P(Batches, AreRefusedIfTheirSubjectHasChanged) {
  auto store = open();
  make_run(*store);
  const Subject run{Kind::kRun, "r"};
  const Batch batch{{SetTags{run, {{"a", "1"}}}}, "", {}, {{run, store->newest_event(run)}}};
  EXPECT_TRUE(store->write(batch).has_value());
  EXPECT_TRUE(is_refused(store->write(batch), Reason::kConflict));
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
  // The refused batch has left no trace: the series can be created, and the key is unused.
  EXPECT_TRUE(store->write(Batch{{AddPoints{"r", "loss", {{2, 2, 2}}}}, "key"}).has_value());
  EXPECT_EQ(store->find({Kind::kRun, "r"})->metrics.at("loss").last.step, 2);
}

// The store keeps the receipt of a batch (its answers) under the batch's key, so that it does not apply a repeated
// batch twice. Opening a store deletes receipts that are older than 30 days and keeps younger ones.
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

TEST_P(Batches, AreAppliedOnceForEachKey) {
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

}  // namespace
}  // namespace sinew::store
