#include "supervise/sandbox_choice.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>

#include "base/expected_error.h"
#include "cluster/cluster.h"
#include "sandbox/sandbox.h"
#include "supervise/coordinator_link.h"
#include "supervise/worker_start.h"

namespace sinew::supervise {
namespace {

namespace fs = std::filesystem;

class Place {
 public:
  Place() {
    std::string pattern = (fs::temp_directory_path() / "sinew-choice-XXXXXX").string();
    path_ = ::mkdtemp(pattern.data());
  }
  ~Place() { fs::remove_all(path_); }
  Place(const Place&) = delete;
  Place& operator=(const Place&) = delete;
  const std::string& path() const { return path_; }

 private:
  std::string path_;
};

std::optional<task::Sandbox> choose(const SandboxChoice& choice, const SandboxNeeds& needs,
                                    std::string* said = nullptr) {
  std::string text;
  auto chosen = sandbox_of(choice, needs, [&](const std::string& sentence) { text += sentence + "\n"; });
  if (said != nullptr) *said = text;
  return chosen;
}

TEST(SandboxChoice, TheUsersOwnModelsAreNotConfinedUnlessAsked) {
  const Place place;
  std::string said;
  EXPECT_EQ(choose({}, {{place.path()}, place.path()}, &said), std::nullopt);
  EXPECT_EQ(said, "");
  EXPECT_NE(choose({.on = true}, {{place.path()}, place.path()}, &said), std::nullopt);
  EXPECT_EQ(said.find("the sandbox is on, because"), said.npos);
  EXPECT_NE(said.find("writes: only " + place.path()), said.npos) << said;
}

TEST(SandboxChoice, TheJobFileAndAllThatItLoadsAreSources) {
  spec::Job job;
  job.model.file = "model.pt2";
  job.model.init_from.path = "old/model";
  job.loss.library = "loss.so";
  job.data.library = "data.so";
  const auto sources = sources_of(job, "job.yaml", "run");
  for (const char* path : {"job.yaml", "run", "model.pt2", "old/model", "loss.so", "data.so"})
    EXPECT_NE(std::ranges::find(sources, path), sources.end()) << path;
}

TEST(SandboxChoice, ACommandThatAConfinedRunMayHaveWrittenIsRefused) {
  const Place place;
  EXPECT_NO_THROW(refuse_untrusted_command({place.path() + "/resolved.yaml", ""}));
  fs::create_directory(place.path() + "/" + sandbox::kMark);
  EXPECT_ERROR(sinew::error_of([&] {
                 refuse_untrusted_command({"job.yaml", place.path() + "/resolved.yaml"});
               }),
               "SANDBOX_COMMAND", place.path());
}

TEST(SandboxChoice, WhatAConfinedRunWroteIsConfined) {
  const Place place;
  fs::create_directory(place.path() + "/" + sandbox::kMark);
  std::string said;
  EXPECT_NE(choose({}, {{"net.pt2", place.path() + "/model/model.pt"}, "x"}, &said), std::nullopt);
  EXPECT_NE(said.find("the sandbox is on, because " + place.path() + "/model/model.pt"), said.npos) << said;
  EXPECT_EQ(choose({.off = true}, {{place.path()}, "x"}, &said), std::nullopt);
  EXPECT_EQ(said, "");
}

TEST(SandboxChoice, TheWorkersShareTheMemory) {
  const uint64_t all = choose({.on = true}, {})->memory_bytes;
  EXPECT_EQ(choose({.on = true}, {.workers = 4})->memory_bytes, all / 4);
  EXPECT_EQ(choose({.on = true}, {.workers = 0})->memory_bytes, all);
  EXPECT_GT(all, uint64_t{1} << 20);
}

TEST(SandboxChoice, HostsAreAddresses) {
  using Hosts = std::vector<std::string>;
  EXPECT_EQ(choose({.on = true, .hosts = "10.0.0.2,2001:db8::1"}, {})->hosts, (Hosts{"10.0.0.2", "2001:db8::1"}));
  EXPECT_EQ(choose({.on = true}, {.coordinator_url = "https://10.0.0.9:80"})->hosts, Hosts{"10.0.0.9"});
  EXPECT_ERROR(sinew::error_of([] { choose({.on = true, .hosts = "10.0.0.2,host-b"}, {}); }), "OPTION_INVALID",
               "host-b");
}

TEST(SandboxChoice, ContradictionsAreRefused) {
  EXPECT_ERROR(sinew::error_of([] { choose({.on = true, .off = true}, {}); }), "OPTION_INVALID", "contradict");
  EXPECT_ERROR(sinew::error_of([] { choose({.on = true}, {.mirror = "/mirror"}); }), "SANDBOX_MIRROR", "/mirror");
  EXPECT_EQ(choose({}, {.mirror = "/mirror"}), std::nullopt);
}

// A confined worker can write coordinator.json. The supervisor must not send the requests elsewhere.
TEST(CoordinatorFile, ASupervisorCallsOnlyItsOwnMachine) {
  const Place place;
  cluster::CoordinatorInfo info{.url = "http://192.0.2.1:80", .secret = "s", .pid = 7};
  cluster::write_coordinator_info(place.path(), info);
  const auto link = file_coordinator_link(place.path());
  EXPECT_FALSE(link->connect(7));
  info.url = "http://0.0.0.0:80";
  cluster::write_coordinator_info(place.path(), info);
  EXPECT_TRUE(link->connect(7));
  EXPECT_EQ(link->url(), info.url);
}

TEST(CoordinatorFile, ConfinedWorkersListenWhereTheFirstOneDid) {
  const Place place;
  cluster::write_coordinator_info(place.path(), {.url = "http://127.0.0.1:80", .secret = "s", .pid = 7});
  WorkerLaunch launch;
  launch.run_directory = place.path();
  EXPECT_EQ(with_fixed_address(launch).link_listen, "") << "it may follow the coordinator";
  launch.sandbox.emplace();
  EXPECT_EQ(with_fixed_address(launch).link_listen, "127.0.0.1");
  launch.link_listen = "10.0.0.1";
  EXPECT_EQ(with_fixed_address(launch).link_listen, "10.0.0.1");
}

}  // namespace
}  // namespace sinew::supervise
