// Tests a member, with its client and its links, against a real coordinator.
#include <gtest/gtest.h>

#include <atomic>
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

constexpr uint64_t kDigest = 77;  // of the state, which never changes

// Takes part in collectives until the leader says that one was the last, or the member is out.
void compute(Member& member, const std::atomic<bool>& last) try {
  Group& group = member.group();
  if (member.joining()) {
    const Membership::Received received = member.receive_state();
    group.start_at(received.collective, Origin{0, kDigest}, received.history);
  } else {
    group.start_at(0, Origin{0, kDigest});
  }
  for (std::string said; said != "last";) {
    member.boundary([] {
      checkpoint::OwnedSnapshot snapshot;
      snapshot.state_json = "{}";
      return snapshot;
    });
    group.begin(3, {}, last ? "last" : "more", Mark{group.collective(), Mark::kWhole, {kDigest, 0}});
    while (const auto shard = group.next_shard()) group.deliver(*shard, Leaf{{}, "x", nullptr});
    said = group.finish({}).control_message;
    member.maybe_caught_up();
    if (!member.joining()) system_clock().sleep_seconds(0.01);  // a joiner must be faster, as it is in a run
  }
} catch (const Fenced&) {
}

// Returns why the member is out, or an empty string.
std::string why_out(const Member& member) try {
  member.check();
  return "";
} catch (const Fenced& out) {
  return out.what();
}

// Two members joined with two tokens, so they begin no run: they take the state from the member that has the secret.
// The three have links to each other over TLS. One of them is locked out while all compute.
TEST(Member, IsOutWhenItsTokenIsRevokedAndTheOthersGoOn) {
  cluster::CoordinatorOptions place;
  place.secret = "sesame";
  place.tls = true;
  place.cluster.minimum = place.cluster.wanted = 1;
  place.cluster.silence_seconds = 60;
  const cluster::Coordinator coordinator(place, system_clock());
  const std::string kept = cluster::new_join_token(place.secret, 9'000'000'000);
  const std::string revoked = cluster::new_join_token(place.secret, 9'000'000'000);
  std::atomic<bool> last = false;
  std::unique_ptr<Member> members[3];
  std::vector<std::jthread> threads;
  const auto sees = [&](size_t member, size_t computing) {
    const cluster::View view = members[member]->group().view();
    return std::ranges::count(view.members, false, &cluster::ViewMember::joining) == static_cast<int64_t>(computing);
  };
  for (const std::string& secret : {place.secret, kept, revoked}) {
    MemberOptions options = options_of(coordinator, secret);
    options.link.tls = true;
    const size_t here = threads.size();
    members[here] = std::make_unique<Member>(std::move(options), system_clock());
    threads.emplace_back([&member = *members[here], &last] { compute(member, last); });
    ASSERT_TRUE(wait_for([&] { return sees(here, here + 1); })) << why_out(*members[here]);
  }
  cluster::call(coordinator.url(), place.secret, "POST", "/v2/revoke",
                R"({"token":")" + cluster::id_of_token(revoked) + R"("})");
  EXPECT_TRUE(wait_for([&] { return sees(0, 2) && sees(1, 2); }));
  EXPECT_TRUE(wait_for([&] { return why_out(*members[2]).find("was revoked") != std::string::npos; }));
  last = true;
  threads.clear();
  EXPECT_EQ(why_out(*members[0]), "");
  EXPECT_EQ(why_out(*members[1]), "");
}

}  // namespace
}  // namespace sinew::group
