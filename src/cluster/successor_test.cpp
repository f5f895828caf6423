// Tests what happens when a coordinator dies and another one (the successor) replaces it, and when members are silent.
#include "cluster/testing.h"

namespace sinew::cluster::testing {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

TEST(Coordinator, ASuccessorLearnsTheStateFromTheMembers) {
  Address address;
  auto first = std::make_unique<Running>(options_for(3));
  address.set(first->url());
  Workers workers = start(address, 3);
  ASSERT_TRUE(settle(workers));
  first->post("/v2/control", R"({"kind":"evaluate","reason":"curious"})");
  for (const auto& worker : workers) ASSERT_TRUE(wait_for([&] { return worker->requests().size() == 1; }));
  const View before = *workers[0]->view();
  first.reset();
  CoordinatorOptions options = options_for(3);
  options.at_least = Generation(5);
  Running second(options);
  address.set(second.url());
  ASSERT_TRUE(wait_for([&] { return second.status()["members"].size() == 3 && !second.status()["listening"]; }));
  EXPECT_EQ(second.status()["view"]["generation"], before.generation.value) << "nothing changed";
  EXPECT_EQ(second.status()["requests"].size(), 1u);
  for (const auto& worker : workers) {
    EXPECT_EQ(worker->view(), before);
    EXPECT_TRUE(wait_for([&] { return worker->client->leased(kBound); }));
  }
  second.post("/v2/lost", R"({"id":2,"why":"killed"})");
  ASSERT_TRUE(wait_for([&] { return workers[1]->fenced().has_value(); }));
  workers.erase(workers.begin() + 1);
  ASSERT_TRUE(settle(workers));
  EXPECT_GE(workers[0]->view()->generation.value, before.generation.value + 1000);
  workers.push_back(std::make_unique<Worker>(address));
  EXPECT_GE(workers.back()->id().value, 1000) << "the first coordinator may have given lower ids";
  ASSERT_TRUE(settle(workers));
}

// The client cannot determine the url: the process has no free descriptor, or coordinator.json cannot be read.
TEST(Coordinator, AClientWithoutAUrlTriesUntilPatienceEnds) {
  Address address;
  auto first = std::make_unique<Running>(options_for(1));
  address.set(first->url());
  std::atomic<bool> known = true;
  Worker worker(address, [&](ClientOptions& options) {
    options.patience_seconds = 1;
    options.url = [&] {
      if (!known) throw Error("TEST_ERROR", "too many open files", "");
      return address.get();
    };
  });
  known = false;
  first.reset();
  ASSERT_TRUE(wait_for([&] { return worker.fenced().has_value(); }));
  EXPECT_THAT(*worker.fenced(), HasSubstr("too many open files"));
}

TEST(Coordinator, ASuccessorFencesAMemberThatSendsNoHeartbeat) {
  Address address, other_address;
  auto first = std::make_unique<Running>(options_for(2));
  address.set(first->url());
  other_address.set(first->url());
  Workers workers;
  workers.push_back(std::make_unique<Worker>(address));
  workers.push_back(std::make_unique<Worker>(other_address));
  ASSERT_TRUE(settle(workers));
  first.reset();
  CoordinatorOptions options = options_for(2);
  options.first_id = MemberId(500);
  Running second(options);
  address.set(second.url());
  const auto deaf = std::move(workers[1]);
  workers.pop_back();
  ASSERT_TRUE(settle(workers));
  EXPECT_THAT(workers[0]->view()->why, HasSubstr("member 2 lost: has not spoken to the new coordinator"));
  // the fenced member finds the successor, which reports that the group continued without it
  other_address.set(second.url());
  ASSERT_TRUE(wait_for([&] { return deaf->fenced().has_value(); }));
  EXPECT_THAT(*deaf->fenced(), HasSubstr("the group went on without it"));
  EXPECT_FALSE(deaf->client->unled());
}

TEST(Coordinator, FencesASilentMember) {
  CoordinatorOptions options = options_for(2);
  options.cluster.silence_seconds = 5;
  Running coordinator(options);
  Address address;
  address.set(coordinator.url());
  Workers workers = start(address, 1);
  const json mute = json::parse(coordinator.post(
      "/v2/join", R"({"address":"a","host":"h","pid":1,"incarnation":"mute",)"
                  R"("identity":{"job":"job-digest","machine":"a CPU with libraries","probe":"probe-digest"}})"));
  ASSERT_TRUE(wait_for([&] { return workers[0]->view().has_value(); }));
  ASSERT_TRUE(settle(workers));
  EXPECT_THAT(workers[0]->view()->why, HasSubstr("silent for"));
  const json heartbeat = {{"id", mute["id"]},   {"incarnation", "mute"}, {"known_view", 0},
                          {"requests_key", ""}, {"acting_view", 0},      {"step", 0},
                          {"phase", "waiting"}, {"durable_step", -1},    {"speed", 0}};
  EXPECT_THAT(json::parse(coordinator.post("/v2/heartbeat", heartbeat.dump()))["fenced"].get<std::string>(),
              HasSubstr("silent for"));
}

TEST(Client, EndsWhenNoCoordinatorAnswers) {
  Address address;
  auto coordinator = std::make_unique<Running>(options_for(1));
  address.set(coordinator->url());
  Worker worker(address, [](ClientOptions& options) { options.patience_seconds = 5; });
  ASSERT_TRUE(wait_for([&] { return worker.view().has_value(); }));
  EXPECT_FALSE(worker.client->unled());
  coordinator.reset();
  ASSERT_TRUE(wait_for([&] { return worker.fenced().has_value(); }));
  EXPECT_THAT(*worker.fenced(), HasSubstr("no coordinator has answered"));
  EXPECT_FALSE(worker.client->leased(kBound));
  EXPECT_TRUE(wait_for([&] { return worker.client->unled(); }));
}

TEST(Client, JoiningFailsWithoutACoordinator) {
  Address address;
  address.set("http://127.0.0.1:1");
  EXPECT_THAT(error_of([&] { Worker lonely(address, [](ClientOptions& options) { options.patience_seconds = 0.3; }); }),
              AllOf(HasSubstr("127.0.0.1:1"), HasSubstr("[COORDINATOR_UNREACHABLE]")));
}

}  // namespace
}  // namespace sinew::cluster::testing
