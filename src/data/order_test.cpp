#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <numeric>
#include <set>
#include <unordered_set>
#include <vector>

#include "base/error.h"
#include "data/data.h"
#include "data/formats.h"

namespace sinew::data {
namespace {

std::vector<int64_t> whole(const Permutation& order, int64_t size) {
  std::vector<int64_t> values;
  for (int64_t i = 0; i < size; ++i) values.push_back(order[i]);
  return values;
}

TEST(Permutation, IsABijectionForEverySizeUpToTwoThousand) {
  for (int64_t size = 1; size <= 2000; ++size) {
    const auto values = whole({random_key({static_cast<uint64_t>(size)}), size}, size);
    std::vector<bool> seen(static_cast<size_t>(size));
    for (const int64_t value : values) {
      ASSERT_TRUE(value >= 0 && value < size) << size;
      ASSERT_FALSE(seen[static_cast<size_t>(value)]) << size;
      seen[static_cast<size_t>(value)] = true;
    }
  }
}

// These sizes are too large to try every point. A random function of 10^8 points would map hundreds of pairs among
// 200,000 points to the same value (the birthday bound). The neighbouring points reveal a weak network at any size.
TEST(Permutation, LargeSizesAreOneToOneOnDrawnPoints) {
  RandomStream draws(random_key({5}));
  for (const int64_t size : {int64_t{1} << 16, (int64_t{1} << 16) + 1, int64_t{99'999'999}, int64_t{100'000'000},
                             (int64_t{1} << 31) + 7, int64_t{1} << 40, (int64_t{1} << 61) + 12345}) {
    const Permutation order(random_key({draws.bits64()}), size);
    std::unordered_set<int64_t> positions, values;
    for (int64_t i = 0; i < 100000; ++i) {
      positions.insert(static_cast<int64_t>(draws.below(static_cast<uint64_t>(size))));
      positions.insert(i % size);
    }
    for (const int64_t position : positions) {
      const int64_t value = order[position];
      ASSERT_TRUE(value >= 0 && value < size);
      values.insert(value);
    }
    EXPECT_EQ(values.size(), positions.size()) << size;
  }
}

TEST(Permutation, IsABijectionForRandomKeysAndLargeSizes) {
  RandomStream draws(random_key({6}));
  for (int trial = 0; trial < 20; ++trial) {
    const auto size = static_cast<int64_t>(2000 + draws.below(200000));
    auto values = whole({random_key({draws.bits64()}), size}, size);
    std::sort(values.begin(), values.end());
    for (int64_t i = 0; i < size; ++i) ASSERT_EQ(values[static_cast<size_t>(i)], i) << size;
  }
}

TEST(Permutation, KeysAndEpochsGiveUnrelatedOrders) {
  constexpr int64_t kSize = 10000;
  const auto first = whole(epoch_order(1, 0, kSize), kSize);
  EXPECT_EQ(first, whole(epoch_order(1, 0, kSize), kSize));
  for (const auto& other : {whole(epoch_order(1, 1, kSize), kSize), whole(epoch_order(2, 0, kSize), kSize),
                            whole(epoch_order(0, 1, kSize), kSize)}) {
    int64_t same = 0;
    for (size_t i = 0; i < first.size(); ++i) same += first[i] == other[i] ? 1 : 0;
    EXPECT_LT(same, 12);  // Poisson with mean 1
  }
}

// Over many keys, each sample must take every position equally often.
TEST(Permutation, PositionsAreUniformOverKeys) {
  constexpr int kKeys = 6000;
  for (const int64_t size : {2, 3, 5, 8, 16, 17, 30, 64, 100}) {
    std::vector<std::vector<int>> counts(static_cast<size_t>(size), std::vector<int>(static_cast<size_t>(size)));
    for (uint64_t key = 0; key < kKeys; ++key) {
      const Permutation order(random_key({key, 77}), size);
      for (int64_t i = 0; i < size; ++i) ++counts[static_cast<size_t>(i)][static_cast<size_t>(order[i])];
    }
    double chi_square = 0;
    const double expected = static_cast<double>(kKeys) / static_cast<double>(size);
    for (const auto& row : counts) {
      for (const int count : row) chi_square += (count - expected) * (count - expected) / expected;
    }
    const double freedom = static_cast<double>((size - 1) * (size - 1));
    EXPECT_LT(chi_square, freedom + 5 * std::sqrt(2 * freedom)) << size;
    EXPECT_GT(chi_square, freedom - 5 * std::sqrt(2 * freedom)) << size;
  }
}

TEST(Permutation, AllOrdersOfFourAreEquallyLikely) {
  constexpr int kKeys = 24000;
  std::map<std::vector<int64_t>, int> counts;
  for (uint64_t key = 0; key < kKeys; ++key) ++counts[whole({random_key({key, 3}), 4}, 4)];
  ASSERT_EQ(counts.size(), 24U);
  double chi_square = 0;
  for (const auto& [order, count] : counts) chi_square += std::pow(count - kKeys / 24.0, 2) / (kKeys / 24.0);
  EXPECT_LT(chi_square, 57);  // 23 degrees of freedom: p = 1e-4
}

// One order must have no visible structure: ascents, adjacent neighbours and fixed points are as frequent as by chance.
TEST(Permutation, OneOrderHasNoVisibleStructure) {
  constexpr int64_t kSize = 60000;
  for (int64_t epoch = 0; epoch < 5; ++epoch) {
    const auto values = whole(epoch_order(9, epoch, kSize), kSize);
    int64_t ascents = 0, adjacent = 0, fixed = 0;
    double covariance = 0;
    for (size_t i = 0; i + 1 < values.size(); ++i) {
      ascents += values[i] < values[i + 1] ? 1 : 0;
      adjacent += std::abs(values[i] - values[i + 1]) == 1 ? 1 : 0;
      fixed += values[i] == static_cast<int64_t>(i) ? 1 : 0;
      covariance += (static_cast<double>(values[i]) / kSize - 0.5) * (static_cast<double>(values[i + 1]) / kSize - 0.5);
    }
    EXPECT_NEAR(static_cast<double>(ascents), kSize / 2.0, 5 * std::sqrt(kSize / 12.0));
    EXPECT_LT(adjacent, 12);  // Poisson with mean 2
    EXPECT_LT(fixed, 10);     // Poisson with mean 1
    EXPECT_NEAR(covariance / kSize * 12, 0, 5 / std::sqrt(kSize));
    // Each tenth of the positions must hold about a tenth of the samples of each tenth of the data set.
    std::vector<double> cells(100);
    for (size_t i = 0; i < values.size(); ++i)
      ++cells[i * 10 / kSize * 10 + static_cast<size_t>(values[i] * 10 / kSize)];
    double chi_square = 0;
    for (const double count : cells) chi_square += (count - 600) * (count - 600) / 600;
    EXPECT_LT(chi_square, 81 + 5 * std::sqrt(2 * 81.0));
  }
}

TEST(Steps, EverySampleExactlyOnceAnEpoch) {
  for (int64_t size = 1; size <= 40; ++size) {
    for (int64_t batch = 1; batch <= 45; ++batch) {
      for (const bool drop_last : {false, true}) {
        const int64_t steps = steps_per_epoch(size, batch, drop_last);
        if (steps == 0) {
          EXPECT_TRUE(drop_last && batch > size);
          EXPECT_THROW(step_range({}, size, batch, drop_last), Error);
          continue;
        }
        Cursor cursor;
        for (int64_t epoch = 0; epoch < 3; ++epoch) {
          int64_t next = 0;
          for (int64_t step = 0; step < steps; ++step) {
            const StepRange range = step_range(cursor, size, batch, drop_last);
            ASSERT_EQ(range.epoch, epoch);
            ASSERT_EQ(range.first, next);
            ASSERT_TRUE(range.count == batch || (!drop_last && step == steps - 1 && range.count == size % batch));
            next += range.count;
            cursor = after(range, size, batch, drop_last);
          }
          ASSERT_EQ(next, drop_last ? size / batch * batch : size);
          ASSERT_EQ(cursor, (Cursor{epoch + 1, 0}));
        }
      }
    }
  }
}

TEST(Steps, ABatchSizeThatChangesMidEpochLosesNothing) {
  RandomStream draws(random_key({8}));
  for (int trial = 0; trial < 500; ++trial) {
    const auto size = static_cast<int64_t>(1 + draws.below(50));
    Cursor cursor;
    int64_t next = 0, epoch = 0;
    while (epoch < 4) {
      const StepRange range = step_range(cursor, size, static_cast<int64_t>(1 + draws.below(20)), false);
      if (range.epoch != epoch) {
        ASSERT_EQ(next, size);
        next = 0;
        ++epoch;
      }
      ASSERT_EQ(range.epoch, epoch);
      ASSERT_EQ(range.first, next);
      next += range.count;
      cursor = after(range, size, static_cast<int64_t>(1 + draws.below(20)), false);
    }
  }
  // With drop_last, the rest of the epoch is dropped when it is shorter than the new batch size.
  EXPECT_EQ(step_range({2, 7}, 10, 5, true).epoch, 3);
  EXPECT_EQ(step_range({2, 7}, 10, 3, true).epoch, 2);
}

TEST(Shards, AnEvaluationHasShardsOfABatchAndNeverMorePartsThanAllowed) {
  EXPECT_EQ(evaluation_part(10'000, 128, 8, 1 << 18), 16);
  EXPECT_EQ(evaluation_part(10'000, 100, 8, 1 << 18), 13);
  EXPECT_EQ(evaluation_part(10'000, 4, 8, 1 << 18), 1);
  EXPECT_EQ(evaluation_part(0, 4, 8, 1 << 18), 1);
  RandomStream draws(random_key({3}));
  for (int i = 0; i < 2000; ++i) {
    const auto size = static_cast<int64_t>(draws.below(uint64_t{1} << (1 + draws.below(40))));
    const auto batch = static_cast<int64_t>(1 + draws.below(1000)), shards = static_cast<int64_t>(1 + draws.below(64));
    const int64_t part = evaluation_part(size, batch, shards, 1 << 18), parts = (size + part - 1) / part;
    ASSERT_LE(parts, 1 << 18) << size << ' ' << batch << ' ' << shards;
    ASSERT_TRUE(part == (batch + shards - 1) / shards || (size + part - 2) / std::max<int64_t>(part - 1, 1) > 1 << 18)
        << "the part " << part << " of " << size << " is larger than it has to be";
  }
}

TEST(Shards, CoverTheStepInOrderWithSizesThatDifferByAtMostOne) {
  for (int64_t batch = 1; batch <= 70; ++batch) {
    for (int64_t shards = 1; shards <= 20; ++shards) {
      for (int64_t count = 0; count <= batch; ++count) {
        const auto ranges = split_into_shards(count, batch, shards);
        ASSERT_EQ(static_cast<int64_t>(ranges.size()), shards);
        int64_t next = 0, used = 0, least = batch, most = 0;
        bool ended = false;
        for (const auto& [first, last] : ranges) {
          ASSERT_EQ(first, next);
          ASSERT_LE(first, last);
          next = last;
          if (first == last) {
            ended = true;
            continue;
          }
          ASSERT_FALSE(ended);  // empty shards come last
          ++used;
          least = std::min(least, last - first);
          most = std::max(most, last - first);
        }
        ASSERT_EQ(next, count);
        if (used > 0) {
          ASSERT_LE(most - least, 1);
        }
        ASSERT_LE(most,
                  (batch + shards - 1) / shards);  // never larger than in a full batch, for which memory is planned
        if (count == batch) {
          ASSERT_EQ(used, std::min(batch, shards));
        }
        // The number of used shards is the number that `count` samples need if each shard is as large as in a full
        // batch.
        ASSERT_EQ(used, std::min(count, (count * shards + batch - 1) / batch));
        if (batch % shards == 0) {
          ASSERT_EQ(used, (count + batch / shards - 1) / (batch / shards));
        }
      }
    }
  }
}

TEST(Shards, DefaultKeepsShardsAtSixteenSamplesOrMore) {
  EXPECT_EQ(default_shards(1), 1);
  EXPECT_EQ(default_shards(31), 1);
  EXPECT_EQ(default_shards(64), 4);
  EXPECT_EQ(default_shards(128), 8);
  EXPECT_EQ(default_shards(1 << 20), 8);
  for (int64_t batch = 16; batch < 1000; ++batch) EXPECT_GE(batch / default_shards(batch), 16);
}

}  // namespace
}  // namespace sinew::data
