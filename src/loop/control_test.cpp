// Tests the control log as text, and the numbers of the users' requests that its entries came from.
#include <gtest/gtest.h>

#include "loop/loop.h"

namespace sinew::loop {
namespace {

using Kind = ControlEntry::Kind;

ControlLog log_of(const std::string& text) {
  ControlLog log;
  for (ControlEntry& entry : entries_of_json(text)) log.append(std::move(entry));
  return log;
}

TEST(ControlLog, KeepsTheNumberOfARequestWithItsEntryAndOutOfTheDigest) {
  const std::vector<ControlEntry> asked = {{Step(3), Kind::learning_rate, 0.5, "a person", false, 7},
                                           {Step(4), Kind::evaluate, 0, "the clock"}};
  const ControlLog log = log_of(entries_json(asked));
  EXPECT_EQ(log.newest_request(), 7);
  auto nobodys = asked;
  nobodys[0].request = 0;
  const std::string text = entries_json(nobodys);
  EXPECT_EQ(text.find("request"), std::string::npos) << "as it was before entries had one";
  EXPECT_EQ(log_of(text).newest_request(), 0);
  EXPECT_EQ(log_of(text).digest_text(Step(9)), log.digest_text(Step(9)));
}

TEST(ControlLog, ARequestWithoutAReasonGetsOne) {
  EXPECT_EQ(reason_of_request({Step(0), Kind::stop, 75, "enough"}), "enough");
  EXPECT_EQ(reason_of_request({Step(0), Kind::stop, 75, ""}), "stopped by a user's request");
  EXPECT_EQ(reason_of_request({Step(0), Kind::learning_rate, 0.5, ""}), "a user's request");
}

// The coordinator of the next attempt numbers requests from one again.
TEST(ControlLog, ForgetsRequestNumbersAtAResume) {
  ControlLog log = log_of(entries_json({{Step(3), Kind::learning_rate, 0.5, "a person", false, 7}}));
  const std::string before = log.digest_text(Step(9));
  log.resume_at(Step(5));
  EXPECT_EQ(log.newest_request(), 0);
  EXPECT_EQ(log.digest_text(Step(9)), before);
}

}  // namespace
}  // namespace sinew::loop
