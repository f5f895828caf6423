// Tests calls and joins that the coordinator refuses, and users' requests on their way to the leader.
#include <iostream>

#include "cluster/protocol.h"
#include "cluster/testing.h"

namespace sinew::cluster::testing {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

TEST(Coordinator, RefusesAWorkerThatWouldComputeOtherNumbers) {
  Running coordinator(options_for(1));
  Address address;
  address.set(coordinator.url());
  const Workers workers = start(address, 1);
  ASSERT_TRUE(settle(workers));
  const auto refused = [&](const std::function<void(Identity&)>& change) {
    const std::string text =
        error_of([&] { Worker other(address, [&](ClientOptions& options) { change(options.identity); }); });
    std::cout << text << "\n";
    return text;
  };
  EXPECT_THAT(
      refused([](Identity& identity) { identity.job = "xyz"; }),
      AllOf(HasSubstr("digest is xyz, that of member 1 is job-digest"), HasSubstr("[COORDINATOR_IDENTITY_DIFFERS]")));
  EXPECT_THAT(refused([](Identity& identity) { identity.machine = "another CPU"; }),
              HasSubstr("its machine is another CPU, that of member 1 is a CPU with libraries"));
  EXPECT_THAT(refused([](Identity& identity) { identity.job = R"({"precision":"bf16"})"; }),
              HasSubstr("its digest is {\"precision\":\"bf16\"}, that of member 1 is job-digest"));
  EXPECT_THAT(refused([](Identity& identity) { identity.probe = "0"; }), HasSubstr("[COORDINATOR_IDENTITY_DIFFERS]"));
  EXPECT_EQ(coordinator.status()["members"].size(), 1u);
}

TEST(Refusal, NamesTheFieldsThatDiffer) {
  ClusterState state;
  Member here, joiner;
  here.id = MemberId(1);
  here.identity = {R"({"data":"d1","trainer.precision":"fp32"})", R"({"build_libm":"aa","cpu":"x","libc":"2.36"})",
                   "p"};
  state.members[here.id] = here;
  joiner.id = MemberId(2);
  joiner.identity = here.identity;
  EXPECT_EQ(refusal(joiner, state), "");
  joiner.identity.job = R"({"data":"d1","trainer.precision":"bf16"})";
  EXPECT_THAT(refusal(joiner, state), HasSubstr(": its trainer.precision is bf16, that of member 1 is fp32"));
  joiner.identity.job = here.identity.job;
  joiner.identity.machine = R"({"build_libm":"bb","cpu":"x"})";
  EXPECT_THAT(refusal(joiner, state),
              AllOf(HasSubstr(": its build_libm is bb, that of member 1 is aa; its libc is absent"),
                    ::testing::Not(HasSubstr("cpu"))));
  joiner.identity = here.identity;
  here.identity.probe = "right";
  joiner.identity.probe = "wrong";
  state.members[here.id] = here;
  EXPECT_THAT(refusal(joiner, state),
              AllOf(HasSubstr("digest wrong, those of member 1 differ"), ::testing::Not(HasSubstr("right"))));
}

// The holder of a join token must not decide which members with the run's secret may join.
TEST(Refusal, GuestsGiveWayToMembersWithTheSecret) {
  ClusterState state;
  Member guest, own;
  guest.id = MemberId(1);
  guest.guest = true;
  guest.identity = {"job", "another CPU", "p"};
  state.members[guest.id] = guest;
  own.id = MemberId(2);
  own.identity = {"job", "a CPU", "p"};
  EXPECT_EQ(refusal(own, state), "");
  state.members[own.id] = own;
  lose_other_guests(own, state);
  EXPECT_THAT(state.members[guest.id].lost, HasSubstr("its machine is another CPU, that of member 2 is a CPU"));
  guest.id = MemberId(3);
  EXPECT_THAT(refusal(guest, state), HasSubstr("that of member 2"));
  // A guest that has the state was compared with the members that gave it.
  state.members.erase(own.id);
  state.members[MemberId(1)].lost = "";
  state.view = View{Generation(1), {{MemberId(1), "a", 1, false, {}}}, false, ""};
  EXPECT_THAT(refusal(own, state), HasSubstr("that of member 1"));
}

TEST(Coordinator, RefusesCallsWithoutTheToken) {
  Running coordinator(options_for(1));
  EXPECT_THAT(error_of([&] { call(coordinator.url(), "guess", "GET", "/v2/status", "", kBound); }),
              HasSubstr("[COORDINATOR_WRONG_SECRET]"));
  EXPECT_THAT(error_of([&] { call(coordinator.url(), "", "POST", "/v2/scale", R"({"workers":9})", kBound); }),
              HasSubstr("[COORDINATOR_WRONG_SECRET]"));
  for (const char* secret : {"sesam", "sesame1", "sesamf", "Sesame", "sesamesesame"}) {
    EXPECT_THAT(error_of([&] { call(coordinator.url(), secret, "GET", "/v2/status", "", kBound); }),
                HasSubstr("[COORDINATOR_WRONG_SECRET]"))
        << secret;
  }
  EXPECT_EQ(coordinator.status()["wanted"], 1);
  EXPECT_EQ(call(coordinator.url(), "", "GET", "/healthz", "", kBound), R"({"ok":true})");
  Address address;
  address.set(coordinator.url());
  EXPECT_THAT(error_of([&] { Worker thief(address, [](ClientOptions& options) { options.secret = "guess"; }); }),
              HasSubstr("[COORDINATOR_WRONG_SECRET]"));
}

TEST(Coordinator, AnswersWrongCallsWithTheProblem) {
  Running coordinator(options_for(1));
  const struct {
    const char *method, *path, *body, *names;
    ErrorCode code = kBadRequest;
  } cases[] = {
      {"POST", "/v2/nonsense", "{}", "/v2/nonsense", kUnknownRoute},
      {"GET", "/v1/join", "", "version 1", kVersionDiffers},
      {"POST", "/v3/status", "", "version 3", kVersionDiffers},
      {"GET", "/v2/join", "", "/v2/join takes POST"},
      {"POST", "/v2/status", "{}", "/v2/status takes GET"},
      {"POST", "/v2/scale", "", "JSON"},
      {"POST", "/v2/scale", "{\"workers\":", "JSON"},
      {"POST", "/v2/scale", "[]", "object"},
      {"POST", "/v2/scale", "{}", "\"workers\""},
      {"POST", "/v2/scale", R"({"workers":0})", "from 1 to 4096"},
      {"POST", "/v2/scale", R"({"workers":1e99})", "\"workers\""},
      {"POST", "/v2/scale", R"({"workers":"3"})", "\"workers\""},
      {"POST", "/v2/control", R"({"kind":"dance"})", "\"kind\""},
      {"POST", "/v2/control", R"({"kind":"learning_rate"})", "\"value\""},
      {"POST", "/v2/control", R"({"kind":"learning_rate","value":-1})", "\"value\""},
      {"POST", "/v2/control", R"({"kind":"learning_rate","value":1e999})", "JSON"},
      {"POST", "/v2/control", R"({"kind":"batch_size","value":0})", "\"value\""},
      {"POST", "/v2/control", R"({"kind":"batch_size","value":2.5})", "\"value\""},
      {"POST", "/v2/lost", R"({"why":"x"})", "\"pid\""},
      {"POST", "/v2/lost", R"({"id":7,"why":"x"})", "id 7", kUnknownMember},
      {"POST", "/v2/join", R"({"address":"a","host":"h","pid":1,"incarnation":"x"})", "\"identity\""},
      {"POST", "/v2/heartbeat", R"({"id":-1})", "\"id\""},
      {"GET", "/v2/updates?id=0&known_view=0", "", "\"known_view\""},
  };
  for (const auto& one : cases) {
    EXPECT_THAT(error_of([&] { call(coordinator.url(), "sesame", one.method, one.path, one.body, kBound); }),
                AllOf(HasSubstr(one.names), HasSubstr("[" + std::string(one.code.text()) + "]")))
        << one.path << " " << one.body;
  }
  EXPECT_THAT(error_of([&] { coordinator.post("/v2/scale", std::string(5 << 20, ' ')); }),
              HasSubstr("the body is larger than"));
}

TEST(Coordinator, RefusesMoreWorkersThanTheRunMayHave) {
  CoordinatorOptions options = options_for(2);
  options.most_workers = 3;
  Running coordinator(options);
  EXPECT_THAT(error_of([&] { coordinator.post("/v2/scale", R"({"workers":4})"); }), HasSubstr("at most 3 workers"));
  EXPECT_EQ(coordinator.status()["wanted"], 2);
  EXPECT_EQ(json::parse(coordinator.post("/v2/scale", R"({"workers":3})")), json({{"workers", 3}, {"was", 2}}));
}

TEST(Coordinator, SendsRequestsToAllMembersUntilTheLeaderTakesThem) {
  Running coordinator(options_for(2));
  Address address;
  address.set(coordinator.url());
  const Workers workers = start(address, 2);
  ASSERT_TRUE(settle(workers));
  coordinator.post("/v2/control", R"({"kind":"learning_rate","value":0.5,"reason":"too fast"})");
  coordinator.post("/v2/control", R"({"kind":"checkpoint"})");
  for (const auto& worker : workers) {
    ASSERT_TRUE(wait_for([&] { return worker->requests().size() == 2; }));
    EXPECT_EQ(worker->requests()[0], (ControlRequest{1, "learning_rate", 0.5, "too fast"}));
    EXPECT_EQ(worker->requests()[1], (ControlRequest{2, "checkpoint", 0, ""}));
  }
  workers[0]->client->report([](MemberReport& report) { report.taken_requests = 1; });
  for (const auto& worker : workers) {
    ASSERT_TRUE(wait_for([&] { return worker->requests().size() == 1; }));
    EXPECT_EQ(worker->requests()[0].number, 2);
  }
  EXPECT_EQ(json::parse(coordinator.post("/v2/scale", R"({"workers":5})")), json({{"workers", 5}, {"was", 2}}));
  EXPECT_EQ(coordinator.status()["wanted"], 5);
  EXPECT_EQ(coordinator.status()["requests"].size(), 1u);
}

}  // namespace
}  // namespace sinew::cluster::testing
