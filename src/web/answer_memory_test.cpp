#include "web/answer_memory.h"

#include <gtest/gtest.h>

#include <optional>

namespace sinew::web {
namespace {

TEST(AnswerMemory, IsBoundedForAllAndForEachCaller) {
  AnswerMemory memory(1'000'000);
  const auto first = memory.hold("a", 200'000);
  EXPECT_TRUE(first);
  EXPECT_FALSE(memory.hold("a", 100'000)) << "more than a quarter";
  EXPECT_TRUE(memory.hold("a", 40'000));
  const auto other = memory.hold("b", 700'000);
  EXPECT_TRUE(other) << "the only answer of a caller may be larger than a quarter";
  EXPECT_FALSE(memory.has_room("b"));
  EXPECT_FALSE(memory.hold("c", 200'000)) << "more than all";
  EXPECT_TRUE(memory.has_room("c"));
  EXPECT_TRUE(memory.hold("c", 200'000, true)) << "it is counted, and not refused";
  EXPECT_EQ(memory.held(), 900'000);
}

TEST(AnswerMemory, IsFreedWithTheLastCopyEvenAfterTheServer) {
  std::optional<AnswerMemory> memory(1'000'000);
  auto large = memory->hold("a", 5'000'000);
  EXPECT_TRUE(large) << "the only answer of all has room";
  EXPECT_FALSE(memory->hold("b", 1));
  auto copy = large;
  large = nullptr;
  EXPECT_FALSE(memory->has_room("b"));
  copy = nullptr;
  EXPECT_EQ(memory->held(), 0);
  EXPECT_TRUE(memory->has_room("b"));
  copy = memory->hold("a", 10);
  memory.reset();
  copy = nullptr;
}

}  // namespace
}  // namespace sinew::web
