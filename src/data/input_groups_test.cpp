// Tests how the input columns of a data set belong together.
#include <gtest/gtest.h>

#include "data/fixtures.h"

namespace sinew::data {
namespace {

using GroupKind = InputGroup::Kind;

DataInfo info_of(const Folder& folder, const std::string& text) {
  spec::DataOptions options;
  options.train.path = folder.write("t.csv", text);
  options.columns.target = "y";
  options.columns.text = {"words"};
  return open_dataset(options, 3)->info();
}

TEST(InputGroups, FollowTheKindsOfTheColumns) {
  const Folder folder;
  std::string text = "size,town,open,day,words,y\n";
  for (int i = 0; i < 40; ++i) {
    text += (i == 7 ? "" : std::to_string(i % 9) + ".5") + "," + "abcd"[i % 4] + "," + (i % 2 == 0 ? "yes" : "no") +
            ",2024-01-" + std::to_string(10 + i % 20) + ",one two w" + std::to_string(i) + "," +
            (i % 3 == 0 ? "p" : "q") + "\n";
  }
  const DataInfo info = info_of(folder, text);
  const std::vector<InputGroup> groups = input_groups(info);
  const std::vector<InputGroup> expected = {
      {GroupKind::number, 0, 1},    // size
      {GroupKind::category, 1, 1},  // size is missing
      {GroupKind::category, 2, 4},  // town
      {GroupKind::other, 6, 1},     // open
      {GroupKind::number, 7, 1},    // year
      {GroupKind::number, 8, 1},    // days
      {GroupKind::other, 9, 4},     // month and weekday
      {GroupKind::other, 13, 64},   // words
  };
  EXPECT_EQ(groups, expected);
  EXPECT_EQ(info.input_shape, Shape{77});
  EXPECT_EQ(input_groups(info_from_json(info_json(info))), expected) << "a trained model has the same groups";
}

TEST(InputGroups, EachInputOfOtherDataIsANumber) {
  DataInfo info;
  info.format = "npy";
  info.input_shape = {2, 3};
  const std::vector<InputGroup> groups = input_groups(info);
  ASSERT_EQ(groups.size(), 6U);
  EXPECT_EQ(groups[5], (InputGroup{GroupKind::number, 5, 1}));
}

TEST(InputGroups, TheRangeOfTheTargetsIsThatOfTrain) {
  const Folder folder;
  std::string text = "x,words,y\n";
  for (int i = 0; i < 30; ++i) text += std::to_string(i) + ",a b c," + std::to_string(i * 2.5 - 10) + "\n";
  const DataInfo info = info_of(folder, text);
  ASSERT_EQ(info.task, Task::regression);
  EXPECT_EQ(info.target_low, std::vector<double>{-10});
  EXPECT_EQ(info.target_high, std::vector<double>{62.5});
}

}  // namespace
}  // namespace sinew::data
