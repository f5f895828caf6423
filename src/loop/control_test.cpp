// Tests the control log as text, and the numbers of the users' requests that its entries came from.
#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <limits>

#include "base/error.h"
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

TEST(ControlLog, TheNewestIntervalOfCheckpointsCounts) {
  ControlLog log;
  EXPECT_FALSE(log.checkpoint_interval(Step(9)));
  log.append({Step(3), Kind::checkpoint_interval, 60, "asked for"});
  log.append({Step(5), Kind::checkpoint_steps, 7, "asked for"});
  EXPECT_FALSE(log.checkpoint_interval(Step(2)));
  EXPECT_EQ(log.checkpoint_interval(Step(4))->value, 60);
  EXPECT_EQ(log.checkpoint_interval(Step(5))->kind, Kind::checkpoint_steps);
  EXPECT_EQ(log.digest_text(Step(9)), "") << "it changes no number of a step";
}

TEST(ControlLog, SaysWhatAnOptionBecomes) {
  EXPECT_EQ(to_text({Step(1), Kind::checkpoint_interval, 1200, ""}), "checkpoint.interval 1200 s");
  EXPECT_EQ(to_text({Step(1), Kind::checkpoint_steps, 500, ""}), "checkpoint.interval 500 steps");
  EXPECT_EQ(to_text({Step(1), Kind::loader_threads, 8, ""}), "data.prefetch.threads 8");
  EXPECT_EQ(to_text({Step(1), Kind::stop, 75, ""}), "stop");
}

TEST(ControlLog, TheNewestThreadsOfLoadersCount) {
  ControlLog log;
  EXPECT_FALSE(log.loader_threads(Step(9)));
  ControlEntry done{Step(3), Kind::loader_threads, 4, "asked for"};
  done.done = true;  // a joiner gets it so
  log.append(done);
  EXPECT_FALSE(log.loader_threads(Step(2)));
  EXPECT_EQ(log.loader_threads(Step(3)), 4);
}

TEST(ControlLog, AResumeForgetsWhatASingleAttemptWasAskedFor) {
  ControlLog log;
  ControlEntry done{Step(3), Kind::checkpoint_interval, 60, "asked for"},
      made{Step(2), Kind::experiment, 9, "asked for"};
  done.done = made.done = true;
  log.append(done);
  log.append(made);
  log.append({Step(4), Kind::loader_threads, 3, "asked for"});
  log.append({Step(6), Kind::experiment, 9, "asked for"});
  log.append({Step(6), Kind::learning_rate, 0.5, "asked for"});
  log.resume_at(Step(5));
  ASSERT_EQ(log.entries().size(), 2U);
  EXPECT_EQ(log.entries()[0].kind, Kind::experiment);
  EXPECT_EQ(log.entries()[1].kind, Kind::learning_rate);
}

TEST(StepMessage, KeepsEveryBit) {
  const std::vector<ControlEntry> entries = {{Step(3), Kind::learning_rate, 0.1, "a person", false, 7}};
  for (const double rate : {0.0, -0.0, 0.1, 1e-310, std::nextafter(0.1, 1), -3.0, std::numeric_limits<double>::max()}) {
    const StepMessage read = step_message_of(to_text({rate, entries}));
    EXPECT_EQ(std::bit_cast<uint64_t>(read.learning_rate), std::bit_cast<uint64_t>(rate));
    EXPECT_EQ(entries_json(read.entries), entries_json(entries));
  }
  EXPECT_TRUE(step_message_of(to_text({0.1, {}})).entries.empty());
}

TEST(StepMessage, ANumberThatIsNotFiniteIsRefused) {
  const auto code_of = [](const std::string& text) -> std::string {
    try {
      step_message_of(text);
    } catch (const Error& error) {
      return std::string(error.code.text());
    }
    return "";
  };
  const char* const kInvalid = "TRAIN_CONTROL_MESSAGE_INVALID";
  for (const double rate : {std::nan(""), HUGE_VAL, -HUGE_VAL}) {
    EXPECT_EQ(code_of(to_text({rate, {}})), kInvalid);
    EXPECT_EQ(code_of(to_text({0.1, {{Step(3), Kind::learning_rate, rate, "", false, 0}}})), kInvalid);
  }
  EXPECT_EQ(code_of(R"({"format":1,"learning_rate":1e999})"), kInvalid);
  EXPECT_EQ(code_of(R"({"format":2,"learning_rate":0.1})"), kInvalid);
  for (const char* text : {"", "[]", "{}", "0.1", R"({"format":1})"}) EXPECT_EQ(code_of(text), kInvalid) << text;
}

}  // namespace
}  // namespace sinew::loop
