#include "cluster/coordinator_status.h"

#include <gtest/gtest.h>
#include <sys/stat.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>

#include "base/error.h"
#include "base/random.h"
#include "cluster/cluster_state.h"
#include "cluster/coordinator_info.h"
#include "cluster/json.h"
#include "rundir/rundir.h"

namespace sinew::cluster {
namespace {

const char* const kStatus =
    R"({"job":"digits","run_directory":"runs/a","wanted":3,"minimum":1,"listening":false,"running_seconds":7.5,
"why":"member 2 is gone: killed by SIGKILL","members":[
{"id":1,"host":"here","pid":41,"address":"a:1","phase":"computing","in_view":true,"view":7,"step":120,"durable_step":100,
"speed":12.5,"here_seconds":60,"silent_seconds":0.1,"work_share":0.75},
{"id":3,"host":"bad\u001b[31m","pid":43,"address":"a:3","phase":"joining","in_view":true,"view":7,"step":118,
"durable_step":-1,"speed":0,"here_seconds":2,"silent_seconds":0.1,"work_share":0,"donor":1}],
"requests":[{"number":4,"kind":"checkpoint","value":0,"reason":""}],
"decisions":[{"at":"2026-11-21T03:15:02.123Z","text":"view 7: member 2 is gone"}],
"view":{"generation":7,"fresh":false,"why":"x","members":[{"id":1,"address":"a:1","share":1,"joining":false},
{"id":3,"address":"a:3","share":1,"joining":true,"donor":1}]},
"leader":1,"facts":{"loss":0.25,"epoch":2,"deep":{"a":1},"note":"fine"},"finished":75,
"last_recovery":{"generation":7,"why":"member 2 is gone","seconds_ago":12.3,"seconds":0.0125}})";

// The struct defines the format: writing a status that was read gives the same fields.
TEST(CoordinatorStatus, WritesWhatItReads) {
  std::string text = kStatus;
  text.replace(text.find("bad\\u001b"), 9, "bad?");  // the reader replaces control characters
  EXPECT_EQ(*parse_json(to_json(status_of_json(text))), *parse_json(text));
}

TEST(CoordinatorStatus, IsReadAndShown) {
  const CoordinatorStatus status = status_of_json(kStatus);
  EXPECT_EQ(status.wanted, 3);
  EXPECT_EQ(status.step(), 120);
  EXPECT_EQ(status.durable_step(), 100);
  EXPECT_EQ(status.generation(), 7);
  EXPECT_EQ(status.finished, 75);
  ASSERT_EQ(status.members.size(), 2u);
  EXPECT_EQ(status.members[1].pid, 43);
  const std::string text = status_text("runs/a", status);
  for (const char* part :
       {"runs/a: 2 of 3 workers, newest checkpoint at step 100\n", "step 120  loss 0.2500  epoch 2.000  note fine\n",
        "computing*", "75%", "\nmember 2 is gone: killed by SIGKILL\n",
        "last recovery took 0.0125 s, 12s ago: member 2 is gone\n", "  2026-11-21 03:15:02  view 7: member 2 is gone\n",
        "the run ends with exit code 75\n"})
    EXPECT_NE(text.find(part), std::string::npos) << part << "\nin\n" << text;
  EXPECT_EQ(text.find('\x1b'), std::string::npos) << "a host's name does not drive the terminal";
}

TEST(CoordinatorStatus, TheProgressIsShownAsInTheRunsOwnLine) {
  CoordinatorStatus status = status_of_json(kStatus);
  status.facts =
      R"({"eta_seconds":3241.712924661797,"metrics":{"train/loss":0.7312345678,"val/loss":2.84e-06},"samples":3600,)"
      R"("samples_per_second":986.4710646250786,"step":119,"total_steps":100000})";
  status.why = kNothingChanged;
  status.finished.reset();
  EXPECT_EQ(status_text("runs/a", status),
            "runs/a: 2 of 3 workers, newest checkpoint at step 100\n"
            "step 120/100000  train/loss 0.7312  val/loss 2.84e-06  986 samples/s  eta 54m02s\n"
            "\n"
            "  id  pid  host      phase       share  shards/s  step\n"
            "   1   41  here      computing*    75%      12.5   120\n"
            "   3   43  bad?[31m  joining        0%       0.0   118\n"
            "\n"
            "last recovery took 0.0125 s, 12s ago: member 2 is gone\n"
            "last decisions (times in UTC):\n"
            "  2026-11-21 03:15:02  view 7: member 2 is gone\n");
}

