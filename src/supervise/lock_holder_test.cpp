// Tests to which coordinators `sinew stop` sends its request.
#include "supervise/lock_holder.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <string>

#include "base/expected_error.h"
#include "cluster/cluster.h"

namespace sinew::supervise {
namespace {

// The resolver takes this name for 127.0.0.1. But it is not written like an address of this machine, so it stands for
// the name of another machine.
constexpr const char* kOtherHost = "0x7f000001";

TEST(AskToStop, SendsTheRequestToAnotherMachineOnlyIfTheUserNamedIt) {
  std::string folder = (std::filesystem::temp_directory_path() / "sinew-holder-XXXXXX").string();
  ASSERT_NE(::mkdtemp(folder.data()), nullptr);
  cluster::CoordinatorOptions options;
  options.secret = "sesame";
  const cluster::Coordinator coordinator(options, system_clock());
  cluster::CoordinatorInfo info;
  info.url = "http://" + std::string(kOtherHost) + coordinator.url().substr(coordinator.url().rfind(':'));
  info.secret = options.secret;
  info.pid = ::getpid();
  cluster::write_coordinator_info(folder, info);
  const auto ask = [&](const std::string& coordinators) {
    return ask_to_stop(folder, ::getpid(), false, coordinators);
  };
  const auto requests = [&] {
    const auto status = cluster::CoordinatorClient(coordinator.url(), options.secret, 60).status();
    return status ? static_cast<int>(status->requests.size()) : -1;
  };
  for (const char* named : {"", "192.0.2.7"}) EXPECT_EQ(code_of([&] { ask(named); }), "COORDINATOR_ELSEWHERE");
  EXPECT_EQ(requests(), 0);
  EXPECT_TRUE(ask("192.0.2.7," + std::string(kOtherHost)));
  EXPECT_EQ(requests(), 1);
  std::filesystem::remove_all(folder);
}

}  // namespace
}  // namespace sinew::supervise
