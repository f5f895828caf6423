#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>
#include <map>
#include <set>

#include "base/random.h"
#include "store/downsample.h"
#include "store/packed.h"
#include "store/testing.h"

namespace sinew::store {
namespace {

constexpr int64_t kFirst = std::numeric_limits<int64_t>::min(), kLast = std::numeric_limits<int64_t>::max();

double any_value(RandomStream& random) {
  switch (random.below(6)) {
    case 0: return std::bit_cast<double>(random.bits64());  // any bits, including a NaN with a payload
    case 1: return -0.0;
    case 2: return std::numeric_limits<double>::infinity();
    case 3: return static_cast<double>(static_cast<float>(random.normal()));
    default: return random.normal();
  }
}

std::vector<Point> any_points(RandomStream& random, size_t count) {
  std::vector<Point> points(count);
  const bool wild = random.below(4) == 0;
  int64_t step = 0, time = 1'800'000'000'000;
  for (Point& point : points) {
    step += static_cast<int64_t>(random.below(3));
    time += static_cast<int64_t>(random.below(2000));
    point = {wild ? static_cast<int64_t>(random.bits64()) : step, wild ? static_cast<int64_t>(random.bits64()) : time,
             any_value(random)};
  }
  return points;
}

TEST(PackedPoints, AreUnpackedBitForBit) {
  for (uint64_t seed = 0; seed < 300; ++seed) {
    RandomStream random(random_key({seed}));
    const auto points = any_points(random, random.below(200));
    std::vector<Point> read;
    unpack_points(pack_points(points), read);
    ASSERT_EQ(read, points) << "seed " << seed;
    std::vector<TailPoint> tail;
    for (const Point& point : points)
      tail.push_back({static_cast<int64_t>(random.bits64()), static_cast<int64_t>(random.below(100)), point});
    std::vector<TailPoint> tail_read;
    unpack_tail(pack_tail(tail), tail_read);
    ASSERT_EQ(tail_read.size(), tail.size());
    for (size_t i = 0; i < tail.size(); ++i) {
      ASSERT_EQ(tail_read[i].run, tail[i].run);
      ASSERT_EQ(tail_read[i].series, tail[i].series);
      ASSERT_EQ(tail_read[i].point, tail[i].point);
    }
  }
}

TEST(PackedPoints, AnyDamageIsFound) {
  RandomStream random(random_key({1}));
  const std::string packed = pack_points(any_points(random, 50)), labels = pack_labels({{"a", "b"}, {"c", "d"}});
  const auto damaged = [&](std::string bytes, bool points) {
    std::vector<Point> out;
    try {
      if (points)
        unpack_points(bytes, out);
      else
        unpack_labels(bytes);
    } catch (const Error&) {
      return true;
    }
    return false;
  };
  for (const bool points : {true, false}) {
    const std::string& whole = points ? packed : labels;
    ASSERT_FALSE(damaged(whole, points));
    for (size_t i = 0; i < whole.size(); ++i) {
      std::string bytes = whole;
      bytes[i] = static_cast<char>(bytes[i] ^ (1 << random.below(8)));
      EXPECT_TRUE(damaged(bytes, points)) << "byte " << i;
      EXPECT_TRUE(damaged(whole.substr(0, i), points)) << "cut at " << i;
    }
  }
}

TEST(Downsample, KeepsWhatALineChartShows) {
  for (uint64_t seed = 0; seed < 200; ++seed) {
    RandomStream random(random_key({seed, 2}));
    std::vector<Point> all;
    int64_t step = -50;
    const bool still = seed % 7 == 0;  // all points have the same step
    for (uint64_t i = 0, count = random.below(2000); i < count; ++i) {
      all.push_back({step += still ? 0 : static_cast<int64_t>(random.below(4)), static_cast<int64_t>(i),
                     random.below(20) == 0 ? std::nan("") : random.normal()});
    }
    const auto most = static_cast<int64_t>(4 + random.below(200));
    auto kept = all;
    downsample(kept, most);
    ASSERT_LE(static_cast<int64_t>(kept.size()), std::max<int64_t>(most, 4));
    if (all.empty()) continue;
    if (static_cast<int64_t>(all.size()) <= most) {
      ASSERT_EQ(kept, all);
    }
    ASSERT_EQ(kept.front(), all.front());
    ASSERT_EQ(kept.back(), all.back());
    // The kept points are in order, and each of them is an original point.
    auto at = all.begin();
    for (const Point& point : kept) {
      at = std::find(at, all.end(), point);
      ASSERT_NE(at, all.end()) << "seed " << seed;
    }
    const auto extreme = [](const std::vector<Point>& points, bool low) {
      double found = std::nan("");
      for (const Point& point : points) {
        if (std::isnan(found) || (low ? point.value < found : point.value > found)) found = point.value;
      }
      return found;
    };
    for (const bool low : {true, false}) {
      const double a = extreme(all, low), b = extreme(kept, low);
      ASSERT_TRUE(a == b || (std::isnan(a) && std::isnan(b))) << "seed " << seed;
    }
  }
}

class Points : public OnBoth {
 protected:
  std::vector<Point> history(Store& store, const std::string& run, const std::string& key, const Window& window = {}) {
    const Series series{run, key};
    return store.history({&series, 1}, window).at(0);
  }
};
ON_BOTH(Points);

// Adds points singly, in bulk, twice and out of order. Drops points and reopens the store in between.
TEST_P(Points, FormAnOrderedSet) {
  RandomStream random(random_key({3}));
  auto store = open();
  for (const char* run : {"a", "b"}) make_run(*store, run);
  std::map<std::pair<std::string, std::string>, std::vector<Point>> model;
  for (int round = 0; round < 400; ++round) {
    const std::string run = random.below(2) == 0 ? "a" : "b";
    Batch batch;
    const uint64_t what = random.below(100);
    if (what < 2) {
      const auto from = static_cast<int64_t>(random.below(100));
      batch.changes.emplace_back(DropPoints{run, from});
      for (auto& [name, points] : model) {
        if (name.first == run) std::erase_if(points, [&](const Point& point) { return point.step >= from; });
      }
    } else if (what < 5) {
      store = open();
      continue;
    }
    for (uint64_t i = 0, series = 1 + random.below(3); i < series; ++i) {
      const std::string key = "k" + std::to_string(random.below(5));
      auto points = any_points(random, random.below(8) == 0 ? random.below(1500) : 1 + random.below(3));
      auto& list = model[{run, key}];
      if (!list.empty() && random.below(4) == 0) points.push_back(list.front());  // adds a point twice
      list.insert(list.end(), points.begin(), points.end());
      batch.changes.emplace_back(AddPoints{run, key, points});
    }
    ASSERT_TRUE(store->write(batch).has_value());
  }
  for (auto& [name, points] : model) {
    sort_unique(points);
    ASSERT_EQ(history(*store, name.first, name.second), points) << name.first << " " << name.second;
    const auto metrics = store->find({Kind::kRun, name.first})->metrics;
    if (points.empty()) {
      EXPECT_FALSE(metrics.contains(name.second));
      continue;
    }
    const Metric& metric = metrics.at(name.second);
    EXPECT_EQ(metric.last, points.back());
    EXPECT_GE(metric.count, static_cast<int64_t>(points.size()));
    double least = std::nan("");
    for (const Point& point : points) {
      if (!(least <= point.value) && !std::isnan(point.value)) least = point.value;
    }
    EXPECT_TRUE(metric.min == least || std::isnan(least));
  }
}

// MLflow's server has this rule: of the points of one step and time, the largest value is the newest. It stores a NaN
// as 0.
TEST_P(Points, OfOneMomentTheLargestIsTheLast) {
  auto store = open();
  make_run(*store);
  const double infinity = std::numeric_limits<double>::infinity(), nan = std::nan("");
  int series = 0;
  const auto expect = [&](const std::vector<double>& values, double last) {
    for (const bool reversed : {false, true}) {
      const std::string key = "k" + std::to_string(++series);
      auto order = values;
      if (reversed) std::reverse(order.begin(), order.end());
      for (const double value : order) done(*store, AddPoints{"r", key, {{5, 7, value}}});
      const double found = store->find({Kind::kRun, "r"})->metrics.at(key).last.value;
      EXPECT_TRUE(found == last || (std::isnan(found) && std::isnan(last))) << key << " " << found;
      const auto points = history(*store, "r", key);
      ASSERT_EQ(points.size(), values.size());
      EXPECT_TRUE(points.back().value == last || (std::isnan(points.back().value) && std::isnan(last))) << key;
    }
  };
  expect({2, -1}, 2);
  expect({-3, -2, -2.5}, -2);
  expect({0.5, infinity, -infinity}, infinity);
  expect({-1, nan}, nan);
  expect({1, nan}, 1);
}

TEST_P(Points, AddedSinglyAreVisibleAtOnceAndMoveToChunks) {
  auto store = open();
  make_run(*store);
  for (int64_t step = 0; step < 700; ++step) {  // more commits than the tail can have rows
    done(*store, AddPoints{"r", step % 2 == 0 ? "even" : "odd", {{step, step, static_cast<double>(step)}}});
    if (step % 100 != 0) continue;
    ASSERT_EQ(store->find({Kind::kRun, "r"})->metrics.at("even").last.step, step);
    ASSERT_EQ(history(*store, "r", "even").size(), static_cast<size_t>(step / 2 + 1));
  }
  const auto metrics = store->list({.kind = Kind::kRun}).at(0).metrics;
  EXPECT_EQ(metrics.at("odd").count, 350);
  EXPECT_EQ(metrics.at("odd").max, 699);
  EXPECT_EQ(metrics.at("even").min, 0);
  EXPECT_TRUE(store->list({.kind = Kind::kRun, .metrics = false}).at(0).metrics.empty());
  EXPECT_EQ(history(*store, "r", "even", {.first_step = 10, .last_step = 13}),
            (std::vector<Point>{{10, 10, 10}, {12, 12, 12}}));
  EXPECT_LE(history(*store, "r", "odd", {.max_points = 40}).size(), 40U);
}

TEST_P(Points, OfManySeriesAreReadTogether) {
  auto store = open();
  for (int run = 0; run < 5; ++run) {
    make_run(*store, std::to_string(run));
    for (const char* key : {"a", "b"}) {
      done(*store, AddPoints{std::to_string(run), key, {{run, 0, 1}}});
    }
  }
  const std::vector<Series> wanted{{"3", "b"}, {"9", "a"}, {"0", "c"}, {"1", "a"}, {"3", "b"}};
  const auto lists = store->history(wanted);
  ASSERT_EQ(lists.size(), 5U);
  EXPECT_EQ(lists[0], (std::vector<Point>{{3, 0, 1}}));
  EXPECT_TRUE(lists[1].empty());
  EXPECT_TRUE(lists[2].empty());
  EXPECT_EQ(lists[3], (std::vector<Point>{{1, 0, 1}}));
  EXPECT_EQ(lists[4], lists[0]);
  EXPECT_TRUE(is_refused(store->write(AddPoints{"9", "a", {{1, 1, 1}}}), Refusal::Reason::kNotFound));
  EXPECT_TRUE(is_refused(store->write(DropPoints{"9", 0}), Refusal::Reason::kNotFound));
}

TEST_P(Points, AreDroppedOnlyFromTheNamedSeries) {
  auto store = open();
  make_run(*store);
  done(*store, AddPoints{"r", "a", {{1, 1, 1}, {2, 2, 2}}});
  done(*store, AddPoints{"r", "b", {{2, 2, 2}}});
  done(*store, DropPoints{"r", 2, std::set<std::string>{"a", "c"}});
  EXPECT_EQ(history(*store, "r", "a"), (std::vector<Point>{{1, 1, 1}}));
  EXPECT_EQ(history(*store, "r", "b"), (std::vector<Point>{{2, 2, 2}}));
}

// A client that puts steps into the names of series creates many series at once.
TEST_P(Points, ManyNewSeriesAtOnceAreNamedAndBounded) {
  auto store = open();
  make_run(*store);
  const auto add = [&](int first, int count, bool points = true) {
    Batch batch;
    for (int i = first; i < first + count; ++i) {
      AddPoints one{"r", "sample_" + std::to_string(i) + "/loss", {}};
      if (points) one.points = {{i, i, static_cast<double>(i)}};
      batch.changes.emplace_back(std::move(one));
    }
    return store->write(batch);
  };
  ASSERT_TRUE(add(0, 20'000).has_value());
  for (int first = 20'000; first < 100'000; first += 20'000) ASSERT_TRUE(add(first, 20'000, false).has_value());
  EXPECT_TRUE(is_refused(add(100'000, 1), Refusal::Reason::kInvalid));
  ASSERT_TRUE(add(99'999, 1).has_value()) << "those that are there still take points";
  const auto metrics = store->find({Kind::kRun, "r"})->metrics;
  EXPECT_EQ(metrics.size(), 20'001u);
  EXPECT_EQ(metrics.at("sample_12345/loss").last.value, 12'345);
  EXPECT_EQ(metrics.at("sample_99999/loss").last.value, 99'999);
}

// Several batches of one commit create series, and the store refuses some of the batches. No series may get the points
// of another.
TEST_P(Points, SeriesOfARefusedBatchAreRemoved) {
  auto store = open();
  make_run(*store);
  std::vector<Batch> batches;
  for (int i = 0; i < 40; ++i) {
    const std::string name = std::to_string(i);
    const AddPoints good{"r", "good" + name, {{i, i, 1}}}, bad{"r", "bad" + name, {{i, i, 2}}};
    batches.push_back({{good}});
    batches.push_back({{bad, AddPoints{"r", "good" + name, {{i, i, 3}}}, Create{{Kind::kRun, "r"}, "e"}}});
    batches.push_back({{AddPoints{"r", "more" + name, {{i, i, 4}}}, DropPoints{"r", 1'000'000}}});
  }
  write_at_once(*store, batches);
  const auto metrics = open()->find({Kind::kRun, "r"})->metrics;
  EXPECT_EQ(metrics.size(), 80u);
  for (int i = 0; i < 40; ++i) {
    EXPECT_EQ(metrics.at("good" + std::to_string(i)).last.value, 1) << i;
    EXPECT_EQ(metrics.at("more" + std::to_string(i)).last.value, 4) << i;
  }
}

// If a batch dropped points and is then refused, it must undo its own changes and not those of other batches in the
// commit.
TEST_P(Points, ARefusedDropChangesNothing) {
  auto store = open();
  make_run(*store);
  done(*store, AddPoints{"r", "a", {{1, 1, 1}, {2, 2, 2}}});
  std::vector<Batch> batches;
  for (int i = 0; i < 50; ++i) {
    batches.push_back({{AddPoints{"r", "b", {{i, i, 1}}}}});
    batches.push_back({{AddPoints{"r", "a", {{9, 9, 9}}}, DropPoints{"r", 2}, Create{{Kind::kRun, "r"}, "e"}}});
  }
  write_at_once(*store, batches);
  EXPECT_EQ(history(*store, "r", "a"), (std::vector<Point>{{1, 1, 1}, {2, 2, 2}}));
  EXPECT_EQ(history(*store, "r", "b").size(), 50U);
}

}  // namespace
}  // namespace sinew::store
