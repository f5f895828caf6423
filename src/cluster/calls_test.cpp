// Calls of people and of workers that may not join: what is refused, and in which words.
#include <iostream>

#include "cluster/testing.h"

namespace sinew::cluster::testing {
namespace {

using ::testing::HasSubstr;

TEST(Coordinator, AWorkerThatWouldComputeOtherNumbersIsRefusedByName) {
  Running coordinator(options_for(1));
  Place place;
  place.set(coordinator.url());
  const Workers workers = start(place, 1);
  ASSERT_TRUE(settle(workers));
  const auto refused = [&](const std::function<void(Identity&)>& change) {
    const std::string text =
        error_of([&] { Worker other(place, [&](ClientOptions& options) { change(options.identity); }); });
    std::cout << text << "\n";
    return text;
  };
  EXPECT_THAT(refused([](Identity& identity) { identity.job = "xyz"; }),
              HasSubstr("refused: another job, model file or data: its digest is xyz, that of member 1 is job-digest"));
  EXPECT_THAT(refused([](Identity& identity) { identity.machine = "another CPU"; }),
              HasSubstr("it has another CPU, member 1 has a CPU with libraries"));
  EXPECT_THAT(refused([](Identity& identity) { identity.probe = "0"; }), HasSubstr("it computes other numbers"));
  EXPECT_EQ(coordinator.status()["members"].size(), 1u);
}

TEST(Coordinator, WithoutTheTokenNothingIsTold) {
  Running coordinator(options_for(1));
  EXPECT_THAT(error_of([&] { call(coordinator.url(), "guess", "GET", "/v2/status", "", kBound); }),
              HasSubstr("does not carry this run's token"));
  EXPECT_THAT(error_of([&] { call(coordinator.url(), "", "POST", "/v2/scale", R"({"workers":9})", kBound); }),
              HasSubstr("token"));
  EXPECT_EQ(coordinator.status()["wanted"], 1);
  EXPECT_EQ(call(coordinator.url(), "", "GET", "/healthz", "", kBound), R"({"ok":true})");
  Place place;
  place.set(coordinator.url());
  EXPECT_THAT(error_of([&] { Worker thief(place, [](ClientOptions& options) { options.secret = "guess"; }); }),
              HasSubstr("token"));
}

TEST(Coordinator, CallsThatAreWrongSaySo) {
  Running coordinator(options_for(1));
  const struct {
    const char *method, *path, *body, *error;
  } cases[] = {
      {"POST", "/v2/nonsense", "{}", "there is no /v2/nonsense"},
      {"GET", "/v2/join", "", "/v2/join takes POST"},
      {"POST", "/v2/status", "{}", "/v2/status takes GET"},
      {"POST", "/v2/scale", "", "the body is not JSON"},
      {"POST", "/v2/scale", "{\"workers\":", "the body is not JSON"},
      {"POST", "/v2/scale", "[]", "a JSON object is expected"},
      {"POST", "/v2/scale", "{}", "\"workers\" is missing: a whole number, from 1 to 4096"},
      {"POST", "/v2/scale", R"({"workers":0})", "\"workers\" must be a whole number, from 1 to 4096"},
      {"POST", "/v2/scale", R"({"workers":1e99})", "\"workers\" must be"},
      {"POST", "/v2/scale", R"({"workers":"3"})", "\"workers\" must be"},
      {"POST", "/v2/control", R"({"kind":"dance"})", "\"kind\" is none of stop, checkpoint, evaluate"},
      {"POST", "/v2/control", R"({"kind":"learning_rate"})", "must be a factor above 0"},
      {"POST", "/v2/control", R"({"kind":"learning_rate","value":-1})", "must be a factor above 0"},
      {"POST", "/v2/control", R"({"kind":"learning_rate","value":1e999})", "the body is not JSON"},
      {"POST", "/v2/control", R"({"kind":"batch_size","value":0})", "must be a whole number, 1 or more"},
      {"POST", "/v2/control", R"({"kind":"batch_size","value":2.5})", "must be a whole number, 1 or more"},
      {"POST", "/v2/lost", R"({"why":"x"})", "\"id\" or \"pid\" must say who is lost"},
      {"POST", "/v2/lost", R"({"id":7,"why":"x"})", "no member here has id 7"},
      {"POST", "/v2/join", R"({"address":"a","host":"h","pid":1,"incarnation":"x"})", "\"identity\" is missing"},
      {"POST", "/v2/heartbeat", R"({"id":-1})", "\"id\" must be a whole number, 1 or more"},
      {"GET", "/v2/updates?id=0&known_view=0", "", "\"id\" and \"known_view\" must be whole numbers"},
  };
  for (const auto& one : cases) {
    EXPECT_THAT(error_of([&] { call(coordinator.url(), "sesame", one.method, one.path, one.body, kBound); }),
                HasSubstr(one.error))
        << one.path << " " << one.body;
  }
  EXPECT_THAT(error_of([&] { coordinator.post("/v2/scale", std::string(5 << 20, ' ')); }),
              HasSubstr("the body is larger than"));
}

TEST(Coordinator, RequestsReachEveryoneUntilTheLeadTookThem) {
  Running coordinator(options_for(2));
  Place place;
  place.set(coordinator.url());
  const Workers workers = start(place, 2);
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
