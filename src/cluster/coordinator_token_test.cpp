// Tests workers that join with a token, over HTTP: what the token lets them do, and how they are locked out.
#include <cmath>

#include "cluster/protocol.h"
#include "cluster/testing.h"

namespace sinew::cluster::testing {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

std::string token_for(double seconds, const std::string& secret = "sesame") {
  return new_join_token(secret, static_cast<int64_t>(std::floor(system_clock().wall_seconds() + seconds)));
}

std::unique_ptr<Worker> worker_with(Address& address, const std::string& token) {
  return std::make_unique<Worker>(address, [&](ClientOptions& options) { options.secret = token; });
}

void a_token_lets_a_worker_in_and_is_revoked(bool tls) {
  CoordinatorOptions options = options_for(2);
  options.tls = tls;
  Running coordinator(options);
  Address address;
  address.set(coordinator.url());
  Workers workers = start(address, 2);
  ASSERT_TRUE(settle(workers));
  const std::string token = token_for(3600), id = id_of_token(token), other = token_for(3600);
  workers.push_back(worker_with(address, token));
  workers.push_back(worker_with(address, other));
  ASSERT_TRUE(settle(workers));
  EXPECT_EQ(coordinator.status()["members"][2]["token"], id);
  EXPECT_FALSE(coordinator.status()["members"][0].contains("token"));
  const json done = json::parse(coordinator.post("/v2/revoke", json{{"token", id}}.dump()));
  EXPECT_EQ(done["members"], json::array({workers[2]->id().value}));
  const auto victim = std::move(workers[2]);
  workers.erase(workers.begin() + 2);
  ASSERT_TRUE(settle(workers));  // the worker with the other token stays
  ASSERT_TRUE(wait_for([&] { return victim->fenced().has_value(); }));
  EXPECT_THAT(*victim->fenced(), HasSubstr("was revoked"));
  EXPECT_FALSE(victim->client->leased(kBound));
  EXPECT_THROW(worker_with(address, token), UsageError);
  EXPECT_THAT(error_of([&] { worker_with(address, token); }), HasSubstr("[COORDINATOR_TOKEN_REVOKED]"));
}

TEST(CoordinatorToken, LetsAWorkerInUntilItIsRevoked) {
  a_token_lets_a_worker_in_and_is_revoked(false);
}

TEST(CoordinatorToken, LetsAWorkerInUntilItIsRevokedOverTls) {
  a_token_lets_a_worker_in_and_is_revoked(true);
}

TEST(CoordinatorToken, AllowsNothingButAMembersCalls) {
  Running coordinator(options_for(1));
  const std::string token = token_for(3600);
  const auto with = [&](const char* method, const char* path, const char* body) {
    return error_of([&] { call(coordinator.url(), token, method, path, body, kBound); });
  };
  EXPECT_THAT(with("POST", "/v2/scale", R"({"workers":9})"), HasSubstr("[COORDINATOR_NOT_ALLOWED]"));
  EXPECT_THAT(with("POST", "/v2/control", R"({"kind":"stop"})"), HasSubstr("[COORDINATOR_NOT_ALLOWED]"));
  EXPECT_THAT(with("POST", "/v2/lost", R"({"id":1,"why":"x"})"), HasSubstr("[COORDINATOR_NOT_ALLOWED]"));
  EXPECT_THAT(with("POST", "/v2/revoke", R"({"token":"0123456789abcdef"})"), HasSubstr("[COORDINATOR_NOT_ALLOWED]"));
  EXPECT_EQ(json::parse(call(coordinator.url(), token, "GET", "/v2/status", "", kBound))["wanted"], 1);
}

TEST(CoordinatorToken, IsRefusedAfterItsEndAndWithAnotherCode) {
  Running coordinator(options_for(1));
  Address address;
  address.set(coordinator.url());
  const std::string expired = token_for(-10);
  EXPECT_THROW(worker_with(address, expired), UsageError);
  EXPECT_THAT(error_of([&] { worker_with(address, expired); }),
              AllOf(HasSubstr("expired at"), HasSubstr("[COORDINATOR_TOKEN_EXPIRED]")));
  EXPECT_THAT(error_of([&] { call(coordinator.url(), expired, "GET", "/v2/status", "", kBound); }),
              HasSubstr("[COORDINATOR_TOKEN_EXPIRED]"));
  EXPECT_THAT(error_of([&] { worker_with(address, token_for(3600, "another run")); }),
              HasSubstr("[COORDINATOR_WRONG_SECRET]"));
  EXPECT_TRUE(coordinator.status()["members"].empty());
}

TEST(CoordinatorToken, IsNotSentToAServerWithAnotherKey) {
  CoordinatorOptions options = options_for(1);
  options.secret = "another run";
  options.tls = true;
  Running elsewhere(options);
  EXPECT_THAT(error_of([&] { call(elsewhere.url(), token_for(3600), "GET", "/v2/status", "", kBound); }),
              HasSubstr("another key than this client trusts"));
}

}  // namespace
}  // namespace sinew::cluster::testing
