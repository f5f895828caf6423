// Tests that encoding keeps every bit of a contribution, and that adding encoded contributions equals adding the
// contributions.
#include "distribute/small_sums.h"

#include <gtest/gtest.h>

#include "base/error.h"
#include "base/random.h"

namespace sinew::distribute {
namespace {

train::Contribution random_contribution(uint64_t seed) {
  RandomStream random(random_key({seed, 77}));
  train::Contribution made;
  made.loss = random.uniform() * 1e3 - 500;
  made.weight = random.uniform() * 64;
  made.samples = static_cast<int64_t>(random.below(100));
  for (int i = 0; i < 5; ++i) made.counts.push_back(static_cast<int64_t>(random.below(1000)));
  for (int i = 0; i < 3; ++i) made.sums.push_back(random.uniform());
  for (uint64_t i = random.below(6); i > 0; --i) made.scores.push_back(static_cast<float>(random.uniform()));
  for (uint64_t i = random.below(3); i > 0; --i) made.not_decoded.push_back(static_cast<int64_t>(random.below(1000)));
  const auto values = torch::tensor({random.uniform(), -random.uniform(), random.uniform(), 0.0}, torch::kFloat64);
  made.buffers = {values.reshape({2, 2}), {}, torch::tensor(1, torch::kInt64), torch::tensor({3, 4}, torch::kInt32)};
  if (random.below(2) == 0) made.buffers[0] = torch::Tensor();
  made.buffers_conflict = random.below(4) == 0;
  return made;
}

void expect_equal(const train::Contribution& a, const train::Contribution& b) {
  EXPECT_EQ(a.loss, b.loss);
  EXPECT_EQ(a.weight, b.weight);
  EXPECT_EQ(a.samples, b.samples);
  EXPECT_EQ(a.counts, b.counts);
  EXPECT_EQ(a.sums, b.sums);
  EXPECT_EQ(a.scores, b.scores);
  EXPECT_EQ(a.not_decoded, b.not_decoded);
  EXPECT_EQ(a.buffers_conflict, b.buffers_conflict);
  ASSERT_EQ(a.buffers.size(), b.buffers.size());
  for (size_t i = 0; i < a.buffers.size(); ++i) {
    ASSERT_EQ(a.buffers[i].defined(), b.buffers[i].defined()) << i;
    if (!a.buffers[i].defined()) continue;
    EXPECT_EQ(a.buffers[i].scalar_type(), b.buffers[i].scalar_type()) << i;
    EXPECT_TRUE(torch::equal(a.buffers[i], b.buffers[i])) << i;
  }
}

train::Contribution copy_of(const train::Contribution& contribution) {
  train::Contribution copy = contribution;
  for (torch::Tensor& buffer : copy.buffers) {
    if (buffer.defined()) buffer = buffer.clone();
  }
  return copy;
}

TEST(SmallSums, EncodingKeepsEveryBit) {
  for (uint64_t seed = 0; seed < 200; ++seed) {
    const train::Contribution made = random_contribution(seed);
    expect_equal(decoded(encoded(made)), made);
  }
}

TEST(SmallSums, MergingBytesEqualsAddingContributions) {
  for (uint64_t seed = 0; seed < 200; ++seed) {
    const train::Contribution left = random_contribution(2 * seed), right = random_contribution(2 * seed + 1);
    train::Contribution sum = copy_of(left);
    train::add(sum, copy_of(right));
    expect_equal(decoded(merged(encoded(left), encoded(right))), sum);
  }
}

TEST(SmallSums, RefusesBytesOfTheWrongLength) {
  const std::string whole = encoded(random_contribution(5));
  for (size_t size = 0; size < whole.size(); ++size) {
    EXPECT_THROW(decoded(std::string_view(whole).substr(0, size)), Error) << size;
  }
  EXPECT_THROW(decoded(whole + "x"), Error);
}

}  // namespace
}  // namespace sinew::distribute
