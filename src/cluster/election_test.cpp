// Tests who stands for election, when, and who must not lead; and that members and coordinators obey terms.
#include "cluster/election.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "cluster/coordinator_state.h"
#include "cluster/join_token.h"
#include "cluster/membership_client.h"

namespace sinew::cluster {
namespace {

using ::testing::HasSubstr;

ViewMember computing(int64_t id) {
  return {.id = MemberId(id), .address = "a", .share = 1, .joining = false, .donor = {}};
}

View view_of_three() {
  View view;
  view.generation = Generation(5);
  view.members = {computing(2),
                  computing(4),
                  computing(7),
                  {.id = MemberId(9), .address = "a", .share = 1, .joining = true, .donor = MemberId(2)}};
  return view;
}

Candidate candidate(int64_t id, double unled_seconds) {
  Candidate one;
  one.me = MemberId(id);
  one.secret = "secret";
  one.view = view_of_three();
  one.unled_seconds = one.same_file_seconds = unled_seconds;
  return one;
}

TEST(Election, TheLeaderStandsFirstAndTheOthersOneAfterTheOther) {
  const ElectionOptions options;
  EXPECT_FALSE(next_election_step(candidate(2, options.wait_seconds - 0.1)).stand);
  EXPECT_TRUE(next_election_step(candidate(2, options.wait_seconds)).stand);
  EXPECT_FALSE(next_election_step(candidate(4, options.wait_seconds)).stand);
  EXPECT_TRUE(next_election_step(candidate(4, options.wait_seconds + options.delay_seconds)).stand);
  const ElectionStep waits = next_election_step(candidate(7, options.wait_seconds + options.delay_seconds));
  EXPECT_FALSE(waits.stand);
  EXPECT_THAT(waits.why, HasSubstr("1.0 s more"));
  EXPECT_THAT(next_election_step(candidate(7, 100)).why, HasSubstr("no coordinator has answered for 100.0 s"));
  ElectionOptions many = options;
  many.delay_seconds = 1000;
  EXPECT_TRUE(next_election_step(candidate(7, options.wait_seconds + options.most_delay_seconds), many).stand);
}

TEST(Election, TheLeaderThatAViewNamesStandsFirst) {
  const ElectionOptions options;
  Candidate named = candidate(7, options.wait_seconds);
  named.view->named_leader = MemberId(7);
  EXPECT_TRUE(next_election_step(named).stand);
}

TEST(Election, WhoDoesNotComputeOrIsOutDoesNotStand) {
  EXPECT_FALSE(next_election_step(candidate(9, 1000)).stand) << "it does not have the state yet";
  EXPECT_FALSE(next_election_step(candidate(3, 1000)).stand) << "it is in no view";
  Candidate one = candidate(2, 1000);
  one.view.reset();
  EXPECT_FALSE(next_election_step(one).stand);
  one = candidate(2, 1000);
  one.out = true;
  EXPECT_FALSE(next_election_step(one).stand) << "it was told that it is fenced";
}

TEST(Election, ACoordinatorThatHasJustBegunGetsTimeToAnswer) {
  Candidate one = candidate(2, 1000);
  one.same_file_seconds = 1;
  EXPECT_FALSE(next_election_step(one).stand);
}

TEST(Election, TheFilesOfTheRunHaveTheLastWord) {
  CoordinatorInfo info;
  info.secret = "secret";
  info.pid = 4711;
  const auto why = [&](int64_t id, const std::optional<View>& view = view_of_three()) {
    return why_not_elected(candidate(id, 100), {info, view});
  };
  EXPECT_EQ(why(2), "");
  EXPECT_EQ(why(7), "");
  EXPECT_THAT(why(9), HasSubstr("went on without this worker"));
  EXPECT_THAT(why(8), HasSubstr("went on without this worker"));
  EXPECT_THAT(why(2, std::nullopt), HasSubstr("another attempt"));
  EXPECT_THAT(why_not_elected(candidate(2, 100), {std::nullopt, view_of_three()}), HasSubstr("cannot be read"));
  info.secret = "of another run";
  EXPECT_THAT(why(2), HasSubstr("secret of another run"));
  info.secret = new_join_token("secret", 9'000'000'000);
  EXPECT_THAT(why(2), HasSubstr("joined by a URL"));
  info.secret = "secret";
  info.pid = 0;
  EXPECT_THAT(why(2), HasSubstr("joined by a URL"));
  info.pid = 4711;
  info.exit_code = 0;
  EXPECT_THAT(why(2), HasSubstr("has ended"));
}

TEST(Election, WhoJoinedByAUrlHasADirectoryOfItsOwn) {
  const auto joined = [](const std::string& secret, int64_t pid) {
    CoordinatorInfo info;
    info.secret = secret;
    info.pid = pid;
    return joined_by_url(info);
  };
  const std::string token = new_join_token("secret", 9'000'000'000);
  EXPECT_FALSE(joined("secret", 4711));
  EXPECT_TRUE(joined("secret", 0));
  EXPECT_TRUE(joined(token, 0));
  EXPECT_TRUE(joined(token, 4711));
  EXPECT_EQ(why_not_last({CoordinatorInfo{.secret = token, .pid = 4711}, std::nullopt}, MemberId(2)), "");
}

// ---- terms ---------------------------------------------------------------------------------------------------------

http::Response response_of(const Reply& reply) {
  http::Response response;
  response.status = reply.status;
  response.body = reply.body;
  return response;
}

// A coordinator of this term, and one member that computes by its view.
class Terms : public ::testing::Test {
 protected:
  static CoordinatorOptions options_of(int64_t term) {
    CoordinatorOptions options;
    options.term = term;
    options.at_least = Generation(term * 1000);
    options.first_id = MemberId(term * 1000);
    options.cluster.settle_seconds = 0;
    options.confirm_seconds = 1;
    return options;
  }
  Terms() : member_(client_, "incarnation"), old_(options_of(3), {10, 10}) {
    client_.identity = {"job", "machine", "probe"};
    EXPECT_TRUE(member_.joined(response_of(old_.join(member_.join_request(), {10, 10})), 10));
    speak(old_, 10);
  }
  // The member sends a heartbeat to the coordinator. Returns the actions that follow.
  ReplyActions speak(CoordinatorState& coordinator, double now) {
    ReplyActions actions;
    for (int tries = 0; tries < 3; ++tries) {
      last_ = coordinator.heartbeat(member_.heartbeat(), {now, now});
      actions = member_.receive(response_of(last_), now, now);
      if (actions.view) {
        member_.report([&](MemberReport& report) {
          report.view = actions.view;
          report.phase = Member::Phase::computing;
        });
      }
      if (!actions.send_heartbeat) break;
    }
    return actions;
  }

  ClientOptions client_;
  MembershipClient member_;
  CoordinatorState old_;
  Reply last_;
};

TEST_F(Terms, AMemberRefusesWhatAnOlderCoordinatorSays) {
  EXPECT_EQ(member_.term(), 3);
  EXPECT_TRUE(member_.leased(10, 1));
  CoordinatorState newer(options_of(4), {11, 11});
  EXPECT_TRUE(speak(newer, 11).understood);
  EXPECT_EQ(member_.term(), 4);
  // The older one knows nothing of the newer one, and has fenced the member.
  const std::string body = R"({"newest_view":99,"lease":true,"requests_key":"","fenced":"gone","term":3})";
  const ReplyActions actions = member_.receive(response_of({200, body}), 12, 12);
  EXPECT_FALSE(actions.understood);
  EXPECT_FALSE(actions.fenced);
  EXPECT_FALSE(member_.over());
  EXPECT_FALSE(member_.leased(12.5, 1)) << "the older coordinator gives no lease";
}

TEST_F(Terms, ACoordinatorThatHearsOfANewerOneStepsDown) {
  CoordinatorState newer(options_of(4), {11, 11});
  speak(newer, 11);
  EXPECT_FALSE(old_.superseded_by());
  old_.confirm(11.5);
  EXPECT_FALSE(speak(old_, 11.5).understood);
  EXPECT_EQ(last_.status, 503);
  EXPECT_THAT(last_.body, HasSubstr("COORDINATOR_SUPERSEDED"));
  EXPECT_EQ(old_.superseded_by(), 4);
  EXPECT_THAT(old_.status({11.5, 11.5}).body,
              HasSubstr("steps down, because another coordinator leads the run: member"));
  ASSERT_TRUE(old_.refuse_without_lead(11.5));
}

TEST_F(Terms, TheHolderOfATokenCannotEndACoordinator) {
  const auto token = join_token_of(new_join_token("secret", 9'000'000'000));
  ASSERT_TRUE(token);
  Heartbeat forged;
  forged.id = MemberId(77);
  forged.incarnation = "stranger";
  forged.term = 1'000'000;
  old_.confirm(10);
  old_.heartbeat(to_json(forged), {10, 10}, Caller{token});
  old_.hear({.id = MemberId(77),
             .incarnation = "stranger",
             .known_view = {},
             .requests_key = "",
             .knows_end = false,
             .term = 1'000'000,
             .caller = Caller{token}},
            {10, 10});
  EXPECT_FALSE(old_.superseded_by());
}

// The coordinator did not run for a while, or could not read the run directory, so another one may lead. It then makes
// no view and gives no lease.
TEST_F(Terms, ACoordinatorDecidesNothingUntilItKnowsThatItLeads) {
  old_.confirm(10);
  EXPECT_EQ(old_.heartbeat(member_.heartbeat(), {10.9, 10.9}).status, 200);
  EXPECT_FALSE(old_.refuse_without_lead(10.9));
  ASSERT_TRUE(old_.refuse_without_lead(11.1));
  EXPECT_EQ(old_.heartbeat(member_.heartbeat(), {11.1, 11.1}).status, 503);
  EXPECT_EQ(old_.lost(R"({"id":3001,"why":"killed"})", {11.1, 11.1}).status, 200);
  old_.tick({11.2, 11.2});
  const auto members = [&](double now) { return parse_json(old_.status({now, now}).body)->at("members").size(); };
  EXPECT_EQ(members(11.2), 1u) << "it fences nobody";
  old_.confirm(11.3);
  old_.tick({11.3, 11.3});
  EXPECT_EQ(members(11.3), 0u);
}

}  // namespace
}  // namespace sinew::cluster
