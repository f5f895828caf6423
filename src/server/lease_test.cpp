// Tests that a new server takes the lease at once if the old server is certainly dead, and that it is refused
// otherwise.
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
  // Writes the lease of a server that was killed. It describes its holder like this process, except for `changes`.
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

TEST_F(Leases, TheLeaseOfADeadProcessIsTakenAtOnce) {
  leave_behind({{"began", "1"}});  // now another process has the dead server's process id
  EXPECT_TRUE(can_be_taken());
}

TEST_F(Leases, ALivingProcessKeepsItsLease) {
  leave_behind(Json::object());
  EXPECT_FALSE(can_be_taken());
}

TEST_F(Leases, AProcessOfAnotherMachineOrContainerKeepsItsLease) {
  for (const char* key : {"host", "numbers"}) {
    leave_behind({{"began", "1"}, {key, "another"}});
    EXPECT_FALSE(can_be_taken()) << key;
    ASSERT_TRUE(store_.write(store::Release{"server", store_.lease("server").fence}));
  }
}

}  // namespace
}  // namespace sinew::server
