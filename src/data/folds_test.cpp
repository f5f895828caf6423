#include "data/folds.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <set>

#include "base/error.h"
#include "base/random.h"

namespace sinew::data {
namespace {

using testing::ElementsAre;

using Samples = std::vector<int64_t>;

std::vector<SplitIndices> all_folds(SplitRequest request) {
  std::vector<SplitIndices> all;
  for (request.fold = 0; request.fold < request.folds; ++request.fold) all.push_back(split_samples(request));
  return all;
}

// Checks that every sample is test data, or in the validation data of exactly one fold and in the training data of all
// others.
void expect_one_fold_each(const std::vector<SplitIndices>& folds, int64_t size) {
  Samples validated;
  for (const SplitIndices& fold : folds) {
    EXPECT_EQ(fold.test, folds[0].test);
    Samples all = fold.train;
    all.insert(all.end(), fold.val.begin(), fold.val.end());
    all.insert(all.end(), fold.test.begin(), fold.test.end());
    std::ranges::sort(all);
    ASSERT_EQ(static_cast<int64_t>(all.size()), size);
    for (int64_t i = 0; i < size; ++i) ASSERT_EQ(all[static_cast<size_t>(i)], i);
    EXPECT_TRUE(std::ranges::is_sorted(fold.train));
    EXPECT_TRUE(std::ranges::is_sorted(fold.val));
    EXPECT_FALSE(fold.val.empty());
    validated.insert(validated.end(), fold.val.begin(), fold.val.end());
  }
  std::ranges::sort(validated);
  EXPECT_EQ(std::ranges::adjacent_find(validated), validated.end());
  EXPECT_EQ(static_cast<int64_t>(validated.size() + folds[0].test.size()), size);
}

template <typename Count>
int64_t spread(const std::vector<SplitIndices>& folds, Count count) {
  std::vector<int64_t> counts;
  for (const SplitIndices& fold : folds) counts.push_back(count(fold.val));
  const auto [least, most] = std::ranges::minmax(counts);
  return most - least;
}

int64_t size_of(const Samples& samples) {
  return static_cast<int64_t>(samples.size());
}

TEST(Folds, HoldEachSampleOnce) {
  RandomStream draws(random_key({20}));
  for (int trial = 0; trial < 200; ++trial) {
    const auto folds = static_cast<int64_t>(2 + draws.below(9)), size = static_cast<int64_t>(40 + draws.below(500));
    const double test = trial % 2 == 0 ? 0 : draws.uniform(0, 0.5);
    const auto all = all_folds({.size = size, .test = test, .seed = draws.bits64(), .folds = folds});
    expect_one_fold_each(all, size);
    EXPECT_LE(spread(all, size_of), 1);
  }
}

// As scikit-learn's StratifiedKFold: the counts of a class and the sizes of the folds differ by at most one.
TEST(Folds, EveryClassIsDealtOutEvenly) {
  RandomStream draws(random_key({21}));
  for (int trial = 0; trial < 200; ++trial) {
    const auto folds = static_cast<int64_t>(2 + draws.below(9)), size = static_cast<int64_t>(40 + draws.below(500));
    const uint64_t classes = 1 + draws.below(9);
    Samples of(static_cast<size_t>(size));
    for (int64_t& c : of) c = static_cast<int64_t>(std::min(draws.below(classes), draws.below(classes)));
    const auto all = all_folds(
        {.size = size, .test = trial % 2 == 0 ? 0 : 0.2, .seed = draws.bits64(), .classes = of, .folds = folds});
    expect_one_fold_each(all, size);
    EXPECT_LE(spread(all, size_of), 1);
    for (int64_t c = 0; c < static_cast<int64_t>(classes); ++c) {
      const auto count = [&](const Samples& samples) {
        return std::ranges::count_if(samples, [&](int64_t i) { return of[static_cast<size_t>(i)] == c; });
      };
      EXPECT_LE(spread(all, count), 1) << c;
    }
  }
}

// As scikit-learn's GroupKFold: each group goes to the fold that has the fewest samples, the largest group first.
TEST(Folds, AGroupIsInOneFold) {
  RandomStream draws(random_key({22}));
  for (int trial = 0; trial < 200; ++trial) {
    const auto folds = static_cast<int64_t>(2 + draws.below(6)), size = static_cast<int64_t>(60 + draws.below(400));
    const uint64_t groups = static_cast<uint64_t>(folds) + draws.below(20);
    Samples of(static_cast<size_t>(size));
    for (size_t i = 0; i < of.size(); ++i) of[i] = static_cast<int64_t>(i < groups ? i : draws.below(groups));
    const auto all = all_folds({.size = size, .seed = draws.bits64(), .groups = of, .folds = folds});
    expect_one_fold_each(all, size);
    std::vector<int64_t> sizes(groups), loads(static_cast<size_t>(folds)), found;
    for (const int64_t group : of) ++sizes[static_cast<size_t>(group)];
    std::ranges::sort(sizes, std::greater<>());
    for (const int64_t size_of_group : sizes) *std::ranges::min_element(loads) += size_of_group;
    for (const SplitIndices& fold : all) {
      std::set<int64_t> inside, outside;
      for (const int64_t i : fold.val) inside.insert(of[static_cast<size_t>(i)]);
      for (const int64_t i : fold.train) outside.insert(of[static_cast<size_t>(i)]);
      EXPECT_EQ(inside.size() + outside.size(), groups) << "a group is on both sides";
      found.push_back(size_of(fold.val));
    }
    std::ranges::sort(loads);
    std::ranges::sort(found);
    EXPECT_EQ(found, loads);
  }
}

// scikit-learn: list(TimeSeriesSplit(3).split(range(11))).
TEST(Folds, InTheOrderOfTimeOnlyEarlierSamplesTrain) {
  const std::vector<double> times = {10, 9, 8, 7, 6, 5, 4, 3, 2, 1, 0};
  const auto all = all_folds({.size = 11, .times = times, .folds = 3});
  EXPECT_THAT(all[0].train, ElementsAre(6, 7, 8, 9, 10));
  EXPECT_THAT(all[0].val, ElementsAre(4, 5));
  EXPECT_THAT(all[1].train, ElementsAre(4, 5, 6, 7, 8, 9, 10));
  EXPECT_THAT(all[1].val, ElementsAre(2, 3));
  EXPECT_THAT(all[2].train, ElementsAre(2, 3, 4, 5, 6, 7, 8, 9, 10));
  EXPECT_THAT(all[2].val, ElementsAre(0, 1));
  const auto tested = all_folds({.size = 11, .test = 0.2, .times = times, .folds = 2});
  EXPECT_THAT(tested[1].test, ElementsAre(0, 1));
  EXPECT_THAT(tested[1].val, ElementsAre(2, 3, 4));
  EXPECT_THAT(tested[0].val, ElementsAre(5, 6, 7));
  EXPECT_THAT(tested[0].train, ElementsAre(8, 9, 10));
}

TEST(Folds, DependOnTheSeed) {
  const SplitRequest request{.size = 100, .seed = 3, .folds = 5, .fold = 2};
  SplitRequest other = request;
  EXPECT_EQ(split_samples(request).val, split_samples(other).val);
  other.seed = 4;
  EXPECT_NE(split_samples(request).val, split_samples(other).val);
}

std::string code_of(const SplitRequest& request) {
  try {
    split_samples(request);
  } catch (const Error& error) {
    return std::string(error.code.text());
  }
  return "";
}

TEST(Folds, NeedEnoughSamplesAndGroups) {
  const Samples groups = {0, 0, 0, 1, 1, 1};
  const std::vector<double> times = {1, 2, 3};
  EXPECT_EQ(code_of({.size = 4, .folds = 5}), "DATA_BAD_SPLIT");
  EXPECT_EQ(code_of({.size = 6, .groups = groups, .folds = 3}), "DATA_BAD_SPLIT");
  EXPECT_EQ(code_of({.size = 3, .times = times, .folds = 3}), "DATA_BAD_SPLIT");
  EXPECT_EQ(code_of({.size = 5, .folds = 5}), "");
}

TEST(Folds, NotesNameSmallClasses) {
  const Samples classes = {0, 0, 0, 0, 0, 0, 0, 0, 1, 1};
  const SplitRequest request{.size = 10, .classes = classes, .folds = 4, .fold = 1};
  std::vector<std::string> notes, none;
  split_samples(request, notes);
  ASSERT_EQ(notes.size(), 2U);
  EXPECT_THAT(notes[0], testing::HasSubstr("fold 1 of 0 to 3"));
  EXPECT_THAT(notes[1], testing::StartsWith("1 class has fewer samples"));
  split_samples({.size = 10, .val = 0.2}, none);
  EXPECT_TRUE(none.empty());
}

}  // namespace
}  // namespace sinew::data