TEST(CoordinatorStatus, AForecastOfAMetricIsShownBesideTheTime) {
  CoordinatorStatus status = status_of_json(kStatus);
  status.facts = R"({"best_at_end":{"high":0.9342,"low":0.92134,"metric":"val/accuracy"},"eta_seconds":60,"step":119,)"
                 R"("total_steps":1000})";
  EXPECT_NE(status_text("runs/a", status).find("  eta 1m00s  best val/accuracy 0.921-0.935\n"), std::string::npos)
      << status_text("runs/a", status);
  for (const char* wrong : {"7", "{}", R"({"high":1,"low":"x","metric":"a"})", R"({"high":1,"low":0,"metric":3})"}) {
    status.facts = std::string(R"({"step":119,"best_at_end":)") + wrong + "}";
    EXPECT_EQ(status_text("runs/a", status).find("best "), std::string::npos) << wrong;
  }
}

// A member says itself where it is. Signals go to the processes, and decisions of the supervisor follow from the steps.
TEST(CoordinatorStatus, WhatAGuestSaysIsNotBelieved) {
  CoordinatorStatus status = status_of_json(kStatus);
  EXPECT_EQ(processes_on("here", status).computing, std::vector<pid_t>{41});
  EXPECT_EQ(status.own_step(), 120);
  status.members[0].token = "0123456789abcdef";
  EXPECT_TRUE(processes_on("here", status).computing.empty());
  EXPECT_EQ(status.own_step(), 118);
  status.members[0].phase = "leaving";
  EXPECT_TRUE(processes_on("here", status).leaving.empty());
}

ErrorCode code_of(const std::string& text) {
  try {
    status_of_json(text);
  } catch (const Error& error) {
    return error.code;
  }
  return "NO_ERROR";
}

TEST(CoordinatorStatus, RejectsTextThatIsNoStatus) {
  const ErrorCode bad = "COORDINATOR_BAD_STATUS";
  for (const char* text : {"", "{", "[]", "7", "{}"}) EXPECT_EQ(code_of(text), bad) << text;
  const Json good = *parse_json(kStatus);
  EXPECT_EQ(code_of(good.dump()), ErrorCode("NO_ERROR"));
  const std::pair<const char*, const char*> changes[] = {
      {"wanted", R"("x")"},      {"members", "[7]"}, {"members", R"([{"id":"x"}])"},
      {"members", R"({"a":1})"}, {"view", "{}"},     {"decisions", "[3]"}};
  for (const auto& [key, value] : changes) {
    Json changed = good;
    changed[key] = *parse_json(value);
    EXPECT_EQ(code_of(changed.dump()), bad) << changed;
  }
}

TEST(CoordinatorStatus, DamagedTextNeverCrashes) {
  const std::string good = kStatus;
  RandomStream random(random_key({3}));
  for (int i = 0; i < 3000; ++i) {
    std::string text = good.substr(0, random.below(2) == 0 ? random.below(good.size()) : good.size());
    for (uint64_t change = random.below(4); change > 0 && !text.empty(); --change)
      text[random.below(text.size())] = "{}[]\",:0-9e\x80"[random.below(12)];
    try {
      status_text("run", status_of_json(text));
    } catch (const Error&) {
    }
  }
}

