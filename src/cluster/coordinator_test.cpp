// Tests a coordinator together with its members: they form a group, join later, are lost, leave and end.
#include "cluster/testing.h"

namespace sinew::cluster::testing {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

TEST(Coordinator, MembersFormAGroupWithOneView) {
  Running coordinator(options_for(3));
  Address address;
  address.set(coordinator.url());
  const Workers workers = start(address, 3);
  ASSERT_TRUE(settle(workers));
  const View view = *workers[0]->view();
  EXPECT_TRUE(view.fresh);
  EXPECT_EQ(view.leader(), workers[0]->id());
  EXPECT_EQ(view.find(workers[1]->id())->address, "127.0.0.1:" + std::to_string(workers[1]->pid));
  EXPECT_TRUE(wait_for([&] { return workers[2]->client->leased(kBound); }));
  const json status = coordinator.status();
  EXPECT_EQ(status["members"].size(), 3u);
  EXPECT_EQ(status["leader"], workers[0]->id().value);
  EXPECT_EQ(status["view"]["generation"], view.generation.value);
  EXPECT_EQ(status["members"][1]["pid"], workers[1]->pid);
  EXPECT_EQ(status["job"], "test");
}

TEST(Coordinator, ALaterWorkerJoinsAndComputes) {
  Running coordinator(options_for(1));
  Address address;
  address.set(coordinator.url());
  Workers workers = start(address, 1);
  ASSERT_TRUE(settle(workers));
  workers.push_back(std::make_unique<Worker>(address));
  Worker& joiner = *workers.back();
  ASSERT_TRUE(wait_for([&] { return joiner.view().has_value(); }));
  const View first = *joiner.view();
  ASSERT_NE(first.find(joiner.id()), nullptr);
  EXPECT_TRUE(first.find(joiner.id())->joining);
  EXPECT_EQ(first.find(joiner.id())->donor, workers[0]->id());
  EXPECT_FALSE(first.fresh);
  ASSERT_TRUE(settle(workers));
}

TEST(Coordinator, FencesAMemberThatTheSupervisorReportsAsDead) {
  Running coordinator(options_for(3));
  Address address;
  address.set(coordinator.url());
  Workers workers = start(address, 3);
  ASSERT_TRUE(settle(workers));
  const auto victim = std::move(workers[0]);  // the leader
  workers.erase(workers.begin());
  const json answer =
      json::parse(coordinator.post("/v2/lost", R"({"pid":)" + std::to_string(victim->pid) + R"(,"why":"killed"})"));
  EXPECT_EQ(answer["lost"], json::array({victim->id().value}));
  ASSERT_TRUE(settle(workers));
  EXPECT_THAT(workers[0]->view()->why, HasSubstr("member 1 lost: killed; its work moves to 2 and 3"));
  ASSERT_TRUE(wait_for([&] { return victim->fenced().has_value(); }));
  EXPECT_EQ(*victim->fenced(), "killed");
  EXPECT_FALSE(victim->client->leased(kBound));
  ASSERT_TRUE(wait_for([&] { return coordinator.status()["last_recovery"].contains("seconds"); }));
  EXPECT_THAT(error_of([&] { coordinator.post("/v2/lost", R"({"pid":4999999,"why":"x"})"); }),
              AllOf(HasSubstr("process 4999999"), HasSubstr("[COORDINATOR_UNKNOWN_MEMBER]")));
}

TEST(Coordinator, FencesAMemberThatMostOthersReport) {
  CoordinatorOptions options = options_for(3);
  options.cluster.report_seconds = kBound;  // one report is not enough
  Running coordinator(options);
  Address address;
  address.set(coordinator.url());
  Workers workers = start(address, 3);
  ASSERT_TRUE(settle(workers));
  const MemberId lost = workers[1]->id();
  for (const size_t i : {size_t{0}, size_t{2}}) {
    workers[i]->client->report([&](MemberReport& report) { report.lost.emplace_back(lost, "connection reset"); });
  }
  const auto victim = std::move(workers[1]);
  workers.erase(workers.begin() + 1);
  ASSERT_TRUE(settle(workers));
  ASSERT_TRUE(wait_for([&] { return victim->fenced().has_value(); }));
  EXPECT_THAT(*victim->fenced(), HasSubstr("connection reset (reported by 1 and 3)"));
}

TEST(Coordinator, FencesOneOfTwoMembersThatReportEachOther) {
  Running coordinator(options_for(2));
  Address address;
  address.set(coordinator.url());
  Workers workers = start(address, 2);
  ASSERT_TRUE(settle(workers));
  workers[0]->client->report([&](MemberReport& report) { report.lost.emplace_back(workers[1]->id(), "cable cut"); });
  workers[1]->client->report([&](MemberReport& report) { report.lost.emplace_back(workers[0]->id(), "cable cut"); });
  ASSERT_TRUE(wait_for([&] { return workers[0]->fenced() || workers[1]->fenced(); }));
  workers.erase(workers.begin() + (workers[0]->fenced() ? 0 : 1));
  ASSERT_TRUE(settle(workers));
  EXPECT_FALSE(workers[0]->fenced());
}

TEST(Coordinator, ALeavingMemberHandsItsWorkOverFirst) {
  Running coordinator(options_for(2));
  Address address;
  address.set(coordinator.url());
  Workers workers = start(address, 2);
  ASSERT_TRUE(settle(workers));
  const auto leaver = std::move(workers[0]);
  workers.erase(workers.begin());
  leaver->client->report([](MemberReport& report) { report.phase = Phase::leaving; });
  ASSERT_TRUE(wait_for([&] {
    const auto view = leaver->view();
    return view->find(leaver->id()) != nullptr && view->find(leaver->id())->share == 0;
  }));
  EXPECT_FALSE(leaver->fenced());
  leaver->act();
  ASSERT_TRUE(wait_for([&] { return leaver->fenced().has_value(); }));
  EXPECT_THAT(*leaver->fenced(), HasSubstr("others have its work"));
  ASSERT_TRUE(settle(workers));
}

TEST(Coordinator, ReportsTheEndToAllMembers) {
  Running coordinator(options_for(3));
  Address address;
  address.set(coordinator.url());
  const Workers workers = start(address, 3);
  ASSERT_TRUE(settle(workers));
  EXPECT_EQ(coordinator.over(), std::nullopt);
  workers[0]->client->report([](MemberReport& report) { report.finished = 3; });
  for (const auto& worker : workers) ASSERT_TRUE(wait_for([&] { return worker->finished() == 3; }));
  ASSERT_TRUE(wait_for([&] { return coordinator.over() == 3; }));
  EXPECT_THAT(error_of([&] { Worker late(address); }), HasSubstr("[COORDINATOR_RUN_OVER]"));
}

TEST(Coordinator, AClientSendsItsLastReportBeforeItEnds) {
  Running coordinator(options_for(1));
  Address address;
  address.set(coordinator.url());
  const Workers workers = start(address, 1);
  ASSERT_TRUE(settle(workers));
  workers[0]->client->report([](MemberReport& report) { report.finished = 0; });
  workers[0]->client.reset();
  EXPECT_EQ(coordinator.status()["finished"], 0);
}

}  // namespace
}  // namespace sinew::cluster::testing
