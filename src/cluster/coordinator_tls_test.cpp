// Tests a coordinator that serves HTTPS, together with its members.
#include "cluster/testing.h"

namespace sinew::cluster::testing {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::StartsWith;

CoordinatorOptions with_tls(int64_t wanted) {
  CoordinatorOptions options = options_for(wanted);
  options.tls = true;
  return options;
}

TEST(CoordinatorTls, MembersFormAGroupAndContinueWithASuccessor) {
  auto coordinator = std::make_unique<Running>(with_tls(3));
  EXPECT_THAT(coordinator->url(), StartsWith("https://127.0.0.1:"));
  Address address;
  address.set(coordinator->url());
  const Workers workers = start(address, 3);
  ASSERT_TRUE(settle(workers));
  const Generation before = workers[0]->view()->generation;
  EXPECT_EQ(coordinator->status()["members"].size(), 3u);
  coordinator.reset();
  CoordinatorOptions next = with_tls(3);
  next.at_least = Generation(1'000'000);
  next.first_id = MemberId(1'000'000);
  coordinator = std::make_unique<Running>(next);
  address.set(coordinator->url());
  ASSERT_TRUE(
      wait_for([&] { return coordinator->status()["members"].size() == 3 && !coordinator->status()["listening"]; }));
  EXPECT_EQ(coordinator->status()["view"]["generation"], before.value);
}

TEST(CoordinatorTls, AClientWithAnotherSecretDoesNotTrustTheServer) {
  Running coordinator(with_tls(1));
  EXPECT_THAT(error_of([&] { call(coordinator.url(), "guess", "GET", "/v2/status", "", kBound); }),
              AllOf(HasSubstr("another key than this client trusts"), HasSubstr("[COORDINATOR_UNREACHABLE]")));
  Address address;
  address.set(coordinator.url());
  EXPECT_THAT(error_of([&] {
                Worker stranger(address, [](ClientOptions& options) {
                  options.secret = "guess";
                  options.patience_seconds = 0.3;
                });
              }),
              HasSubstr("another key than this client trusts"));
  EXPECT_TRUE(coordinator.status()["members"].empty());
}

TEST(CoordinatorTls, ReportsThatOnlyOneSideUsesTls) {
  Running with(with_tls(1)), without(options_for(1));
  const std::string in_clear = "http://" + with.url().substr(8), wants_tls = "https://" + without.url().substr(7);
  EXPECT_THAT(error_of([&] { call(in_clear, "sesame", "GET", "/v2/status", "", kBound); }),
              HasSubstr("this server uses TLS"));
  EXPECT_THAT(error_of([&] { call(wants_tls, "sesame", "GET", "/v2/status", "", kBound); }),
              HasSubstr("does not use TLS"));
  EXPECT_EQ(with.status()["wanted"], 1);
}

}  // namespace
}  // namespace sinew::cluster::testing
