// Tests that a read ends when its request is over, and holds no more memory than its limit allows.
#include <chrono>
#include <thread>

#include "base/cost_limit.h"
#include "store/database.h"
#include "store/testing.h"

namespace sinew::store {
namespace {

constexpr int64_t kMuch = int64_t{1} << 40;

class Cost : public OnBoth {
 protected:
  // Makes a run with a metric of `points` points.
  void make_series(Store& store, const std::string& run, int64_t points) {
    make_run(store, run);
    AddPoints change{run, "loss", {}};
    for (int64_t i = 0; i < points; ++i) change.points.push_back({i, i, static_cast<double>(i)});
    done(store, std::move(change));
  }
};
ON_BOTH(Cost);

TEST_P(Cost, AQueryEndsWhenNobodyWaitsForItsAnswer) {
  { const auto store = open(); }
  Options options;
  const auto database = location.postgres() ? open_postgres(location.where(), options, Access::kRead)
                                            : open_sqlite(location.where(), options, Access::kRead);
  const auto left = std::make_shared<std::atomic<bool>>(false);
  std::thread client([&] {
    std::this_thread::sleep_for(std::chrono::milliseconds(100));
    *left = true;
  });
  CostLimit limit(system_clock(), system_clock().monotonic_seconds() + 300, kMuch, left);
  const CostLimit::Scope scope(&limit);
  database->begin_read();
  const auto endless = [&] {
    // 10^12 rows: hours of work.
    database->each(
        "WITH RECURSIVE c(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM c WHERE x < 1000000000000) SELECT count(*) FROM "
        "c",
        {}, [](const Row&) {});
  };
  EXPECT_EQ(code_of(endless), "REQUEST_ABANDONED");
  client.join();
}

TEST_P(Cost, AReadEndsAtItsDeadline) {
  const auto store = open();
  make_run(*store);
  CostLimit limit(clock, clock.monotonic_seconds() - 1, kMuch);
  const CostLimit::Scope scope(&limit);
  EXPECT_EQ(code_of([&] { store->find({Kind::kRun, "r"}); }), "REQUEST_TOO_LONG");
  // A write may also commit the batches of other requests, so the limit of one request does not end it.
  done(*store, SetTags{{Kind::kRun, "r"}, {{"a", "b"}}});
}

TEST_P(Cost, ALookThatDoesNotEndInTimeIsSlowAndNoFailure) {
  const auto store = open();
  const Condition slow = store->look(-1);  // its time is over before it begins
  EXPECT_TRUE(slow.slow);
  EXPECT_FALSE(slow.usable);
  const Condition good = store->look(30);
  EXPECT_TRUE(good.usable) << good.problem;
  EXPECT_FALSE(good.slow);
}

TEST_P(Cost, ThePointsOfASeriesAreBoundedAndAWindowCostsOnlyItself) {
  const auto store = open();
  make_series(*store, "r", 100'000);
  const Series series[] = {{"r", "loss"}};
  CostLimit limit(system_clock(), system_clock().monotonic_seconds() + 300, 50'000 * sizeof(Point));
  const CostLimit::Scope scope(&limit);
  EXPECT_EQ(code_of([&] { store->history(series); }), "REQUEST_TOO_LARGE");
  limit.release(limit.held());
  Window window;
  window.first_step = 70'000;
  EXPECT_EQ(store->history(series, window).front().size(), 30'000U);
  limit.release(limit.held());
  window = {};
  window.last_step = 39'999;
  window.max_points = 100;
  EXPECT_LE(store->history(series, window).front().size(), 100U);
  EXPECT_LE(limit.held(), static_cast<int64_t>(100 * sizeof(Point)));
}

TEST_P(Cost, APageOfLargeRecordsIsShortAndTheNextContinues) {
  const auto store = open();
  constexpr int kRuns = 40;
  done(*store, Create{{Kind::kExperiment, "e"}});
  for (int i = 0; i < kRuns; ++i) {
    Create create{{Kind::kRun, "r" + std::to_string(i)}, "e"};
    create.tags = {{"large", std::string(500'000, 'x')}};
    done(*store, create);
  }
  const Query query{.kind = Kind::kRun, .parent = "e"};
  const RecordPage page = store->page(query);
  EXPECT_TRUE(page.more);
  EXPECT_LT(page.records.size(), 12U);
  int seen = 0;
  store->each(query, [&](const Record& run) { EXPECT_EQ(run.subject.id, "r" + std::to_string(kRuns - 1 - seen++)); });
  EXPECT_EQ(seen, kRuns);
  EXPECT_EQ(store->list(query).size(), static_cast<size_t>(kRuns));
  std::vector<Subject> subjects;
  for (int i = 0; i < kRuns; ++i) subjects.push_back({Kind::kRun, "r" + std::to_string(i)});
  const auto some = store->find_some(subjects, 1'200'000);
  EXPECT_EQ(some.size(), 3U);
  EXPECT_EQ(some[2]->subject.id, "r2");
  CostLimit limit(system_clock(), system_clock().monotonic_seconds() + 300, 5'000'000);
  const CostLimit::Scope scope(&limit);
  EXPECT_EQ(code_of([&] { store->all(query); }), "REQUEST_TOO_LARGE");
}

// The names of a run's metrics may take much more memory than its points.
TEST_P(Cost, SummariesOfRunsAreCountedAndReadOneAfterAnother) {
  const auto store = open();
  constexpr int kRuns = 12, kSeries = 2000;
  std::vector<Series> wanted;
  std::vector<Subject> subjects;
  for (int run = 0; run < kRuns; ++run) {
    const std::string id = "r" + std::to_string(run);
    make_run(*store, id);
    Batch batch;
    for (int i = 0; i < kSeries; ++i)
      batch.changes.push_back(AddPoints{id, "metric/with/a/long/name/" + std::to_string(i), {{1, 1, 1.0}}});
    ASSERT_TRUE(store->write(batch));
    wanted.push_back({id, "metric/with/a/long/name/7"});
    subjects.push_back({Kind::kRun, id});
  }
  // The summaries of three runs fit, and those of all runs do not.
  CostLimit limit(system_clock(), system_clock().monotonic_seconds() + 300, 1'000'000);
  const CostLimit::Scope scope(&limit);
  for (const auto& points : store->history(wanted)) EXPECT_EQ(points.size(), 1U);
  EXPECT_LT(limit.held(), 10'000);
  EXPECT_TRUE(store->find(subjects[0]));
  EXPECT_EQ(code_of([&] { store->find(subjects); }), "REQUEST_TOO_LARGE");
  EXPECT_EQ(code_of([&] { store->page({.kind = Kind::kRun, .limit = kRuns}); }), "REQUEST_TOO_LARGE");
  EXPECT_EQ(store->page({.kind = Kind::kRun, .metrics = false, .limit = kRuns}).records.size(), size_t{kRuns});
}

TEST_P(Cost, AListEndsAtItsLimit) {
  const auto store = open();
  for (int i = 0; i < 10; ++i) make_run(*store, "r" + std::to_string(i));
  for (const auto& query : {Query{.kind = Kind::kRun, .limit = 4}, Query{.kind = Kind::kRun, .parent = "e", .limit = 4},
                            Query{.kind = Kind::kRun, .limit = 10}, Query{.kind = Kind::kRun, .limit = 11}}) {
    const RecordPage page = store->page(query);
    EXPECT_EQ(static_cast<int64_t>(page.records.size()), std::min<int64_t>(query.limit, 10));
    EXPECT_EQ(page.more, query.limit <= 10);
  }
}

}  // namespace
}  // namespace sinew::store
