#include "cluster/join_token.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "base/faulty_disk.h"
#include "cluster/coordinator_info.h"
#include "cluster/protocol.h"

namespace sinew::cluster {
namespace {

constexpr int64_t kEnd = 1'800'000'000;

TEST(JoinToken, HasWhatItWasMadeWith) {
  const std::string text = new_join_token("sesame", kEnd);
  const auto token = genuine_join_token(text, "sesame");
  ASSERT_TRUE(token);
  EXPECT_TRUE(is_token_id(token->id));
  EXPECT_EQ(token->expires, kEnd);
  EXPECT_EQ(token->coordinator, coordinator_key("sesame"));
  EXPECT_EQ(coordinator_key(text), coordinator_key("sesame"));
  EXPECT_NE(join_token_of(new_join_token("sesame", kEnd))->id, token->id);
  EXPECT_EQ(text.find("sesame"), std::string::npos);
  EXPECT_EQ(id_of_token(text), token->id);
  EXPECT_EQ(id_of_token(token->id), token->id);
  EXPECT_EQ(id_of_token("no token"), "");
  EXPECT_EQ(id_in_run(text, "sesame"), token->id);
  EXPECT_EQ(id_in_run(token->id, "sesame"), token->id);
  EXPECT_EQ(id_in_run(text, "another"), "");
  EXPECT_EQ(id_in_run("no token", "sesame"), "");
}

TEST(JoinToken, IsGenuineOnlyUnchangedAndInItsRun) {
  const std::string text = new_join_token("sesame", kEnd);
  EXPECT_FALSE(genuine_join_token(text, "another"));
  EXPECT_FALSE(genuine_join_token(text, ""));
  for (size_t i = 0; i < text.size(); ++i) {
    std::string other = text;
    other[i] = other[i] == '1' ? '2' : '1';  // a valid character of every part
    EXPECT_FALSE(genuine_join_token(other, "sesame")) << i;
    EXPECT_FALSE(genuine_join_token(text.substr(0, i), "sesame")) << i;
  }
  std::string later = text;
  later.replace(later.find(std::to_string(kEnd)), std::to_string(kEnd).size(), std::to_string(kEnd + 1));
  EXPECT_TRUE(join_token_of(later));
  EXPECT_FALSE(genuine_join_token(later, "sesame"));
  EXPECT_FALSE(genuine_join_token(text + "0", "sesame"));
  EXPECT_FALSE(genuine_join_token(text + " ", "sesame"));
}

TEST(JoinToken, OtherTextsAreNoTokens) {
  EXPECT_FALSE(join_token_of(""));
  EXPECT_FALSE(join_token_of(new_secret()));
  EXPECT_FALSE(join_token_of("...."));
  const std::string text = new_join_token("sesame", kEnd);
  std::string other = text;
  EXPECT_FALSE(join_token_of(other.replace(11, 1, "2"))) << "another version";
  other = text;
  EXPECT_FALSE(join_token_of(other.replace(other.find(std::to_string(kEnd)), 10, "99999999999999999999")));
  other = text;
  EXPECT_FALSE(join_token_of(other.replace(other.find(std::to_string(kEnd)), 10, "-1")));
}

TEST(JoinToken, HasTroubleAfterItsEndAndOnceItIsRevoked) {
  const auto token = join_token_of(new_join_token("sesame", kEnd));
  ASSERT_TRUE(token);
  EXPECT_FALSE(trouble_with(*token, kEnd - 1, {}));
  EXPECT_FALSE(trouble_with(*token, kEnd - 1, {"0123456789abcdef"}));
  const auto expired = trouble_with(*token, kEnd, {});
  ASSERT_TRUE(expired);
  EXPECT_EQ(expired->code, kTokenExpired);
  EXPECT_NE(expired->what.find(token->id + " expired at 2027-01-15T08:00:00"), std::string::npos) << expired->what;
  const auto revoked = trouble_with(*token, kEnd - 1, {token->id});
  ASSERT_TRUE(revoked);
  EXPECT_EQ(revoked->code, kTokenRevoked);
}

TEST(RevokedTokens, AreRememberedByTheRunDirectoryAfterACrash) {
  FaultyDisk disk;
  disk.make_directories("run");
  EXPECT_TRUE(revoked_tokens(disk, "run").empty());
  record_revocation(disk, "run", "0123456789abcdef", 0);
  record_revocation(disk, "run", "fedcba9876543210", 0);
  record_revocation(disk, "run", "fedcba9876543210", 1);
  disk.crash(std::nullopt, true);
  EXPECT_EQ(revoked_tokens(disk, "run"), (std::set<std::string>{"0123456789abcdef", "fedcba9876543210"}));
  disk.create("run/revoked/.fedcba9876543211.PID-7.tmp")->close();
  EXPECT_EQ(revoked_tokens(disk, "run").size(), 2U);
}

}  // namespace
}  // namespace sinew::cluster
