// Tests run directories that another user made. They must not choose where this process sends requests, nor lead to the
// secret of another run.
#include "cluster/coordinator_info.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>

#include "base/expected_error.h"

namespace sinew::cluster {
namespace {

CoordinatorInfo at(const std::string& url) {
  CoordinatorInfo info;
  info.url = url;
  info.secret = "s";
  return info;
}

TEST(CoordinatorAddress, OfThisMachineIsContacted) {
  for (const char* url : {"http://127.0.0.1:4711", "https://127.3.2.1:1", "http://[::1]:80", "http://localhost:80"})
    EXPECT_NO_THROW(check_coordinator_address(at(url), "")) << url;
}

TEST(CoordinatorAddress, OfAnotherMachineIsContactedOnlyIfTheUserNamedIt) {
  for (const char* url : {"http://169.254.169.254:80", "http://192.0.2.7:80", "https://example.com:443",
                          "http://127.0.0.1.example.com:80", "http://127.0.0.1@192.0.2.7:80", "file:///etc/passwd", ""})
    EXPECT_EQ(code_of([&] { check_coordinator_address(at(url), "10.0.0.1,,other"); }), "COORDINATOR_ELSEWHERE") << url;
  EXPECT_NO_THROW(check_coordinator_address(at("https://192.0.2.7:80"), "10.0.0.1,192.0.2.7"));
  EXPECT_NO_THROW(check_coordinator_address(at("https://192.0.2.7:80"), "192.0.2.7:80"));
  EXPECT_EQ(code_of([&] { check_coordinator_address(at("https://192.0.2.7:80"), "192.0.2.7:81"); }),
            "COORDINATOR_ELSEWHERE");
}

TEST(CoordinatorFile, IsNoLinkToTheFileOfAnotherRun) {
  std::string folder = "/tmp/sinew-info-XXXXXX";
  ASSERT_NE(::mkdtemp(folder.data()), nullptr);
  std::filesystem::create_directories(folder + "/mine");
  std::filesystem::create_directories(folder + "/theirs");
  write_coordinator_info(folder + "/theirs", at("http://127.0.0.1:1"));
  EXPECT_TRUE(read_coordinator_info(folder + "/theirs"));
  EXPECT_FALSE(read_coordinator_info(folder + "/mine"));
  EXPECT_FALSE(read_coordinator_info(folder + "/nowhere"));
  std::filesystem::create_symlink("../theirs/coordinator.json", folder + "/mine/coordinator.json");
  EXPECT_EQ(code_of([&] { read_coordinator_info(folder + "/mine"); }), "COORDINATOR_FILE_INVALID");
  EXPECT_FALSE(coordinator_info_now(folder + "/mine"));
  std::filesystem::remove_all(folder);
}

// In the first seconds of a run, coordinator.json has the secret and no URL yet.
TEST(CoordinatorFile, WithoutAUrlIsNotReady) {
  std::string folder = "/tmp/sinew-info-XXXXXX";
  ASSERT_NE(::mkdtemp(folder.data()), nullptr);
  write_coordinator_info(folder, at(""));
  EXPECT_EQ(code_of([&] { info_with_secret(folder); }), "COORDINATOR_NOT_READY");
  write_coordinator_info(folder, at("http://127.0.0.1:1"));
  EXPECT_EQ(info_with_secret(folder).secret, "s");
  std::filesystem::remove_all(folder);
}

}  // namespace
}  // namespace sinew::cluster
