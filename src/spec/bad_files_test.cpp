// Runs the cases of bad_*_test.cpp, which are tables of invalid job files with their problems.
#include "spec/expect_problems.h"

namespace sinew::spec {

TEST_P(BadFiles, AreRefusedAtTheirPlaceWithTheirCode) {
  EXPECT_TRUE(problems_are(problems_of(GetParam().yaml), GetParam().problems));
}

// The same file with Windows line ends has the same problems at the same places.
TEST_P(BadFiles, HaveTheSameProblemsWithWindowsLineEnds) {
  std::string yaml;
  for (const char letter : GetParam().yaml) yaml += letter == '\n' ? std::string("\r\n") : std::string(1, letter);
  EXPECT_TRUE(problems_are(problems_of(yaml), GetParam().problems));
}

}  // namespace sinew::spec