class CoordinatorInfoTest : public ::testing::Test {
 protected:
  void SetUp() override {
    std::string name = (std::filesystem::temp_directory_path() / "coordinator-info-XXXXXX").string();
    ASSERT_NE(::mkdtemp(name.data()), nullptr);
    folder = name;
  }
  void TearDown() override { std::filesystem::remove_all(folder); }
  void write(const std::string& text) const {
    std::ofstream(rundir::file_in(folder, rundir::kCoordinatorFile)) << text;
  }
  std::string folder;
};

TEST_F(CoordinatorInfoTest, IsReadAsWrittenAndHasMode0600) {
  EXPECT_FALSE(read_coordinator_info(folder));
  write_coordinator_info(folder, {"http://127.0.0.1:4711", "secret", 42, 3, {}});
  struct stat about {};
  ASSERT_EQ(::stat(rundir::file_in(folder, rundir::kCoordinatorFile).c_str(), &about), 0);
  EXPECT_EQ(about.st_mode & 0777, 0600u);
  const auto file = read_coordinator_info(folder);
  ASSERT_TRUE(file);
  EXPECT_EQ(file->url, "http://127.0.0.1:4711");
  EXPECT_EQ(file->secret, "secret");
  EXPECT_EQ(file->pid, 42);
  EXPECT_EQ(file->incarnation, 3);
  EXPECT_FALSE(file->exit_code);
  EXPECT_EQ(running_coordinator("none", folder).pid, 42);
}

TEST_F(CoordinatorInfoTest, OnlyTheNewestCoordinatorRecordsTheEnd) {
  write_coordinator_info(folder, {"http://127.0.0.1:4711", "secret", 42, 3, {}});
  record_end(folder, 41, 0);
  EXPECT_FALSE(read_coordinator_info(folder)->exit_code);
  record_end(folder, 42, 75);
  EXPECT_EQ(read_coordinator_info(folder)->exit_code, 75);
  try {
    running_coordinator("none", folder);
    FAIL() << "it is not running";
  } catch (const Error& error) {
    EXPECT_EQ(error.code, ErrorCode("RUN_NOT_RUNNING"));
    EXPECT_NE(std::string(error.what()).find("exit code 75"), std::string::npos);
    EXPECT_NE(error.hint.find("sinew resume"), std::string::npos);
  }
}

TEST_F(CoordinatorInfoTest, ReadsAFileOfVersionOne) {
  write(R"({"url":"http://127.0.0.1:4711","secret":"secret","pid":42,"life":3,"over":75})");
  const auto info = read_coordinator_info(folder);
  ASSERT_TRUE(info);
  EXPECT_EQ(info->secret, "secret");
  EXPECT_EQ(info->incarnation, 3);
  EXPECT_EQ(info->exit_code, 75);
}

TEST_F(CoordinatorInfoTest, RejectsInvalidFiles) {
  const auto code = [&](const std::string& text) -> ErrorCode {
    write(text);
    try {
      read_coordinator_info(folder);
    } catch (const Error& error) {
      return error.code;
    }
    return "NO_ERROR";
  };
  for (const char* text :
       {"", "{", "[]", "{}", R"({"url":1,"secret":"","pid":1,"life":0})", R"({"url":"","secret":"","pid":1,"life":-1})",
        R"({"url":"","secret":"","pid":1})", R"({"url":"","secret":"","pid":1,"life":0,"over":"x"})",
        R"({"version":2,"url":"","secret":"","pid":1,"life":0})", R"({"version":0,"url":"","secret":"","pid":1})",
        R"({"version":2,"url":"","secret":"","pid":1,"incarnation":0,"exit_code":-1})"}) {
    EXPECT_EQ(code(text), ErrorCode("COORDINATOR_FILE_INVALID")) << text;
  }
  EXPECT_EQ(code(R"({"version":3})"), ErrorCode("COORDINATOR_FILE_VERSION"));
}

TEST(Secret, IsLongAndNeverTheSame) {
  EXPECT_EQ(new_secret().size(), 64u);
  EXPECT_NE(new_secret(), new_secret());
}

}  // namespace
}  // namespace sinew::cluster
