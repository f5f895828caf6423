// Tests which members have a different state than the group, according to their marks.
#include "group/agreement.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace sinew::group {
namespace {

using testing::ElementsAre, testing::IsEmpty;

// Members 1, 2, ... with marks of these digests.
std::vector<MemberMark> marks_of(const std::vector<uint64_t>& digests) {
  std::vector<MemberMark> marks;
  for (size_t i = 0; i < digests.size(); ++i)
    marks.push_back({MemberId(static_cast<int64_t>(i) + 1), {.step = 57, .part = 3, .digest = {digests[i], 1}}});
  return marks;
}

std::string text_of(const std::vector<MemberMark>& marks) {
  return disagreement_text(marks, agreement_of(marks), [](MemberId id) { return std::to_string(id.value); });
}

TEST(Agreement, NoMarksAndEqualMarksAgree) {
  EXPECT_FALSE(agreement_of({}).mark);
  EXPECT_FALSE(agreement_of({}).split);
  for (const size_t members : {1U, 2U, 7U}) {
    const auto marks = marks_of(std::vector<uint64_t>(members, 5));
    const Agreement agreement = agreement_of(marks);
    EXPECT_EQ(agreement.mark, marks[0].mark);
    EXPECT_THAT(agreement.outvoted, IsEmpty());
    EXPECT_FALSE(agreement.split);
  }
}

TEST(Agreement, MoreThanHalfOutvoteTheOthers) {
  const auto one = agreement_of(marks_of({5, 6, 5}));
  EXPECT_EQ(one.mark->digest.high, 5U);
  EXPECT_THAT(one.outvoted, ElementsAre(MemberId(2)));
  const auto first = agreement_of(marks_of({6, 5, 5}));  // the leader may be the one that is wrong
  EXPECT_THAT(first.outvoted, ElementsAre(MemberId(1)));
  const auto two = agreement_of(marks_of({5, 6, 5, 7, 5}));
  EXPECT_THAT(two.outvoted, ElementsAre(MemberId(2), MemberId(4)));
  EXPECT_FALSE(two.split);
}

TEST(Agreement, HalfOrLessDecideNothing) {
  for (const auto& digests : std::vector<std::vector<uint64_t>>{{5, 6}, {5, 6, 7}, {5, 5, 6, 6}, {5, 5, 6, 7}}) {
    const Agreement agreement = agreement_of(marks_of(digests));
    EXPECT_TRUE(agreement.split);
    EXPECT_FALSE(agreement.mark);
    EXPECT_THAT(agreement.outvoted, IsEmpty());
  }
}

TEST(Agreement, MarksOfOtherStepsOrPartsDiffer) {
  auto marks = marks_of({5, 5, 5});
  marks[1].mark.part = 4;
  EXPECT_THAT(agreement_of(marks).outvoted, ElementsAre(MemberId(2)));
  marks = marks_of({5, 5, 5});
  marks[2].mark.step = 58;
  EXPECT_THAT(agreement_of(marks).outvoted, ElementsAre(MemberId(3)));
}

TEST(Agreement, TheTextNamesTheOutvotedFirstAndBothDigests) {
  const std::string five = to_hex({5, 1}), six = to_hex({6, 1});
  EXPECT_EQ(text_of(marks_of({5, 6, 5})),
            "before step 57 part 3 of the state has digest " + six + " on 2 and " + five + " on 1 and 3");
  EXPECT_EQ(text_of(marks_of({5, 6})),
            "before step 57 part 3 of the state has digest " + five + " on 1 and " + six + " on 2");
}

}  // namespace
}  // namespace sinew::group
