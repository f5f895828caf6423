// Tests real members that stand by in one run directory: the lock decides who leads, and the one that led before steps
// down.
#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <thread>

#include "base/exit_code.h"
#include "base/signals.h"
#include "cluster/testing.h"
#include "rundir/rundir.h"

namespace sinew::cluster::testing {
namespace {

class StandbyRun : public ::testing::Test {
 protected:
  StandbyRun() {
    std::string pattern = (std::filesystem::temp_directory_path() / "sinew-standby-XXXXXX").string();
    folder_ = ::mkdtemp(pattern.data());
  }
  ~StandbyRun() override { std::filesystem::remove_all(folder_); }

  CoordinatorInfo file() const { return coordinator_info_now(folder_).value_or(CoordinatorInfo()); }
  std::optional<CoordinatorStatus> status() const {
    return CoordinatorClient(file().url, file().secret, kBound).status();
  }
  int64_t computing() const {
    const auto now = status();
    if (!now || now->listening) return -1;
    return std::ranges::count_if(now->members,
                                 [](const MemberStatus& one) { return one.in_view && one.phase == "computing"; });
  }

  // A member that may be elected after a moment without a coordinator.
  std::unique_ptr<Worker> member(bool stands_by = true) {
    return std::make_unique<Worker>(address_, [&](ClientOptions& options) {
      options.secret = file().secret;
      options.url = [folder = folder_] { return read_coordinator_info(folder).value().url; };
      if (!stands_by) return;
      StandbyOptions& standby = options.standby.emplace();
      standby.run_directory = folder_;
      standby.job = "test";
      standby.election.wait_seconds = 0.5;
      standby.election.delay_seconds = 2;
    });
  }

  std::string folder_;
  Address address_;  // not used: members read coordinator.json
};

// Runs a coordinator in the directory, as a supervisor's process does.
class RunCoordinator {
 public:
  RunCoordinator(const std::string& folder, int64_t workers, bool elected = false) {
    options_.run_directory = folder;
    options_.workers = workers;
    options_.elected = elected;
    const auto earlier = coordinator_info_now(folder);
    const int64_t before = earlier ? earlier->incarnation : -1;
    thread_ = std::thread([this] { code_ = run_coordinator(options_, stop_, system_clock()); });
    EXPECT_TRUE(wait_for([&] {
      const auto now = coordinator_info_now(folder);
      return now && now->incarnation > before && now->pid > 0 && now->url != (earlier ? earlier->url : "") &&
             CoordinatorClient(now->url, now->secret, kBound).status();
    }));
  }
  ~RunCoordinator() { end(); }
  void end() {
    stop_.send(SIGTERM);
    if (thread_.joinable()) thread_.join();
  }
  std::optional<int> code() const { return code_ < 0 ? std::nullopt : std::optional(code_.load()); }

 private:
  RunCoordinatorOptions options_;
  SignalQueue stop_;
  std::atomic<int> code_ = -1;
  std::thread thread_;
};

TEST_F(StandbyRun, AMemberLeadsWhenNobodyHoldsTheLock) {
  std::optional<rundir::RunLock> supervisor = rundir::RunLock::take(folder_).value();
  auto first = std::make_unique<RunCoordinator>(folder_, 2);
  Workers workers;
  for (int i = 0; i < 2; ++i) workers.push_back(member());
  ASSERT_TRUE(settle(workers));
  const CoordinatorInfo before = file();
  first.reset();
  system_clock().sleep_seconds(1.5);
  EXPECT_EQ(file().incarnation, before.incarnation) << "a supervisor lives, which holds the lock";
  supervisor.reset();
  ASSERT_TRUE(wait_for([&] { return file().incarnation == before.incarnation + 1 && computing() == 2; }));
  EXPECT_EQ(file().secret, before.secret);
  EXPECT_EQ(file().url, before.url) << "workers that joined by a URL know no other address";
  EXPECT_TRUE(rundir::lock_is_held(folder_)) << "a resume must not begin beside the group";
  for (const auto& worker : workers) {
    EXPECT_FALSE(worker->fenced());
    EXPECT_TRUE(wait_for([&] { return worker->client->leased(kBound); }));
  }
  workers.push_back(member(false));
  ASSERT_TRUE(settle(workers)) << "a newcomer joins";
  // The leader ends the run, and the coordinator records it.
  workers[0]->client->report([](MemberReport& report) { report.finished = 0; });
  for (const auto& worker : workers) EXPECT_TRUE(wait_for([&] { return worker->finished() == 0; }));
  workers.clear();
  EXPECT_EQ(file().exit_code, 0);
  EXPECT_FALSE(rundir::lock_is_held(folder_));
}

TEST_F(StandbyRun, AnotherMemberLeadsWhenTheElectedOneIsLost) {
  auto first = std::make_unique<RunCoordinator>(folder_, 3);
  Workers workers;
  for (int i = 0; i < 3; ++i) workers.push_back(member());
  ASSERT_TRUE(settle(workers));
  const int64_t before = file().incarnation;
  first.reset();
  ASSERT_TRUE(wait_for([&] { return file().incarnation == before + 1 && computing() == 3; }));
  // The leader stands first, so it was elected. It ends with its coordinator.
  workers.erase(workers.begin());
  ASSERT_TRUE(wait_for([&] { return file().incarnation == before + 2 && status(); }));
  ASSERT_TRUE(settle(workers));
  for (const auto& worker : workers) EXPECT_FALSE(worker->fenced());
}

TEST_F(StandbyRun, TheCoordinatorBeforeStepsDown) {
  const rundir::RunLock lock = rundir::RunLock::take(folder_).value();  // so that no member is elected
  RunCoordinator old(folder_, 2);
  Workers workers;
  for (int i = 0; i < 2; ++i) workers.push_back(member());
  ASSERT_TRUE(settle(workers));
  RunCoordinator elected(folder_, 2, true);
  const CoordinatorInfo now = file();
  ASSERT_TRUE(wait_for([&] { return old.code().has_value(); }));
  EXPECT_EQ(old.code(), kRejoin);
  ASSERT_TRUE(wait_for([&] { return computing() == 2; }));
  for (const auto& worker : workers) EXPECT_FALSE(worker->fenced());
  // An older coordinator that slept writes its address late.
  CoordinatorInfo late = now;
  late.incarnation -= 1;
  late.url = "http://127.0.0.1:1";
  write_coordinator_info(folder_, late);
  EXPECT_TRUE(wait_for([&] { return file().url == now.url; }));
  EXPECT_FALSE(elected.code());
}

TEST_F(StandbyRun, ACoordinatorWithoutASupervisorHoldsTheLock) {
  {
    RunCoordinator one(folder_, 1);
    EXPECT_TRUE(wait_for([&] { return rundir::lock_is_held(folder_); }));
  }
  EXPECT_FALSE(rundir::lock_is_held(folder_));
}

}  // namespace
}  // namespace sinew::cluster::testing
