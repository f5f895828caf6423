#include <gtest/gtest.h>

#include "base/random.h"
#include "spec/options.h"

namespace sinew::spec {
namespace {

std::vector<std::string> all_leaves() {
  std::vector<std::string> leaves;
  for (const Option& option : option_table()) leaves.push_back(option.key);
  return leaves;
}

TEST(DidYouMean, FindsSlips) {
  const std::vector<std::string> known = {"batch_size", "max_duration", "seed", "shards", "lanes", "lr"};
  const std::pair<const char*, const char*> cases[] = {
      {"batchsize", "batch_size"},
      {"batch-size", "batch_size"},
      {"BATCH_SIZE", "batch_size"},
      {"bacth_size", "batch_size"},
      {"batch", "batch_size"},
      {"sede", "seed"},
      {"sed", "seed"},
      {"shard", "shards"},
      {"lrr", "lr"},
      {"rl", "lr"},
      {"max_durration", "max_duration"},
  };
  for (const auto& [word, expected] : cases) EXPECT_EQ(did_you_mean(word, known), expected) << word;
}

TEST(DidYouMean, SuggestsNothingIfNoWordIsClose) {
  const std::vector<std::string> known = {"batch_size", "seed", "lr"};
  for (const char* word : {"", "x", "zebra", "momentum", "size_of_batches", "qq"}) {
    EXPECT_EQ(did_you_mean(word, known), "") << word;
  }
  EXPECT_EQ(did_you_mean(std::string(100000, 'a'), known), "");
  EXPECT_EQ(did_you_mean("seed", {}), "");
}

// Any single slip in a key of four letters or more is recognised, unless the result is as close to another key.
TEST(DidYouMean, UndoesEverySingleSlip) {
  const std::vector<std::string> known = all_leaves();
  RandomStream random(random_key({4}));
  int wrong = 0, cases = 0;
  for (const std::string& key : known) {
    if (key.size() < 4) continue;
    for (int i = 0; i < 20; ++i) {
      std::string word = key;
      const size_t at = random.below(word.size() - 1);
      switch (random.below(4)) {
        case 0: word.erase(at, 1); break;
        case 1: word.insert(at, 1, static_cast<char>('a' + random.below(26))); break;
        case 2: word[at] = static_cast<char>('a' + random.below(26)); break;
        default: std::swap(word[at], word[at + 1]); break;
      }
      ++cases;
      wrong += did_you_mean(word, known) == key ? 0 : 1;
    }
  }
  EXPECT_GT(cases, 1000);
  EXPECT_LE(wrong * 100, cases) << wrong << " of " << cases;
}

}  // namespace
}  // namespace sinew::spec
