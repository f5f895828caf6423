// Tests that neither the coordinator nor a member accepts a message that does not fit its checksum, because bits may
// change on the way.
#include "cluster/coordinator_connection.h"
#include "cluster/protocol.h"
#include "cluster/testing.h"

namespace sinew::cluster::testing {
namespace {

using ::testing::HasSubstr;

http::Request scale_call() {
  return request_with("sesame", "POST", "/v2/scale", R"({"workers":3})");
}

TEST(Sums, TheSumCoversMethodTargetTokenAndBody) {
  const http::Request sent = scale_call();
  EXPECT_TRUE(is_as_sent(sent));
  for (const auto& change : std::vector<std::function<void(http::Request&)>>{
           [](http::Request& call) { call.method = "PUT"; }, [](http::Request& call) { call.target = "/v2/scald"; },
           [](http::Request& call) { call.headers["authorization"] = "Bearer sesamE"; },
           [](http::Request& call) { call.body[11] = '9'; }}) {
    http::Request changed = sent;
    change(changed);
    EXPECT_FALSE(is_as_sent(changed));
  }
}

TEST(Sums, TheSumOfTheHeadCoversAllButTheBody) {
  const http::Request sent = scale_call();
  EXPECT_TRUE(head_is_as_sent(sent));
  http::Request changed = sent;
  changed.body[11] = '9';
  EXPECT_TRUE(head_is_as_sent(changed));
  changed.headers["authorization"] = "Bearer sesamE";
  EXPECT_FALSE(head_is_as_sent(changed));
  changed.headers.erase("authorization");
  EXPECT_FALSE(head_is_as_sent(changed));
  changed.headers.erase(kHeadSumHeader);
  EXPECT_TRUE(head_is_as_sent(changed)) << "a person's program may leave it out";
}

TEST(Sums, RefusesADamagedCall) {
  Running coordinator(options_for(1));
  http::Client client(coordinator.url());
  http::Request changed = scale_call();
  changed.body[11] = '9';
  const auto refused = client.send(changed, kBound);
  ASSERT_TRUE(refused);
  EXPECT_EQ(refused->status, 503);
  EXPECT_THAT(refused->body, HasSubstr("COORDINATOR_CALL_DAMAGED"));
  EXPECT_EQ(coordinator.status()["wanted"], 1);
  http::Request from_a_person = scale_call();
  from_a_person.headers.erase(kSumHeader);
  from_a_person.headers.erase(kHeadSumHeader);
  EXPECT_EQ(client.send(from_a_person, kBound)->status, 200);
  EXPECT_EQ(coordinator.status()["wanted"], 3);
}

// The answers come from a server that is no coordinator, or change on their way.
TEST(Sums, AnAnswerWithoutItsSumIsAFailure) {
  std::string sum;
  const http::Server server({}, [&](const http::Request& request, const http::Answer& answer) {
    http::Response response;
    response.body = R"({"id":3})";
    if (request.path == "/right") sum = sum_of(response);
    if (!sum.empty()) response.headers[kSumHeader] = sum;
    if (request.path != "/old") response.headers[kVersionHeader] = std::to_string(kProtocolVersion);
    if (request.path == "/changed") response.body = R"({"id":7})";
    answer(response);
  });
  const auto ask = [&](const std::string& path) { return call(server.url(), "sesame", "GET", path, "", kBound); };
  EXPECT_THAT(error_of([&] { ask("/without"); }), HasSubstr("[COORDINATOR_ANSWER_DAMAGED]"));
  EXPECT_EQ(ask("/right"), R"({"id":3})");
  EXPECT_THAT(error_of([&] { ask("/old"); }), HasSubstr("[COORDINATOR_VERSION_DIFFERS]"));
  EXPECT_THAT(error_of([&] { ask("/changed"); }), HasSubstr("[COORDINATOR_ANSWER_DAMAGED]"));
}

}  // namespace
}  // namespace sinew::cluster::testing
