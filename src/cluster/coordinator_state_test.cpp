// Tests the coordinator with a simulated clock: a new coordinator that replaces a dead one (a successor), fenced
// members that come back, late heartbeats, two members with one id, and pauses of the coordinator itself.
#include "cluster/coordinator_state.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/random.h"
#include "cluster/membership_client.h"

namespace sinew::cluster {
namespace {

using Phase = Member::Phase;
using ::testing::HasSubstr;

// A member as the coordinator sees it: it sends heartbeats and receives replies.
struct Speaker {
  Heartbeat heartbeat;
  Introduction introduction{"127.0.0.1:1", "here", 7, {"job", "machine", "probe"}};
  HeartbeatReply reply;
  Caller caller = {};

  explicit Speaker(const std::string& incarnation) { heartbeat.incarnation = incarnation; }

  void join(CoordinatorState& coordinator, double now) {
    const Reply answer =
        coordinator.join(to_json(JoinRequest{introduction, heartbeat.incarnation}), {now, now}, caller);
    ASSERT_EQ(answer.status, 200) << answer.body;
    const auto joined = join_reply_of(answer.body);
    ASSERT_TRUE(joined) << joined.error();
    heartbeat.id = joined->id;
    introduction.proof = joined->proof;
  }

  // Sends a heartbeat, introduces itself if the reply wants it, and acts by the reply.
  void speak(CoordinatorState& coordinator, double now) {
    for (int tries = 0; tries < 2; ++tries) {
      const Reply answer = coordinator.heartbeat(to_json(heartbeat), {now, now}, caller);
      ASSERT_EQ(answer.status, 200) << answer.body;
      const auto heard = heartbeat_reply_of(answer.body);
      ASSERT_TRUE(heard) << heard.error();
      reply = *heard;
      heartbeat.introduction.reset();
      if (!reply.introduce) break;
      heartbeat.introduction = introduction;
    }
    if (!reply.view) return;
    heartbeat.report.view = reply.view;
    heartbeat.known_view = heartbeat.acting_view = reply.view->generation;
    const ViewMember* entry = reply.view->find(heartbeat.id);
    heartbeat.report.phase = entry->joining ? Phase::caught_up : Phase::computing;
  }
};

CoordinatorOptions options_for(int64_t wanted, int64_t successor = 0) {
  CoordinatorOptions options;
  options.cluster.wanted = wanted;
  options.at_least = Generation(successor);
  return options;
}

// Returns `count` members that compute by one view. Their last heartbeats came at `now`.
std::vector<Speaker> group(CoordinatorState& coordinator, int64_t count, double now) {
  std::vector<Speaker> speakers;
  for (int64_t i = 0; i < count; ++i) {
    speakers.emplace_back("incarnation-" + std::to_string(i));
    speakers.back().join(coordinator, now);
  }
  for (int round = 0; round < 2; ++round) {
    for (Speaker& speaker : speakers) speaker.speak(coordinator, now);
  }
  for (const Speaker& speaker : speakers) EXPECT_EQ(speaker.heartbeat.report.phase, Phase::computing);
  return speakers;
}

Json status_of(const CoordinatorState& coordinator, double now) {
  return *parse_json(coordinator.status({now, now}).body);
}

// One member found that the states differ. The others perhaps do not know it yet, so none of them goes on.
TEST(CoordinatorState, ADissolvedGroupGoesAsAWholeAndTheNextBeginsAnew) {
  CoordinatorState coordinator(options_for(3), {0, 0});
  std::vector<Speaker> all = group(coordinator, 3, 0);
  Speaker joiner("joiner");
  joiner.join(coordinator, 0.1);
  joiner.speak(coordinator, 0.1);
  ASSERT_FALSE(joiner.reply.fenced);
  all[1].heartbeat.report.dissolve = "member 3 has another state";
  all[1].speak(coordinator, 0.2);
  for (Speaker* member : {&all[0], &all[1], &all[2], &joiner}) {
    member->speak(coordinator, 0.2);
    ASSERT_TRUE(member->reply.fenced);
    EXPECT_THAT(*member->reply.fenced, HasSubstr("member 3 has another state"));
  }
  std::vector<Speaker> next;
  for (int i = 0; i < 3; ++i) {
    next.emplace_back("next-" + std::to_string(i));
    next.back().join(coordinator, 0.4);
  }
  for (Speaker& member : next) member.speak(coordinator, 0.4);
  ASSERT_TRUE(next[0].reply.view);
  EXPECT_TRUE(next[0].reply.view->fresh);
  EXPECT_EQ(next[0].reply.view->members.size(), 3U);
}

// The coordinator dies before the next group has begun. One member of the ended group does not know of its end.
TEST(CoordinatorState, ADissolvedGroupStaysSoUnderASuccessor) {
  CoordinatorOptions options = options_for(2);
  std::optional<View> file;
  options.on_view = [&](const View& view) { file = view; };
  CoordinatorState first(options, {0, 0});
  auto all = group(first, 2, 0);
  ASSERT_TRUE(file);
  EXPECT_FALSE(file->dissolved);
  all[1].heartbeat.report.dissolve = "member 3 has another state";
  all[1].speak(first, 0.2);
  ASSERT_TRUE(file->dissolved);
  EXPECT_EQ(view_of_json(to_json(*file)), file);
  CoordinatorOptions next = options_for(2, 1 << 20);
  next.last_view = file;
  CoordinatorState second(next, {10, 10});
  for (double now = 10.1; now < 12 && !all[0].reply.fenced; now += 0.2) all[0].speak(second, now);
  ASSERT_TRUE(all[0].reply.fenced);
  EXPECT_THAT(*all[0].reply.fenced, HasSubstr("member 3 has another state"));
}

// The count of going back outlives every member and every coordinator.
TEST(CoordinatorState, EveryViewCarriesHowOftenTheRunWentBack) {
  auto coordinator = std::make_unique<CoordinatorState>(options_for(2), Moment{0, 0});
  double now = 0;
  std::vector<Speaker> all = group(*coordinator, 2, now);
  EXPECT_EQ(all[0].heartbeat.report.view->going_back, GoingBack());
  const auto go_back = [&](int64_t durable) {
    all[0].heartbeat.report.durable_step = durable;
    all[1].heartbeat.report.dissolve = "member 3 has another state";
    all[0].speak(*coordinator, now += 0.1);
    all[1].speak(*coordinator, now += 0.1);
    all.clear();
    for (int i = 0; i < 2; ++i) {
      all.emplace_back("after-" + std::to_string(now) + "-" + std::to_string(i));
      all.back().join(*coordinator, now);
    }
    for (int round = 0; round < 2; ++round) {
      for (Speaker& member : all) member.speak(*coordinator, now += 0.1);
    }
    return all[0].heartbeat.report.view->going_back;
  };
  EXPECT_EQ(go_back(100), (GoingBack{1, 100, "member 3 has another state"}));
  EXPECT_EQ(go_back(100).count, 2);
  EXPECT_EQ(go_back(-1).count, 3);   // the new leader saved nothing
  EXPECT_EQ(go_back(101).count, 1);  // there is a newer checkpoint
  EXPECT_EQ(go_back(101).count, 2);
  // A successor learns the count from the members' view, and goes on with it.
  coordinator = std::make_unique<CoordinatorState>(options_for(2, 1'000'000), Moment{now, now});
  for (int round = 0; round < 20; ++round) {
    now += 0.1;
    for (Speaker& member : all) member.speak(*coordinator, now);
  }
  EXPECT_EQ(go_back(101), (GoingBack{3, 101, "member 3 has another state"}));
  EXPECT_TRUE(go_back(101).too_often());
}

// The successor hears from one member that the group must end, before it hears from the others at all.
TEST(CoordinatorState, ASuccessorDissolvesTheGroupToTheLastMember) {
  std::vector<Speaker> all;
  {
    CoordinatorState first(options_for(3), {0, 0});
    all = group(first, 3, 0);
  }
  CoordinatorState coordinator(options_for(3, 1000), {1, 1});
  all[0].heartbeat.report.dissolve = "member 3 has another state";
  all[0].speak(coordinator, 1.1);
  all[1].speak(coordinator, 1.3);
  all[2].speak(coordinator, 1.5);
  for (double now = 1.6; now < 4; now += 0.2) {
    for (Speaker& member : all) {
      if (!member.reply.fenced) member.speak(coordinator, now);
    }
    coordinator.tick({now, now});
  }
  for (const Speaker& member : all) {
    ASSERT_TRUE(member.reply.fenced);
    EXPECT_THAT(*member.reply.fenced, HasSubstr("member 3 has another state"));
  }
}

TEST(CoordinatorState, AJoinerCannotDissolveTheGroup) {
  CoordinatorState coordinator(options_for(2), {0, 0});
  std::vector<Speaker> all = group(coordinator, 2, 0);
  Speaker joiner("joiner");
  joiner.join(coordinator, 0.1);
  joiner.heartbeat.report.dissolve = "the others are wrong";
  joiner.speak(coordinator, 0.1);
  all[0].speak(coordinator, 0.2);
  EXPECT_FALSE(all[0].reply.fenced);
}

// Three members computed a shard and found that one of them is wrong. It goes at once, and the others go on.
TEST(CoordinatorState, AMemberWithAWrongResultGoesAloneWithTheReason) {
  for (const size_t liar : {0U, 2U}) {
    CoordinatorState coordinator(options_for(3), {0, 0});
    std::vector<Speaker> all = group(coordinator, 3, 0);
    const std::string why =
        "member " + std::to_string(all[liar].heartbeat.id.value) + " computed a wrong result: shard 3";
    all[1].heartbeat.report.wrong = {{all[liar].heartbeat.id, why}};
    all[1].speak(coordinator, 0.2);
    all[liar].speak(coordinator, 0.2);
    ASSERT_TRUE(all[liar].reply.fenced);
    EXPECT_THAT(*all[liar].reply.fenced, HasSubstr(why));
    all[1].speak(coordinator, 0.3);
    all[2 - liar].speak(coordinator, 0.3);
    EXPECT_FALSE(all[2 - liar].reply.fenced);
    ASSERT_TRUE(all[2 - liar].reply.view);
    EXPECT_FALSE(all[2 - liar].reply.view->fresh);
    EXPECT_EQ(all[2 - liar].reply.view->members.size(), 2U);
    EXPECT_THAT(all[2 - liar].reply.view->why, HasSubstr(why));
  }
}

TEST(CoordinatorState, AJoinerCannotReportAWrongResult) {
  CoordinatorState coordinator(options_for(2), {0, 0});
  std::vector<Speaker> all = group(coordinator, 2, 0);
  Speaker joiner("joiner");
  joiner.join(coordinator, 0.1);
  joiner.heartbeat.report.wrong = {{all[0].heartbeat.id, "it is wrong"}};
  joiner.speak(coordinator, 0.1);
  all[0].speak(coordinator, 0.2);
  EXPECT_FALSE(all[0].reply.fenced);
}

TEST(CoordinatorState, GivesARepeatedJoinTheSameId) {
  CoordinatorState coordinator(options_for(3), {0, 0});
  Speaker one("a"), again("a"), other("b");
  one.join(coordinator, 0);
  again.join(coordinator, 0.1);
  other.join(coordinator, 0.2);
  EXPECT_EQ(one.heartbeat.id, again.heartbeat.id);
  EXPECT_NE(one.heartbeat.id, other.heartbeat.id);
}

// ---- join tokens
// -----------------------------------------------------------------------------------------------------

Caller with_token(const std::string& id, int64_t expires) {
  return {JoinToken{id, expires, {}}};
}

// Adds a member with this token to a group of two, and lets it compute.
Speaker guest_of(CoordinatorState& coordinator, std::vector<Speaker>& group, const Caller& caller) {
  Speaker guest("guest");
  guest.caller = caller;
  guest.join(coordinator, 1);
  for (const double now : {1.1, 1.2, 1.3}) {
    guest.speak(coordinator, now);
    for (Speaker& speaker : group) speaker.speak(coordinator, now);
  }
  EXPECT_EQ(guest.heartbeat.report.phase, Phase::computing);
  return guest;
}

void expect_without(const Speaker& guest, std::vector<Speaker>& group, CoordinatorState& coordinator, double now) {
  for (Speaker& speaker : group) {
    speaker.speak(coordinator, now);
    EXPECT_FALSE(speaker.reply.fenced);
    ASSERT_TRUE(speaker.heartbeat.report.view);
    EXPECT_EQ(speaker.heartbeat.report.view->find(guest.heartbeat.id), nullptr);
    EXPECT_EQ(speaker.heartbeat.report.view->computing().size(), group.size());
  }
}

TEST(CoordinatorState, FencesAMemberWhoseTokenIsRevoked) {
  const std::string id = "0123456789abcdef";
  CoordinatorState coordinator(options_for(2), {0, 0});
  auto all = group(coordinator, 2, 0);
  Speaker guest = guest_of(coordinator, all, with_token(id, 1000));
  const Reply done = coordinator.revoke(R"({"token":"0123456789abcdef"})", {1.4, 1.4});
  EXPECT_EQ(done.status, 200);
  EXPECT_THAT(done.body, HasSubstr("\"members\":[" + std::to_string(guest.heartbeat.id.value) + "]"));
  expect_without(guest, all, coordinator, 1.5);
  guest.speak(coordinator, 1.5);
  ASSERT_TRUE(guest.reply.fenced);
  EXPECT_EQ(*guest.reply.fenced, "the join token 0123456789abcdef was revoked");
  Speaker again("again");
  again.caller = guest.caller;
  const Reply refused = coordinator.join(to_json(JoinRequest{again.introduction, "again"}), {1.6, 1.6}, again.caller);
  EXPECT_EQ(refused.status, 401);
  EXPECT_THAT(refused.body, HasSubstr("COORDINATOR_TOKEN_REVOKED"));
  EXPECT_THAT(refused.body, HasSubstr("sinew token create"));
  for (const char* body : {"{}", R"({"token":""})", R"({"token":"../x"})", R"({"token":7})", "x"}) {
    EXPECT_EQ(coordinator.revoke(body, {1.7, 1.7}).status, 400) << body;
  }
}

TEST(CoordinatorState, FencesAMemberWhenItsTokenExpires) {
  CoordinatorState coordinator(options_for(2), {0, 0});
  auto all = group(coordinator, 2, 0);
  Speaker guest = guest_of(coordinator, all, with_token("0123456789abcdef", 2));
  for (Speaker& speaker : all) speaker.speak(coordinator, 1.9);
  guest.speak(coordinator, 1.9);
  EXPECT_FALSE(guest.reply.fenced);
  coordinator.tick({2, 2});
  expect_without(guest, all, coordinator, 2.05);
  guest.speak(coordinator, 2.1);
  ASSERT_TRUE(guest.reply.fenced);
  EXPECT_THAT(*guest.reply.fenced, HasSubstr("expired at 1970-01-01T00:00:02"));
  const Reply refused = coordinator.join(to_json(JoinRequest{guest.introduction, "again"}), {2.2, 2.2}, guest.caller);
  EXPECT_EQ(refused.status, 401);
  EXPECT_THAT(refused.body, HasSubstr("COORDINATOR_TOKEN_EXPIRED"));
}

TEST(CoordinatorState, OnlyItsOwnTokenSpeaksForAMember) {
  CoordinatorState coordinator(options_for(2), {0, 0});
  auto all = group(coordinator, 2, 0);
  Speaker guest = guest_of(coordinator, all, with_token("0123456789abcdef", 1000));
  const Caller other = with_token("fedcba9876543210", 1000);
  for (const Speaker* victim : {&guest, &all[0]}) {
    Heartbeat lie = victim->heartbeat;
    lie.report.phase = Phase::leaving;
    EXPECT_EQ(coordinator.heartbeat(to_json(lie), {1.4, 1.4}, other).status, 403);
    UpdatesPoll poll{lie.id, lie.incarnation, {}, "", false, 0, other};
    const auto answer = coordinator.updates(poll, {1.4, 1.4});
    ASSERT_TRUE(answer);
    EXPECT_EQ(answer->status, 403);
    EXPECT_EQ(coordinator.join(to_json(JoinRequest{victim->introduction, lie.incarnation}), {1.4, 1.4}, other).status,
              403);
  }
  EXPECT_EQ(coordinator.heartbeat(to_json(all[0].heartbeat), {1.4, 1.4}, guest.caller).status, 403);
  guest.speak(coordinator, 1.5);
  EXPECT_FALSE(guest.reply.fenced);
}

TEST(CoordinatorState, ASuccessorKnowsTheRevokedTokens) {
  CoordinatorState first(options_for(2), {0, 0});
  auto all = group(first, 2, 0);
  Speaker guest = guest_of(first, all, with_token("0123456789abcdef", 1000));
  CoordinatorOptions options = options_for(2, 100);
  options.revoked = {"0123456789abcdef"};
  CoordinatorState second(options, {10, 10});
  guest.speak(second, 10.1);
  ASSERT_TRUE(guest.reply.fenced);
  EXPECT_THAT(*guest.reply.fenced, HasSubstr("was revoked"));
  for (const double now : {10.2, 10.8, 11.3}) {
    for (Speaker& speaker : all) speaker.speak(second, now);
  }
  expect_without(guest, all, second, 11.4);
}

// The holder of a token must not make requests. So a coordinator ignores the requests of users in its introduction.
TEST(CoordinatorState, ATokenIntroducesNoRequests) {
  CoordinatorState coordinator(options_for(2), {0, 0});
  auto all = group(coordinator, 2, 0);
  Speaker guest = guest_of(coordinator, all, with_token("0123456789abcdef", 1000));
  guest.heartbeat.requests = {{1, "stop", 0, "forged"}};
  guest.heartbeat.introduction = guest.introduction;
  guest.speak(coordinator, 1.4);
  EXPECT_FALSE(guest.reply.fenced);
  EXPECT_TRUE(status_of(coordinator, 1.4)["requests"].empty());
  EXPECT_EQ(coordinator.control(R"({"kind":"evaluate"})", {1.5, 1.5}).body, R"({"number":1})");
}

TEST(CoordinatorState, ATokenIntroducesNoViewAndNoNumbers) {
  CoordinatorState coordinator(options_for(2), {0, 0});
  auto all = group(coordinator, 2, 0);
  Speaker guest = guest_of(coordinator, all, with_token("0123456789abcdef", 1000));
  const View real = *guest.heartbeat.report.view;
  Heartbeat lie = guest.heartbeat;
  lie.introduction = guest.introduction;
  lie.report.view = View{Generation(1LL << 52), {{guest.heartbeat.id, "127.0.0.1:1", 1, false, {}}}, false, "forged"};
  lie.acting_view = lie.report.view->generation;
  lie.report.finished = 0;
  EXPECT_EQ(coordinator.heartbeat(to_json(lie), {1.4, 1.4}, guest.caller).status, 200);
  lie.id = MemberId(1LL << 52);
  lie.incarnation = "forged";
  EXPECT_THAT(coordinator.heartbeat(to_json(lie), {1.4, 1.4}, guest.caller).body,
              HasSubstr("has given this worker the id"));
  EXPECT_EQ(coordinator.over(1.4), std::nullopt);
  EXPECT_FALSE(status_of(coordinator, 1.4).contains("finished"));
  EXPECT_EQ(status_of(coordinator, 1.4)["view"]["generation"], real.generation.value);
  Speaker next("next");
  next.join(coordinator, 1.5);
  EXPECT_EQ(next.heartbeat.id.value, guest.heartbeat.id.value + 1);
  next.speak(coordinator, 1.5);
  ASSERT_TRUE(next.reply.view);
  EXPECT_EQ(next.reply.view->generation, real.generation.next());
}

TEST(CoordinatorState, OnlyTheLeaderEndsTheRunAndTakesRequests) {
  CoordinatorState coordinator(options_for(2), {0, 0});
  auto all = group(coordinator, 2, 0);
  coordinator.control(R"({"kind":"stop"})", {0.1, 0.1});
  for (const size_t i : {size_t{1}, size_t{0}}) {
    all[i].heartbeat.report.finished = 0;
    all[i].heartbeat.report.taken_requests = 1;
    all[i].speak(coordinator, 0.2);
    EXPECT_EQ(status_of(coordinator, 0.2)["requests"].size(), i);
    EXPECT_EQ(status_of(coordinator, 0.2).contains("finished"), i == 0);
  }
}

// All members die after a request was taken and before a checkpoint has it. The next members begin from that
// checkpoint.
TEST(CoordinatorState, RequestsThatNoCheckpointHasAreOfferedAgain) {
  for (const int64_t durable : {10, 60}) {
    CoordinatorState coordinator(options_for(1), {0, 0});
    auto all = group(coordinator, 1, 0);
    const auto say = [&](int64_t step, int64_t taken, int64_t saved, double now) {
      all[0].heartbeat.report.step = step;
      all[0].heartbeat.report.taken_requests = taken;
      all[0].heartbeat.report.durable_step = saved;
      all[0].speak(coordinator, now);
    };
    say(5, 0, -1, 0.1);
    coordinator.control(R"({"kind":"checkpoint"})", {0.2, 0.2});
    say(6, 1, -1, 0.3);
    say(20, 1, 10, 0.4);  // the checkpoint of step 10 has request 1
    coordinator.control(R"({"kind":"stop"})", {0.5, 0.5});
    coordinator.control(R"({"kind":"evaluate"})", {0.5, 0.5});
    say(21, 2, 10, 0.6);
    if (durable > 10) say(50, 3, durable, 0.7);
    EXPECT_EQ(status_of(coordinator, 0.7)["requests"].size(), durable > 10 ? 0U : 1U);
    all[0].heartbeat.report.dissolve = "member 2 has another state";
    all[0].speak(coordinator, 0.8);
    all[0] = Speaker("again");
    all[0].join(coordinator, 1);
    all[0].speak(coordinator, 1);
    ASSERT_TRUE(all[0].heartbeat.report.view);
    EXPECT_TRUE(all[0].heartbeat.report.view->fresh);
    const Json requests = status_of(coordinator, 1)["requests"];
    if (durable > 10) {
      EXPECT_TRUE(requests.empty()) << requests;
      continue;
    }
    ASSERT_EQ(requests.size(), 2U);
    EXPECT_EQ(requests[0]["kind"], "stop");
    EXPECT_EQ(requests[1]["kind"], "evaluate");
    say(11, 1, 10, 1.1);  // as the checkpoint says
    EXPECT_EQ(status_of(coordinator, 1.1)["requests"].size(), 2U);
    say(13, 3, 10, 1.2);
    EXPECT_EQ(status_of(coordinator, 1.2)["requests"].size(), 0U);
  }
}

// Before the members of a view have introduced themselves to a successor, the holder of a token claims their ids.
TEST(CoordinatorState, ATokenTakesNoMembersPlaceAtASuccessor) {
  CoordinatorState first(options_for(2), {0, 0});
  auto all = group(first, 2, 0);
  CoordinatorOptions options = options_for(2, 100);
  options.first_id = MemberId(100);
  options.last_view = all[0].heartbeat.report.view;
  CoordinatorState second(options, {10, 10});
  Speaker thief("thief");
  thief.caller = with_token("0123456789abcdef", 1000);
  thief.heartbeat = all[0].heartbeat;
  thief.heartbeat.incarnation = "thief";
  thief.heartbeat.report.finished = 0;
  thief.speak(second, 10.1);
  EXPECT_FALSE(status_of(second, 10.1).contains("finished"));
  for (const double now : {10.2, 10.8, 11.3}) {
    for (Speaker& speaker : all) speaker.speak(second, now);
  }
  expect_without(Speaker("nobody"), all, second, 11.4);
  thief.speak(second, 11.4);
  EXPECT_TRUE(thief.reply.fenced);
}

// No member with the run's secret comes back, so nothing but the proof keeps the id from the thief.
TEST(CoordinatorState, ATokenIntroducesOnlyTheIdThatItsJoinGave) {
  CoordinatorState first(options_for(2), {0, 0});
  auto all = group(first, 2, 0);
  const Caller caller = with_token("0123456789abcdef", 1000);
  const Speaker guest = guest_of(first, all, caller);
  for (const MemberId id : {all[0].heartbeat.id, guest.heartbeat.id}) {
    for (const bool other_token : {false, true}) {
      CoordinatorOptions options = options_for(2, 100);
      options.first_id = MemberId(100);
      CoordinatorState second(options, {10, 10});
      Speaker thief = guest;
      thief.heartbeat.id = id;
      if (id == guest.heartbeat.id) thief.heartbeat.incarnation = "thief";
      if (other_token) thief.caller = with_token("fedcba9876543210", 1000);
      thief.speak(second, 10.1);
      ASSERT_TRUE(thief.reply.fenced);
      EXPECT_THAT(*thief.reply.fenced, HasSubstr("no coordinator of this run has given this worker the id"));
      EXPECT_TRUE(status_of(second, 10.1)["members"].empty());
      thief.heartbeat.incarnation = "anew";
      thief.join(second, 10.2);
      thief.speak(second, 10.2);
      EXPECT_FALSE(thief.reply.fenced) << "the worker joins anew";
    }
  }
}

// A coordinator certifies a key for an id in the join that gives the id, and at no other time.
TEST(CoordinatorState, CertifiesNoOtherKeyForAnId) {
  CoordinatorOptions options = options_for(1);
  options.secret = "sesame";
  CoordinatorState first(options, {0, 0});
  auto all = group(first, 1, 0);
  const Introduction introduction = all[0].introduction;
  const auto status = [&](CoordinatorState& coordinator, const std::string& incarnation, std::optional<PublicKey> key) {
    return coordinator.join(to_json(JoinRequest{introduction, incarnation, key}), {0.5, 0.5}).status;
  };
  const PublicKey key = KeyPair::random().public_key(), other = KeyPair::random().public_key();
  EXPECT_EQ(status(first, "new", key), 200);
  EXPECT_EQ(status(first, "new", key), 200) << "the first answer did not arrive";
  EXPECT_EQ(status(first, "new", other), 403);
  options.at_least = Generation(100);
  CoordinatorState second(options, {0.4, 0.4});
  all[0].speak(second, 0.4);
  EXPECT_EQ(status(second, all[0].heartbeat.incarnation, other), 403) << "it is known from its introduction";
}

// The view comes from view.json or from a member with the run's secret; the member with the token stays in it.
TEST(CoordinatorState, AMemberWithATokenGoesOnAtASuccessor) {
  CoordinatorState first(options_for(2), {0, 0});
  auto all = group(first, 2, 0);
  Speaker guest = guest_of(first, all, with_token("0123456789abcdef", 1000));
  const View before = *guest.heartbeat.report.view;
  CoordinatorOptions options = options_for(2, 100);
  options.first_id = MemberId(100);
  CoordinatorState second(options, {10, 10});
  for (const double now : {10.1, 10.5, 10.9, 11.3, 11.5}) {
    guest.speak(second, now);
    for (Speaker& speaker : all) speaker.speak(second, now);
  }
  guest.speak(second, 11.6);
  EXPECT_FALSE(guest.reply.fenced);
  EXPECT_FALSE(guest.reply.introduce);
  EXPECT_TRUE(guest.reply.lease);
  EXPECT_EQ(*guest.heartbeat.report.view, before);
}

// ---- what a guest, a member that joined by a token, reports about the group -----------------------------------------

TEST(CoordinatorState, AGuestNeitherDissolvesTheGroupNorPutsMembersOut) {
  for (const bool dissolve : {true, false}) {
    CoordinatorState coordinator(options_for(2), {0, 0});
    auto all = group(coordinator, 2, 0);
    Speaker guest = guest_of(coordinator, all, with_token("0123456789abcdef", 1000));
    if (dissolve) guest.heartbeat.report.dissolve = "the others are wrong";
    if (!dissolve) guest.heartbeat.report.wrong = {{all[0].heartbeat.id, "it is wrong"}};
    guest.heartbeat.report.durable_step = 1LL << 52;
    guest.speak(coordinator, 1.4);
    for (Speaker& speaker : all) {
      speaker.speak(coordinator, 1.5);
      EXPECT_FALSE(speaker.reply.fenced);
    }
    if (!dissolve) continue;
    all[1].heartbeat.report.durable_step = 40;
    all[1].heartbeat.report.dissolve = "the states differ";
    all[1].speak(coordinator, 1.6);
    EXPECT_TRUE(all[1].reply.fenced) << "a member with the run's secret says the same";
    std::vector<Speaker> next;
    for (const char* name : {"next", "other"}) {
      next.emplace_back(name);
      next.back().join(coordinator, 1.7);
    }
    for (Speaker& speaker : next) speaker.speak(coordinator, 1.7);
    ASSERT_TRUE(next[0].heartbeat.report.view);
    EXPECT_EQ(next[0].heartbeat.report.view->going_back, (GoingBack{1, 40, "the states differ"}));
  }
}

// The only members with the state are guests, because the others died. The run has workers, so it does not end so.
TEST(CoordinatorState, AGuestThatLeadsDoesNotEndTheRun) {
  CoordinatorState coordinator(options_for(1), {0, 0});
  auto all = group(coordinator, 1, 0);
  Speaker guest = guest_of(coordinator, all, with_token("0123456789abcdef", 1000));
  coordinator.lost(R"({"id":1,"why":"killed"})", {1.4, 1.4});
  guest.heartbeat.report.finished = 0;
  guest.speak(coordinator, 1.5);
  EXPECT_EQ(status_of(coordinator, 1.5)["leader"], guest.heartbeat.id.value);
  EXPECT_FALSE(status_of(coordinator, 1.5).contains("finished"));
  EXPECT_FALSE(guest.reply.fenced);
  Speaker next("next");
  next.join(coordinator, 1.6);
  guest.speak(coordinator, 1.7);
  ASSERT_TRUE(guest.reply.fenced);
  EXPECT_THAT(*guest.reply.fenced, HasSubstr("it joined by a token, so it cannot end the run"));
  Speaker later("later");  // the state of `next` was to come from the guest
  later.join(coordinator, 1.8);
  later.speak(coordinator, 1.9);
  ASSERT_TRUE(later.heartbeat.report.view);
  EXPECT_EQ(later.heartbeat.report.view->leader(), later.heartbeat.id);
  later.heartbeat.report.finished = 0;
  later.speak(coordinator, 2.0);
  EXPECT_EQ(status_of(coordinator, 2.0)["finished"], 0);
}

TEST(CoordinatorState, ATokenDoesNotLearnTheProcessesOfOthers) {
  CoordinatorState coordinator(options_for(2), {0, 0});
  auto all = group(coordinator, 2, 0);
  const Caller caller = with_token("0123456789abcdef", 1000);
  guest_of(coordinator, all, caller);
  const auto status = [&](const std::optional<Caller>& asks) {
    return status_of_json(coordinator.status({1.4, 1.4}, asks).body);
  };
  for (const MemberStatus& member : status(caller).members) {
    EXPECT_EQ(member.pid, member.token.empty() ? 0 : 7);
    EXPECT_EQ(member.host, member.token.empty() ? "" : "here");
  }
  EXPECT_EQ(coordinator.status({1.4, 1.4}, caller).body.find("\"pid\":0"), std::string::npos);
  EXPECT_TRUE(status(caller).decisions.empty());
  EXPECT_EQ(status(with_token("fedcba9876543210", 1000)).members[2].pid, 0);
  EXPECT_EQ(status(Caller()).members[0].pid, 7);
  EXPECT_EQ(status(Caller()).members[0].host, "here");
  EXPECT_FALSE(status(Caller()).decisions.empty());
}

TEST(CoordinatorState, CertifiesTheKeyOfAMember) {
  CoordinatorOptions options = options_for(2);
  options.secret = "sesame";
  CoordinatorState coordinator(options, {0, 0});
  const Introduction introduction{"127.0.0.1:1", "here", 7, {"job", "machine", "probe"}};
  const KeyPair key = KeyPair::random();
  const JoinRequest request{introduction, "a", key.public_key()};
  const auto reply = join_reply_of(coordinator.join(to_json(request), {0, 0}).body);
  ASSERT_TRUE(reply && reply->certificate);
  EXPECT_TRUE(is_certified(coordinator_key("sesame"), reply->id, key.public_key(), *reply->certificate));
  std::string wrong = to_json(request);
  wrong.replace(wrong.find("\"key\":\"") + 7, 1, "x");
  EXPECT_EQ(coordinator.join(wrong, {0, 0}).status, 400);
}

TEST(CoordinatorState, ItsOwnPauseDoesNotCountAsSilenceOfMembers) {
  CoordinatorState coordinator(options_for(2), {0, 0});
  auto speakers = group(coordinator, 2, 0);
  coordinator.tick({30, 30});  // the coordinator did not run for 30 s
  EXPECT_EQ(status_of(coordinator, 30)["members"].size(), 2u);
  speakers[0].speak(coordinator, 30.4);
  coordinator.tick({30.8, 30.8});
  EXPECT_EQ(status_of(coordinator, 30.8)["members"].size(), 2u);
  speakers[0].speak(coordinator, 31.1);
  EXPECT_EQ(status_of(coordinator, 31.1)["members"].size(), 1u) << "the other had its second";
  speakers[1].speak(coordinator, 31.2);
  ASSERT_TRUE(speakers[1].reply.fenced);
  EXPECT_THAT(*speakers[1].reply.fenced, HasSubstr("silent for 1.1 s"));
}

TEST(CoordinatorState, ASuccessorGrantsNoLeaseBeforeItHasListened) {
  CoordinatorState first(options_for(2), {0, 0});
  auto speakers = group(first, 2, 0);
  EXPECT_TRUE(speakers[0].reply.lease);
  CoordinatorState second(options_for(2, 100), {10, 10});
  speakers[0].speak(second, 10.1);
  EXPECT_FALSE(speakers[0].reply.lease);
  EXPECT_EQ(second.control(R"({"kind":"stop"})", {10.2, 10.2}).status, 503);
  speakers[1].speak(second, 10.9);
  speakers[0].speak(second, 11.0);
  speakers[0].speak(second, 11.4);
  EXPECT_TRUE(speakers[0].reply.lease);
  EXPECT_EQ(status_of(second, 11.4)["view"]["generation"], speakers[0].heartbeat.acting_view.value);
}

TEST(CoordinatorState, ASuccessorTakesTheNewestReportedView) {
  CoordinatorState first(options_for(3), {0, 0});
  auto speakers = group(first, 3, 0);
  const Speaker zombie = speakers[2];
  first.lost(R"({"id":3,"why":"cable"})", {0.5, 0.5});
  speakers[0].speak(first, 0.6);  // only member 1 received the second view
  ASSERT_EQ(speakers[0].reply.view->members.size(), 2u);
  CoordinatorState second(options_for(3, 100), {10, 10});
  Speaker late = zombie;
  late.speak(second, 10.1);
  speakers[1].speak(second, 10.2);
  speakers[0].speak(second, 10.3);
  speakers[1].speak(second, 10.4);
  EXPECT_EQ(speakers[1].reply.view, speakers[0].heartbeat.report.view) << "the other hears of it now";
  for (const double now : {11.0, 11.3, 11.6}) {
    for (Speaker& speaker : speakers) speaker.speak(second, now);
    late.speak(second, now);
  }
  ASSERT_TRUE(late.reply.fenced);
  EXPECT_THAT(*late.reply.fenced, HasSubstr("the group went on without it"));
  EXPECT_FALSE(speakers[0].reply.fenced);
  EXPECT_FALSE(speakers[1].reply.fenced);
}

// The members that had the state died together with the coordinator. The only member that reports to the new
// coordinator (the successor) was fenced before, but has not received that. If the successor does not know the last
// view, it cannot detect this, and the run continues from the older state.
TEST(CoordinatorState, ASuccessorThatKnowsTheLastViewFencesAnOldMember) {
  for (const bool knows : {true, false}) {
    std::optional<View> last;
    CoordinatorOptions options = options_for(2);
    options.on_view = [&](const View& view) { last = view; };
    CoordinatorState first(options, {0, 0});
    Speaker zombie = group(first, 2, 0)[1];
    first.lost(R"({"id":2,"why":"cable"})", {0.5, 0.5});
    ASSERT_TRUE(last);
    ASSERT_EQ(last->find(zombie.heartbeat.id), nullptr) << "each view is reported before a member asks for it";
    CoordinatorOptions next = options_for(2, 100);
    if (knows) next.last_view = last;
    CoordinatorState second(next, {10, 10});
    for (const double now : {10.1, 10.6, 11.1, 11.6}) {
      if (!zombie.reply.fenced) zombie.speak(second, now);
    }
    EXPECT_EQ(zombie.reply.fenced.has_value(), knows);
    if (knows) {
      EXPECT_THAT(*zombie.reply.fenced, HasSubstr("the group went on without it"));
    }
  }
}

// The first member that reports to the successor is still a joiner.
TEST(CoordinatorState, ASuccessorWaitsForTheComputingMembers) {
  CoordinatorState first(options_for(2), {0, 0});
  auto speakers = group(first, 2, 0);
  Speaker joiner("joiner");
  joiner.join(first, 1);
  const Reply reply = first.heartbeat(to_json(joiner.heartbeat), {1.1, 1.1});
  joiner.heartbeat.report.view = heartbeat_reply_of(reply.body)->view;
  ASSERT_TRUE(joiner.heartbeat.report.view);
  joiner.heartbeat.known_view = joiner.heartbeat.acting_view = joiner.heartbeat.report.view->generation;
  joiner.heartbeat.report.phase = Phase::joining;
  CoordinatorState second(options_for(2, 100), {10, 10});
  for (const double now : {10.1, 10.6, 11.1, 11.6}) {
    joiner.speak(second, now);
    for (Speaker& speaker : speakers) speaker.speak(second, now + 0.05);
  }
  for (const Speaker& speaker : speakers) {
    EXPECT_FALSE(speaker.reply.fenced);
    EXPECT_TRUE(speaker.reply.lease);
  }
}

TEST(CoordinatorState, ASuccessorSkipsItsPredecessorsNumbers) {
  CoordinatorState first(options_for(2), {0, 0});
  auto speakers = group(first, 2, 0);
  const Generation before = speakers[0].heartbeat.acting_view;
  CoordinatorState second(options_for(2, 100), {10, 10});
  for (const double now : {10.1, 10.9}) {
    for (Speaker& speaker : speakers) speaker.speak(second, now);
  }
  Speaker fresh("fresh");
  fresh.join(second, 11.3);
  EXPECT_GE(fresh.heartbeat.id.value, 1000);
  speakers[0].speak(second, 11.4);
  ASSERT_TRUE(speakers[0].reply.view);
  EXPECT_GE(speakers[0].reply.view->generation.value, before.value + 1000);
}

TEST(CoordinatorState, AMemberThatReportsAfterTheListeningTimeBringsTheState) {
  CoordinatorState first(options_for(1), {0, 0});
  auto speakers = group(first, 1, 0);
  CoordinatorState second(options_for(1, 100), {10, 10});
  second.tick({10.4, 10.4});
  second.tick({10.8, 10.8});
  second.tick({11.2, 11.2});
  second.tick({11.6, 11.6});
  speakers[0].speak(second, 12);
  for (const double now : {12.4, 12.8, 13.2, 13.6}) speakers[0].speak(second, now);
  EXPECT_FALSE(speakers[0].reply.fenced);
  EXPECT_TRUE(speakers[0].reply.lease);
}

TEST(CoordinatorState, TheMemberInTheViewKeepsADuplicateId) {
  CoordinatorState first(options_for(1), {0, 0});
  auto speakers = group(first, 1, 0);
  // The options do not tell this coordinator that it replaces a dead one.
  CoordinatorState second(options_for(2), {10, 10});
  Speaker newcomer("newcomer");
  newcomer.join(second, 10);
  ASSERT_EQ(newcomer.heartbeat.id, speakers[0].heartbeat.id);
  speakers[0].speak(second, 10.1);
  EXPECT_FALSE(speakers[0].reply.fenced);
  newcomer.speak(second, 10.2);
  ASSERT_TRUE(newcomer.reply.fenced);
  EXPECT_EQ(*newcomer.reply.fenced, "another member has id 1");
}

TEST(CoordinatorState, FencesAMemberOfADeadGroup) {
  CoordinatorState coordinator(options_for(1), {0, 0});
  auto speakers = group(coordinator, 1, 0);
  coordinator.lost(R"({"id":1,"why":"killed"})", {0.1, 0.1});
  Speaker next("next");
  next.join(coordinator, 0.2);
  next.speak(coordinator, 0.3);
  ASSERT_TRUE(next.reply.view);
  EXPECT_TRUE(next.reply.view->fresh);
  EXPECT_GT(next.reply.view->generation, speakers[0].heartbeat.acting_view);
  speakers[0].speak(coordinator, 0.4);
  EXPECT_EQ(speakers[0].reply.fenced, "killed");
}

TEST(CoordinatorState, RequestsOutliveACoordinator) {
  CoordinatorState first(options_for(1), {0, 0});
  auto speakers = group(first, 1, 0);
  first.control(R"({"kind":"evaluate"})", {0.1, 0.1});
  first.control(R"({"kind":"stop","reason":"enough"})", {0.2, 0.2});
  speakers[0].speak(first, 0.3);
  ASSERT_TRUE(speakers[0].reply.requests);
  Speaker& leader = speakers[0];
  leader.heartbeat.requests = *leader.reply.requests;
  leader.heartbeat.requests_key = leader.reply.requests_key;
  leader.heartbeat.report.taken_requests = 1;
  CoordinatorState second(options_for(1, 100), {10, 10});
  leader.speak(second, 10.1);
  EXPECT_EQ(status_of(second, 10.1)["requests"].size(), 1u);
  EXPECT_EQ(status_of(second, 10.1)["requests"][0]["kind"], "stop");
  for (const double now : {10.5, 10.9, 11.3, 11.6}) leader.speak(second, now);
  EXPECT_EQ(second.control(R"({"kind":"stop"})", {11.7, 11.7}).body, R"({"number":3})");
}

TEST(CoordinatorState, AnswersDamagedHeartbeats) {
  CoordinatorState coordinator(options_for(2), {0, 0});
  auto speakers = group(coordinator, 2, 0);
  Heartbeat heartbeat = speakers[0].heartbeat;
  heartbeat.introduction = speakers[0].introduction;
  heartbeat.requests = {{1, "stop", 0, "x"}};
  heartbeat.report.lost = {{MemberId(99), "gone"}};
  heartbeat.report.wrong = {{MemberId(98), "wrong"}};
  heartbeat.report.facts = R"({"loss":0.5})";
  const std::string good = to_json(heartbeat);
  ASSERT_TRUE(heartbeat_of(good)) << heartbeat_of(good).error();
  for (uint64_t seed = 0; seed < 5000; ++seed) {
    RandomStream random(random_key({9, seed}));
    std::string text = good;
    for (uint64_t i = 0; i <= random.below(5); ++i) {
      text[random.below(text.size())] = static_cast<char>(random.below(256));
    }
    CoordinatorState fresh(options_for(2, 100), {10, 10});
    const Reply reply = fresh.heartbeat(text, {10.1, 10.1});
    EXPECT_TRUE(reply.status == 200 || reply.status == 400) << reply.status;
    EXPECT_TRUE(parse_json(reply.body)) << reply.body;
    fresh.tick({12, 12});
    EXPECT_TRUE(parse_json(fresh.status({12, 12}).body));
  }
}

TEST(CoordinatorState, TheEndWaitsForMembersThatStillSendHeartbeats) {
  CoordinatorState coordinator(options_for(2), {0, 0});
  auto speakers = group(coordinator, 2, 0);
  speakers[0].heartbeat.report.finished = 75;
  speakers[0].speak(coordinator, 0.1);
  EXPECT_EQ(speakers[0].reply.finished, 75);
  speakers[0].heartbeat.knows_end = true;
  speakers[0].speak(coordinator, 0.2);
  EXPECT_EQ(coordinator.over(0.2), std::nullopt);
  speakers[1].speak(coordinator, 0.4);
  EXPECT_EQ(speakers[1].reply.finished, 75);
  EXPECT_EQ(coordinator.over(0.5), std::nullopt) << "reported, but the member did not confirm that it heard";
  speakers[1].heartbeat.knows_end = true;
  speakers[1].speak(coordinator, 0.6);
  EXPECT_EQ(coordinator.over(0.6), 75);
}

TEST(CoordinatorState, TheEndDoesNotWaitForSilentMembers) {
  CoordinatorState coordinator(options_for(2), {0, 0});
  auto speakers = group(coordinator, 2, 0);
  speakers[0].heartbeat.report.finished = 0;
  speakers[0].heartbeat.knows_end = true;
  speakers[0].speak(coordinator, 0.3);
  EXPECT_EQ(coordinator.over(0.9), std::nullopt);
  EXPECT_EQ(coordinator.over(1.2), 0);
}

// The coordinator is suspended while it answers a join, and fences the member when it goes on. The member learns of its
// first join only from the answer to its second try.
TEST(CoordinatorState, AMemberThatWasFencedBeforeItKnewThatItHadJoinedJoinsAgain) {
  CoordinatorState coordinator(options_for(2), {0, 0});
  ClientOptions options;
  options.address = "127.0.0.1:1";
  options.identity = {"job", "machine", "probe"};
  MembershipClient member(options, "name");
  const auto join = [&](double now) { return coordinator.join(member.join_request(), {now, now}, {}); };
  const auto receive = [&](const Reply& reply, double now) {
    http::Response response;
    response.status = reply.status;
    response.body = reply.body;
    return member.joined(response, now);
  };
  for (const double lost : {0.0, 100.0}) {
    EXPECT_EQ(join(lost).status, 200);
    for (double now = lost; now < lost + 50; now += 0.5) coordinator.tick({now, now});
    EXPECT_FALSE(receive(join(lost + 50), lost + 50));
  }
  EXPECT_TRUE(receive(join(151), 151));
  EXPECT_EQ(member.id(), MemberId(3));
}

}  // namespace
}  // namespace sinew::cluster
