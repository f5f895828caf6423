// Tests when the holder of a lease counts as ended. Only a process of this machine and this container can be known to
// have ended.
#include "base/lease_holder.h"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <nlohmann/json.hpp>

#include "base/proc.h"
#include "base/process.h"

namespace sinew {
namespace {

using Json = nlohmann::json;

std::string mine_with(const Json& changes) {
  Json holder = Json::parse(lease_holder("http://a"));
  holder.update(changes);
  return holder.dump();
}

TEST(LeaseHolder, ALivingProcessHasNotEnded) {
  EXPECT_FALSE(has_surely_ended(lease_holder()));
  EXPECT_FALSE(has_surely_ended(mine_with(Json::object())));
}

TEST(LeaseHolder, ADeadProcessOrOneWithAReusedIdHasEnded) {
  const pid_t child = ::fork();
  if (child == 0) ::_exit(0);
  ASSERT_EQ(::waitpid(child, nullptr, 0), child);
  EXPECT_TRUE(has_surely_ended(mine_with({{"pid", child}})));
  EXPECT_TRUE(has_surely_ended(mine_with({{"began", "1"}})));
}

// Simulates a container whose first process does not wait for its children: they stay zombies.
TEST(LeaseHolder, ADeadProcessThatNobodyHasWaitedForHasEnded) {
  const pid_t child = ::fork();
  if (child == 0) ::_exit(0);
  siginfo_t ended{};
  ASSERT_EQ(::waitid(P_PID, static_cast<id_t>(child), &ended, WEXITED | WNOWAIT), 0);
  const ProcessRow row = process_row(child);
  EXPECT_EQ(row.state, 'Z');
  EXPECT_TRUE(has_surely_ended(mine_with({{"pid", child}, {"began", std::to_string(row.started)}})));
  ASSERT_EQ(::waitpid(child, nullptr, 0), child);
}

TEST(LeaseHolder, AProcessOfAnotherMachineOrContainerMayLive) {
  for (const char* key : {"host", "numbers"}) {
    EXPECT_FALSE(has_surely_ended(mine_with({{"began", "1"}, {key, "another"}}))) << key;
  }
}

TEST(LeaseHolder, AnUnknownFormatIsNeverSurelyDead) {
  const pid_t child = ::fork();
  if (child == 0) ::_exit(0);
  ASSERT_EQ(::waitpid(child, nullptr, 0), child);
  const std::string id = std::to_string(child);
  for (const std::string& text :
       {std::string(), std::string("test"), std::string("{"), std::string("{}"), std::string("[1]"), id,
        host_name() + ":" + id,  // the format of earlier versions
        mine_with({{"pid", id}}), mine_with({{"pid", 0}}), mine_with({{"pid", -1}}), mine_with({{"pid", 1e300}}),
        mine_with({{"pid", 1ull << 40}}), mine_with({{"began", 1}}), mine_with({{"began", ""}}),
        mine_with({{"host", nullptr}}), mine_with({{"began", "1"}, {"numbers", ""}})}) {
    EXPECT_FALSE(has_surely_ended(text)) << text;
  }
}

TEST(LeaseHolder, IsDescribedForAMessage) {
  EXPECT_EQ(describe_holder(R"({"host":"h","numbers":"n","pid":7,"began":"1","url":"u"})"), "process 7 on h at u");
  EXPECT_EQ(describe_holder(R"({"host":"h","numbers":"n","pid":7,"began":"1"})"), "process 7 on h");
  EXPECT_EQ(describe_holder("h:7"), "h:7");
}

}  // namespace
}  // namespace sinew
