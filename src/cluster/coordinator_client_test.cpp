// Tests when a user's command repeats a call to a coordinator, and when it does not.
#include "cluster/coordinator_client.h"

#include <gtest/gtest.h>
#include <sys/resource.h>

#include <atomic>
#include <cstdlib>
#include <filesystem>
#include <memory>

#include "base/expected_error.h"
#include "cluster/coordinator_connection.h"
#include "cluster/coordinator_state.h"
#include "cluster/protocol.h"
#include "cluster/testing.h"

namespace sinew::cluster::testing {
namespace {

class Calls : public ::testing::Test {
 protected:
  Calls() : run_("/tmp/sinew-calls-XXXXXX") { EXPECT_NE(::mkdtemp(run_.data()), nullptr); }
  ~Calls() override { std::filesystem::remove_all(run_); }

  // Starts a coordinator that answers every call like this. It counts the calls.
  CoordinatorInfo start(const Reply& reply, bool answer_is_damaged = false) {
    server_ = std::make_unique<http::Server>(
        http::ServerOptions(), [this, reply, answer_is_damaged](const http::Request&, const http::Answer& answer) {
          ++calls_;
          http::Response response;
          response.status = reply.status;
          response.body = reply.body;
          response.headers[kVersionHeader] = std::to_string(kProtocolVersion);
          response.headers[kSumHeader] = answer_is_damaged ? "0" : sum_of(response);
          answer(std::move(response));
        });
    CoordinatorInfo info;
    info.url = server_->url();
    info.secret = "sesame";
    write_coordinator_info(run_, info);
    return info;
  }
  std::string control(const CoordinatorInfo& info) const {
    return code_of([&] { request_control(info, run_, "checkpoint", 0, ""); });
  }

  std::string run_;
  std::atomic<int> calls_ = 0;
  std::unique_ptr<http::Server> server_;
};

TEST_F(Calls, ARefusalIsFinal) {
  for (const auto& [status, code] : {std::pair(401, kWrongSecret), std::pair(400, kBadRequest),
                                     std::pair(409, kRunOver), std::pair(429, kTooMany)}) {
    const CoordinatorInfo info = start(refuse(status, code, "no", ""));
    calls_ = 0;
    EXPECT_EQ(control(info), code.text());
    EXPECT_EQ(code_of([&] { request_scale(info, run_, 2); }), code.text());
    EXPECT_EQ(code_of([&] { fetch_status(info, run_); }), code.text());
    EXPECT_EQ(calls_, 3) << code.text();
  }
}

TEST_F(Calls, ARequestWhoseAnswerIsLostIsNotMadeTwice) {
  const CoordinatorInfo info = start({200, "{}"}, true);
  EXPECT_EQ(control(info), kAnswerDamaged.text());
  EXPECT_EQ(calls_, 1);
  // may be repeated: the wanted number of workers is then still 2
  EXPECT_EQ(code_of([&] { request_scale(info, run_, 2); }), kAnswerDamaged.text());
  EXPECT_EQ(calls_, 3);
  EXPECT_EQ(code_of([&] { fetch_status(info, run_); }), kAnswerDamaged.text());
  EXPECT_EQ(calls_, 5);
}

TEST_F(Calls, ACallThatDidNotArriveIsMadeAgain) {
  CoordinatorInfo dead = start({200, "{}"});
  server_.reset();
  start({200, "{}"});
  EXPECT_EQ(control(dead), "");
  EXPECT_EQ(calls_, 1);
  const CoordinatorInfo listening = start(refuse(503, kNotReady, "not yet", ""));
  calls_ = 0;
  EXPECT_EQ(control(listening), kNotReady.text());
  EXPECT_EQ(calls_, 2);
}

// The coordinator before may still answer when another one has taken over.
TEST_F(Calls, ACallToASupersededCoordinatorGoesToTheOneThatLeads) {
  const CoordinatorInfo before = start(refuse(503, kSuperseded, "another coordinator leads the run now", ""));
  const auto still_there = std::move(server_);
  EXPECT_EQ(control(before), kSuperseded.text());
  EXPECT_EQ(calls_, 2);
  start({200, "{}"});
  calls_ = 0;
  EXPECT_EQ(control(before), "");
  EXPECT_EQ(calls_, 2);
}

TEST_F(Calls, ARevocationNamesItsMembersOrSaysThatItDoesNotKnowThem) {
  const std::string token = "0123456789abcdef";
  for (const char* answer : {"", "{}", "[]", "yes", R"({"members":null})", R"({"members":3})", R"({"members":{"3":1}})",
                             R"({"members":[3,"4"]})", R"({"members":[3,4.5]})"}) {
    const CoordinatorInfo info = start({200, answer});
    EXPECT_EQ(code_of([&] { request_revocation(info, run_, token); }), kAnswerDamaged.text()) << answer;
  }
  const CoordinatorInfo info = start({200, R"({"token":"0123456789abcdef","members":[3,7]})"});
  EXPECT_EQ(request_revocation(info, run_, token), (std::vector<int64_t>{3, 7}));
  EXPECT_TRUE(request_revocation(start({200, R"({"members":[]})"}), run_, token).empty());
}

// The supervisor asks for the status again and again. It must survive that no descriptor is free for a while.
TEST(CoordinatorClient, ACallWithoutAFreeDescriptorIsNotAnswered) {
  Running coordinator(options_for(1));
  const CoordinatorClient client(coordinator.url(), "sesame", kBound);
  ASSERT_TRUE(client.status());
  rlimit before{};
  ::getrlimit(RLIMIT_NOFILE, &before);
  const rlimit none{0, before.rlim_max};
  ::setrlimit(RLIMIT_NOFILE, &none);
  const bool answered = client.status().has_value();
  const std::string code = code_of([&] { call(coordinator.url(), "sesame", "GET", "/v2/status", "", kBound); });
  ::setrlimit(RLIMIT_NOFILE, &before);
  EXPECT_FALSE(answered);
  EXPECT_EQ(code, "LIMIT_TOO_LOW");
  EXPECT_TRUE(client.status());
}

}  // namespace
}  // namespace sinew::cluster::testing
