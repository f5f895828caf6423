// Tests a member, with its client and its links, against a real coordinator.
#include <gtest/gtest.h>

#include <thread>

#include "group/group.h"

namespace sinew::group {
namespace {

// `secret` is the run's secret or a join token.
MemberOptions options_of(const cluster::Coordinator& coordinator, const std::string& secret) {
  MemberOptions options;
  options.client.url = [&] { return coordinator.url(); };
  options.client.secret = secret;
  options.client.identity = {"job", "machine", "probe"};
  options.link.job = "job";
  options.link.credentials.coordinator = cluster::coordinator_key(secret);
  options.group.merge = [](std::string_view, std::string_view) { return std::string(); };
  return options;
}

bool wait_for(const std::function<bool()>& condition) {
  constexpr double kBound = 60;  // seconds; only a hang takes longer
  Clock& clock = system_clock();
  for (const double end = clock.monotonic_seconds() + kBound; clock.monotonic_seconds() < end;
       clock.sleep_seconds(0.005)) {
    if (condition()) return true;
  }
  return false;
}

TEST(Member, FencesItselfWhenNoViewContainsItInTime) {
  cluster::CoordinatorOptions place;
  place.secret = "sesame";
  place.cluster.minimum = place.cluster.wanted = 2;
  const cluster::Coordinator coordinator(place, system_clock());
  try {
    const Member lonely(options_of(coordinator, place.secret), system_clock(), 0.2);
    FAIL();
  } catch (const Fenced& out) {
    EXPECT_NE(std::string(out.what()).find("no place in the group"), std::string::npos) << out.what();
    EXPECT_FALSE(out.finished);
  }
}

// Runs one collective of as many shards as there are members.
void compute(Group& group, const std::string& control_message) {
  group.begin(3, {}, control_message);
  while (const auto shard = group.next_shard()) group.deliver(*shard, Leaf{{}, "x", nullptr});
  EXPECT_EQ(group.finish({}).control_message, "together");
}

// The three members have different secrets, and links to each other over TLS. One of them is locked out.
TEST(Member, IsOutWhenItsTokenIsRevokedAndTheOthersGoOn) {
  cluster::CoordinatorOptions place;
  place.secret = "sesame";
  place.tls = true;
  place.cluster.minimum = place.cluster.wanted = 3;
  place.cluster.silence_seconds = 60;
  const cluster::Coordinator coordinator(place, system_clock());
  const std::string revoked = cluster::new_join_token(place.secret, 9'000'000'000);
  const std::string secrets[] = {place.secret, cluster::new_join_token(place.secret, 9'000'000'000), revoked};
  std::unique_ptr<Member> members[3];
  const auto at_once = [&](size_t count, const std::function<void(size_t)>& act) {
    std::vector<std::thread> threads;
    for (size_t i = 0; i < count; ++i) threads.emplace_back([&act, i] { act(i); });
    for (std::thread& thread : threads) thread.join();
  };
  at_once(3, [&](size_t i) {
    MemberOptions options = options_of(coordinator, secrets[i]);
    options.link.tls = true;
    members[i] = std::make_unique<Member>(std::move(options), system_clock());
    members[i]->group().start_at(0, {});
    compute(members[i]->group(), "together");
  });
  const MemberId lost = members[2]->group().id();
  cluster::call(coordinator.url(), place.secret, "POST", "/v2/revoke",
                R"({"token":")" + cluster::id_of_token(revoked) + R"("})");
  ASSERT_TRUE(wait_for([&] {
    return members[0]->group().view().find(lost) == nullptr && members[1]->group().view().find(lost) == nullptr;
  }));
  at_once(2, [&](size_t i) { compute(members[i]->group(), "together"); });
  const auto is_out = [&] {
    try {
      members[2]->check();
      return false;
    } catch (const Fenced& out) {
      return std::string(out.what()).find("was revoked") != std::string::npos;
    }
  };
  EXPECT_TRUE(wait_for(is_out));
  EXPECT_NO_THROW(members[0]->check());
  EXPECT_NO_THROW(members[1]->check());
}

}  // namespace
}  // namespace sinew::group
