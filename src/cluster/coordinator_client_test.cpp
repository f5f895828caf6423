#include "cluster/coordinator_client.h"

#include <gtest/gtest.h>
#include <sys/stat.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>

#include "base/error.h"
#include "base/random.h"
#include "cluster/coordinator_info.h"
#include "rundir/rundir.h"

namespace sinew::cluster {
namespace {

const char* const kStatus =
    R"({"job":"digits","wanted":3,"minimum":1,"why":"member 2 is gone: killed by SIGKILL","leader":1,"finished":75,
"members":[{"id":1,"host":"here","pid":41,"phase":"computing","in_view":true,"step":120,"durable_step":100,"speed":12.5,"part":0.75},
{"id":3,"host":"bad\u001b[31m","pid":43,"phase":"joining","in_view":true,"step":118,"durable_step":-1,"speed":0,"part":0}],
"view":{"generation":7,"fresh":false,"why":"x","members":[]},
"last_recovery":{"generation":7,"why":"member 2 is gone","seconds_ago":12.3,"seconds":0.0125},
"facts":{"loss":0.25,"epoch":2,"deep":{"a":1},"note":"fine"},
"decisions":[{"at":"2026-11-21T03:15:02.123Z","text":"view 7: member 2 is gone"}]})";

TEST(GroupStatus, IsReadAndShown) {
  const GroupStatus status = parse_status(kStatus);
  EXPECT_EQ(status.wanted, 3);
  EXPECT_EQ(status.step, 120);
  EXPECT_EQ(status.durable_step, 100);
  EXPECT_EQ(status.generation, 7);
  EXPECT_EQ(status.finished, 75);
  ASSERT_EQ(status.members.size(), 2u);
  EXPECT_EQ(status.members[1].pid, 43);
  const std::string text = status_text("runs/a", status);
  for (const char* part :
       {"runs/a: 2 of 3 workers, step 120, newest checkpoint at step 100\n", "loss 0.25, epoch 2, note fine\n",
        "computing*", "75%", "generation 7: member 2 is gone: killed by SIGKILL\n",
        "last recovery took 0.013 s, 12.3 s ago: member 2 is gone\n", "view 7: member 2 is gone\n",
        "the run ends with exit code 75\n"})
    EXPECT_NE(text.find(part), std::string::npos) << part << "\nin\n" << text;
  EXPECT_EQ(text.find('\x1b'), std::string::npos) << "a host's name does not drive the terminal";
}

TEST(GroupStatus, WhatIsNoStatusIsAnError) {
  for (const char* text : {"", "{", "[]", "7", "{}", R"({"wanted":"x","members":[]})", R"({"wanted":1,"members":[7]})",
                           R"({"wanted":1,"members":[{"id":"x"}]})", R"({"wanted":1,"members":[],"view":{}})",
                           R"({"wanted":1,"members":[],"decisions":[3]})", R"({"wanted":1,"members":{"a":1}})"})
    EXPECT_THROW(parse_status(text), Error) << text;
}

TEST(GroupStatus, TextsCutOrChangedAnywhereDoNoHarm) {
  const std::string good = kStatus;
  RandomStream random(random_key({3}));
  for (int i = 0; i < 3000; ++i) {
    std::string text = good.substr(0, random.below(2) == 0 ? random.below(good.size()) : good.size());
    for (uint64_t change = random.below(4); change > 0 && !text.empty(); --change)
      text[random.below(text.size())] = "{}[]\",:0-9e\x80"[random.below(12)];
    try {
      status_text("run", parse_status(text));
    } catch (const Error&) {
    }
  }
}

class GroupFileTest : public ::testing::Test {
 protected:
  void SetUp() override {
    std::string name = (std::filesystem::temp_directory_path() / "group-file-XXXXXX").string();
    ASSERT_NE(::mkdtemp(name.data()), nullptr);
    folder = name;
  }
  void TearDown() override { std::filesystem::remove_all(folder); }
  void write(const std::string& text) const {
    std::ofstream(rundir::file_in(folder, rundir::kCoordinatorFile)) << text;
  }
  std::string folder;
};

TEST_F(GroupFileTest, ComesBackAsItWasWrittenAndIsPrivate) {
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
  EXPECT_EQ(file->life, 3);
  EXPECT_FALSE(file->over);
  EXPECT_EQ(running_coordinator("none", folder).pid, 42);
}

TEST_F(GroupFileTest, TheEndIsNotedByTheNewestOnly) {
  write_coordinator_info(folder, {"http://127.0.0.1:4711", "secret", 42, 3, {}});
  record_end(folder, 41, 0);
  EXPECT_FALSE(read_coordinator_info(folder)->over);
  record_end(folder, 42, 75);
  EXPECT_EQ(read_coordinator_info(folder)->over, 75);
  try {
    running_coordinator("none", folder);
    FAIL() << "it is not running";
  } catch (const Error& error) {
    EXPECT_EQ(error.what(), folder + " is not running: it ended with exit code 75");
    EXPECT_NE(error.hint.find("sinew resume"), std::string::npos);
  }
}

TEST_F(GroupFileTest, WhatIsNoneIsAnError) {
  for (const char* text :
       {"", "{", "[]", "{}", R"({"url":1,"secret":"","pid":1,"life":0})", R"({"url":"","secret":"","pid":1,"life":-1})",
        R"({"url":"","secret":"","pid":1})", R"({"url":"","secret":"","pid":1,"life":0,"over":"x"})"}) {
    write(text);
    EXPECT_THROW(read_coordinator_info(folder), Error) << text;
  }
}

TEST(Secret, IsLongAndNeverTheSame) {
  EXPECT_EQ(new_secret().size(), 64u);
  EXPECT_NE(new_secret(), new_secret());
}

}  // namespace
}  // namespace sinew::cluster
