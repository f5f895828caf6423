// The processes of an attempt: what can not be had, what does not end.
#include "jobs/guardian.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <stdlib.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "base/error.h"
#include "base/process.h"
#include "jobs/cgroup.h"

namespace sinew::jobs {
namespace {

namespace fs = std::filesystem;

constexpr double kLong = 60;  // a bound, never a measure

class Guardians : public ::testing::Test {
 protected:
  Guardians() {
    std::string pattern = (fs::temp_directory_path() / "sinew-guardian-XXXXXX").string();
    folder_ = ::mkdtemp(pattern.data());
    become_subreaper();
    ::alarm(300);
  }
  ~Guardians() override {
    ::alarm(0);
    std::error_code ignored;
    fs::remove_all(folder_, ignored);
  }
  AttemptStart start_of(const std::string& script, int ranks = 1) const {
    AttemptStart start;
    for (int rank = 0; rank < ranks; ++rank) {
      RankStart one;
      one.command = {"/bin/bash", "-c", script};
      one.environment = {"PATH=/usr/bin:/bin", "FOLDER=" + folder_};
      one.output = ::open("/dev/null", O_WRONLY | O_CLOEXEC);
      one.errors = ::open("/dev/null", O_WRONLY | O_CLOEXEC);
      start.ranks.push_back(one);
    }
    return start;
  }
  static GuardianWord next_word(Guarded& guarded) {
    for (;;) {
      if (auto word = guarded.next()) return *word;
      pollfd one{guarded.descriptor(), POLLIN, 0};
      ::poll(&one, 1, 1000);
    }
  }
  bool has(const char* name) const { return fs::exists(folder_ + "/" + name); }
  void wait_for(const char* name) const {
    while (!has(name)) ::usleep(2000);
  }

  std::string folder_;
};

using Kind = GuardianWord::Kind;

TEST_F(Guardians, ARankThatCanNotEnterItsGroupDoesNotBegin) {
  AttemptStart start = start_of("touch $FOLDER/began");
  start.groups = {folder_};
  Guarded guarded(start);
  const GuardianWord word = next_word(guarded);
  EXPECT_EQ(word.kind, Kind::no_start);
  EXPECT_EQ(word.fault, GuardianWord::Fault::group);
  EXPECT_EQ(word.code, ENOENT);
  EXPECT_EQ(next_word(guarded).kind, Kind::gone);
  EXPECT_TRUE(guarded.finish(kLong));
  EXPECT_FALSE(has("began"));
}

TEST_F(Guardians, AGroupThatCanNotBeEnteredLimitsNothing) {
  CgroupPlaces places;
  places.by_controller = {{"memory", folder_}, {"cpu", folder_}};
  spec::ResourceOptions resources;
  resources.memory = 1 << 30;
  resources.cpus = 2;
  const Limits limits = make_groups(places, "mark", resources);
  EXPECT_TRUE(limits.groups.empty());
  EXPECT_TRUE(limits.enforced.empty());
  EXPECT_NE(limits.why_not.find("it can not be entered"), std::string::npos) << limits.why_not;
  const size_t cpus = limits.why_not.find("resources.cpus");
  ASSERT_NE(cpus, std::string::npos);
  EXPECT_LT(limits.why_not.find("watched"), cpus) << "memory is";
  EXPECT_EQ(limits.why_not.find("watched", cpus), std::string::npos) << limits.why_not;
  EXPECT_FALSE(has("sinew-mark"));
}

// The shell in front dies of SIGTERM at once; what it waits for saves first.
TEST_F(Guardians, WhoSavesHasItsGraceBehindAShellThatDoesNotHear) {
  const char* script =
      R"(bash -c 'trap "sleep 0.3; touch $FOLDER/saved; exit" TERM; touch $FOLDER/began; while :; do sleep 0.01; done'; true)";
  Guarded guarded(start_of(script, 2));
  EXPECT_EQ(next_word(guarded).kind, Kind::started);
  EXPECT_EQ(next_word(guarded).kind, Kind::started);
  wait_for("began");
  guarded.send_all(SIGTERM);
  EXPECT_EQ(next_word(guarded).kind, Kind::ended);
  EXPECT_EQ(next_word(guarded).kind, Kind::ended);
  EXPECT_EQ(next_word(guarded).kind, Kind::gone);
  EXPECT_TRUE(guarded.finish(kLong));
  EXPECT_TRUE(has("saved"));
}

TEST_F(Guardians, WhoDoesNotHearIsKilledWhenItsGraceIsOver) {
  const char* script = R"(bash -c 'trap "" TERM; touch $FOLDER/began; while :; do sleep 0.01; done'; true)";
  Guarded guarded(start_of(script));
  EXPECT_EQ(next_word(guarded).kind, Kind::started);
  wait_for("began");
  guarded.send_all(SIGTERM);
  EXPECT_EQ(next_word(guarded).kind, Kind::ended);
  guarded.kill_all();
  EXPECT_EQ(next_word(guarded).kind, Kind::gone);
  EXPECT_TRUE(guarded.finish(kLong));
}

// A process with this mark.
Process sleeper(const std::string& mark) {
  ProcessOptions options;
  options.command = {"/bin/sleep", "1000"};
  options.environment["SINEW_JOB_ID"] = mark;
  return Process(options);
}

TEST_F(Guardians, ASweepThatDoesNotGetToItsEndSaysSo) {
  Process process = sleeper("sweep-" + folder_);
  EXPECT_THROW(sweep("sweep-" + folder_, {}, ::geteuid(), 0), Error);
  EXPECT_EQ(sweep("no such mark", {}, ::geteuid(), kLong), 0);
}

// The run may be anybody's, and whoever cleans up after it be allowed more than he.
TEST_F(Guardians, ASweepEndsOnlyWhatTheRunsOwnerCould) {
  const std::string mark = "owner-" + folder_, folder = folder_ + "/sinew-" + mark;
  Process process = sleeper(mark);
  fs::create_directories(folder);
  std::ofstream(folder + "/cgroup.procs") << process.pid() << "\n";
  EXPECT_EQ(sweep("no such mark", {folder}, ::geteuid(), kLong), 0) << "of another attempt";
  EXPECT_FALSE(is_group_of(folder, mark)) << "it is an ordinary directory";
  EXPECT_THROW(sweep(mark, {}, ::geteuid() + 1, kLong), Error);
  EXPECT_FALSE(process.wait());
  EXPECT_EQ(sweep(mark, {}, ::geteuid(), kLong), 1);
  EXPECT_TRUE(process.wait(kLong));
}

}  // namespace
}  // namespace sinew::jobs
