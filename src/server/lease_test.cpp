// Which servers may be replaced at once, and which may not.
#include "server/lease.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "base/error.h"

namespace sinew::server {
namespace {

using Json = nlohmann::json;

class Leases : public testing::Test {
 protected:
  Leases() : folder_("/tmp/sinew-lease-XXXXXX"), store_(std::string(::mkdtemp(folder_.data())) + "/store.db") {}
  ~Leases() override { std::filesystem::remove_all(folder_); }
  // Leaves the lease of a server that was killed, with some facts about the server changed.
  void leave_behind(const Json& changes) {
    Json holder = mine_;
    holder.update(changes);
    ASSERT_TRUE(store_.write(store::Acquire{"server", holder.dump(), 1000}));
  }
  bool can_be_taken() {
    try {
      const ServerLease lease(store_, "new");
      return true;
    } catch (const Error& error) {
      EXPECT_EQ(error.code, ErrorCode("SERVER_ALREADY_RUNNING"));
      return false;
    }
  }
  void SetUp() override {
    const ServerLease lease(store_, "old");
    mine_ = Json::parse(store_.lease("server").holder);
  }

  std::string folder_;
  store::Store store_;
  Json mine_;
};

TEST_F(Leases, AProcessThatIsGoneIsNotWaitedFor) {
  leave_behind({{"began", "1"}});  // another process has its id now
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
}  // namespace sinew::server
