// Who may take a store over from a server that is gone, and from which it is never taken.
#include "cli/server_lease.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "base/error.h"

namespace sinew::cli {
namespace {

using Json = nlohmann::json;

class Leases : public testing::Test {
 protected:
  Leases() : folder_("/tmp/sinew-lease-XXXXXX"), store_(std::string(::mkdtemp(folder_.data())) + "/store.db") {}
  ~Leases() override { std::filesystem::remove_all(folder_); }
  // Of a server that was killed: what it said of itself, with something changed.
  void leave_behind(const Json& changes) {
    Json holder = mine_;
    holder.update(changes);
    ASSERT_TRUE(store_.write(store::Acquire{"server", holder.dump(), 1000}));
  }
  bool can_be_taken() {
    try {
      const ServerLease lease(store_, "new", [](const std::string&) {});
      return true;
    } catch (const Error& error) {
      EXPECT_NE(std::string(error.what()).find("another server has this store"), std::string::npos);
      return false;
    }
  }
  void SetUp() override {
    const ServerLease lease(store_, "old", [](const std::string&) {});
    mine_ = Json::parse(store_.lease("server").holder);
  }

  std::string folder_;
  store::Store store_;
  Json mine_;
};

TEST_F(Leases, AProcessThatIsGoneIsNotWaitedFor) {
  leave_behind({{"began", "1"}});  // its number is another process's now
  EXPECT_TRUE(can_be_taken());
}

TEST_F(Leases, OneThatLivesKeepsIt) {
  leave_behind(Json::object());
  EXPECT_FALSE(can_be_taken());
}

TEST_F(Leases, ANumberOfAnotherMachineOrContainerSaysNothing) {
  for (const char* key : {"host", "numbers"}) {
    leave_behind({{"began", "1"}, {key, "another"}});
    EXPECT_FALSE(can_be_taken()) << key;
    ASSERT_TRUE(store_.write(store::Release{"server", store_.lease("server").fence}));
  }
}

}  // namespace
}  // namespace sinew::cli
