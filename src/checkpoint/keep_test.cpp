#include <gtest/gtest.h>

#include <algorithm>
#include <set>

#include "base/faulty_disk.h"
#include "base/random.h"
#include "checkpoint/checkpoint.h"
#include "checkpoint/names.h"
#include "checkpoint/publish.h"
#include "checkpoint/samples.h"

namespace sinew::checkpoint {
namespace {

std::vector<Step> steps(std::initializer_list<int64_t> numbers) {
  std::vector<Step> result;
  for (const int64_t number : numbers) result.emplace_back(number);
  return result;
}

TEST(ToDelete, KeepsNewestBestAndUnverified) {
  EXPECT_EQ(to_delete(steps({1, 2, 3, 4, 5}), {}, 2, Step(5)), steps({1, 2, 3}));
  EXPECT_EQ(to_delete(steps({5, 3, 1, 2, 4}), steps({2, 9}), 2, Step(5)), steps({1, 3}));
  EXPECT_EQ(to_delete(steps({1, 2, 3, 4, 5}), {}, 2, Step(3)), steps({1}));
  EXPECT_EQ(to_delete(steps({1, 2, 3}), {}, 2, std::nullopt), steps({}));
  EXPECT_EQ(to_delete(steps({1, 2, 3}), {}, 1, Step(7)), steps({}));
  EXPECT_EQ(to_delete(steps({1, 2, 3}), {}, 0, Step(3)), steps({1, 2}));
  EXPECT_EQ(to_delete({}, steps({1}), 1, Step(1)), steps({}));
}

TEST(ToDelete, HoldsItsPromisesForAnyInput) {
  RandomStream random(random_key({11}));
  const auto some = [&](uint64_t most) {
    std::vector<Step> chosen;
    for (uint64_t i = random.below(most); i > 0; --i) chosen.emplace_back(static_cast<int64_t>(random.below(20)));
    return chosen;
  };
  int deleted = 0;
  for (int i = 0; i < 20'000; ++i) {
    const auto present = some(12), best = some(4);
    const auto keep = static_cast<int64_t>(random.below(6)) - 1;
    const std::optional<Step> verified =
        random.below(8) == 0 ? std::nullopt : std::optional(Step(static_cast<int64_t>(random.below(20))));
    const auto doomed = to_delete(present, best, keep, verified);
    deleted += static_cast<int>(doomed.size());
    const std::set<Step> there(present.begin(), present.end()), gone(doomed.begin(), doomed.end());
    ASSERT_EQ(gone.size(), doomed.size());
    ASSERT_TRUE(std::is_sorted(doomed.begin(), doomed.end()));
    if (!verified || !there.contains(*verified)) {
      ASSERT_TRUE(doomed.empty()) << "deleted without a verified one";
      continue;
    }
    std::vector<Step> left;
    for (const Step step : there) {
      if (!gone.contains(step))
        left.push_back(step);
      else
        ASSERT_LT(step, *verified) << "deleted the verified one or a newer";
    }
    for (const Step step : doomed) {
      ASSERT_TRUE(there.contains(step));
      ASSERT_EQ(std::count(best.begin(), best.end(), step), 0);
      // Only steps up to the verified one count. At least `keep` of them that are newer than the deleted step must be
      // left.
      const auto newer = std::count_if(left.begin(), left.end(), [&](Step s) { return s > step && s <= *verified; });
      ASSERT_GE(newer, std::max<int64_t>(keep, 1));
    }
    // No more steps may be kept than promised.
    const auto counted = std::count_if(left.begin(), left.end(), [&](Step s) {
      return s <= *verified && std::count(best.begin(), best.end(), s) == 0;
    });
    ASSERT_LE(counted, std::max<int64_t>(keep, 1));
    // A second call finds nothing more to delete.
    ASSERT_TRUE(to_delete(left, best, keep, verified).empty());
  }
  EXPECT_GT(deleted, 1000);
}

TEST(Point, MovesAtomicallyIfTheProcessDiesAtAnyCall) {
  FaultyDisk probe;
  const auto prepare = [](FaultyDisk& disk) {
    save(disk, "root", Sample(1).snapshot(), 1.0);
    save(disk, "root", Sample(2).snapshot(), 1.0);
    point_link(disk, "root", "last", Step(1));
  };
  prepare(probe);
  const int64_t before = probe.calls();
  point_link(probe, "root", "last", Step(2));
  const int64_t calls = probe.calls() - before;
  for (int64_t k = 1; k <= calls; ++k) {
    for (uint64_t fate = 0; fate < 16; ++fate) {
      FaultyDisk disk;
      prepare(disk);
      disk.stop_world_at(k, fate % 2 == 0 ? FaultyDisk::When::before : FaultyDisk::When::after);
      EXPECT_THROW(point_link(disk, "root", "last", Step(2)), WorldStopped);
      disk.crash(random_key({fate}), fate == 1);
      const auto last = load(disk, "root/last");
      ASSERT_TRUE(last) << last.error().what;
      ASSERT_TRUE(last->step == Step(1) || last->step == Step(2));
      point_link(disk, "root", "last", Step(2));
      ASSERT_EQ(load(disk, "root/last")->step, Step(2));
    }
  }
}

TEST(DeleteStep, NeverShowsHalfACheckpoint) {
  FaultyDisk probe;
  save(probe, "root", Sample(1).snapshot(), 1.0);
  const int64_t before = probe.calls();
  delete_step(probe, "root", Step(1));
  const int64_t calls = probe.calls() - before;
  EXPECT_TRUE(probe.list("root").empty());
  for (int64_t k = 1; k <= calls; ++k) {
    for (uint64_t fate = 0; fate < 40; ++fate) {
      FaultyDisk disk;
      save(disk, "root", Sample(1).snapshot(), 1.0);
      disk.stop_world_at(k, fate % 2 == 0 ? FaultyDisk::When::before : FaultyDisk::When::after);
      EXPECT_THROW(delete_step(disk, "root", Step(1)), WorldStopped);
      disk.crash(random_key({fate}), fate == 1);
      ASSERT_TRUE(load_newest(disk, "root").damaged.empty());
    }
  }
}

}  // namespace
}  // namespace sinew::checkpoint
