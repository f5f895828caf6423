#include "base/key_pair.h"

#include <gtest/gtest.h>

#include <string>

#include "base/hex.h"

namespace sinew {
namespace {

TEST(KeyPair, ASecretGivesOneKeyAndAnotherSecretAnother) {
  const KeyPair one = KeyPair::of_secret("sesame"), again = KeyPair::of_secret("sesame");
  EXPECT_EQ(one.public_key(), again.public_key());
  EXPECT_EQ(one.sign("x"), again.sign("x"));
  EXPECT_NE(one.public_key(), KeyPair::of_secret("sesame!").public_key());
  EXPECT_NE(KeyPair::random().public_key(), KeyPair::random().public_key());
}

TEST(KeyPair, ASignatureHoldsForItsKeyAndTextAlone) {
  const KeyPair key = KeyPair::random();
  const Signature signature = key.sign("a message");
  EXPECT_TRUE(is_signed_by(key.public_key(), "a message", signature));
  EXPECT_FALSE(is_signed_by(key.public_key(), "a massage", signature));
  EXPECT_FALSE(is_signed_by(KeyPair::random().public_key(), "a message", signature));
  for (const size_t place : {size_t{0}, size_t{31}, size_t{32}, size_t{63}}) {
    Signature other = signature;
    other[place] ^= 1;
    EXPECT_FALSE(is_signed_by(key.public_key(), "a message", other)) << place;
  }
  EXPECT_FALSE(is_signed_by(PublicKey{}, "a message", Signature{}));
}

TEST(KeyPair, KeysAndSignaturesAreWrittenAsHexDigits) {
  const KeyPair key = KeyPair::random();
  EXPECT_EQ(public_key_of_hex(hex_of(key.public_key())), key.public_key());
  EXPECT_EQ(signature_of_hex(hex_of(key.sign("x"))), key.sign("x"));
  for (const std::string& text : {std::string(), std::string(63, '0'), std::string(65, '0'), std::string(64, 'g')}) {
    EXPECT_EQ(public_key_of_hex(text), std::nullopt) << text;
  }
}

TEST(Certificate, HoldsForOneMemberOneKeyAndOneRun) {
  const KeyPair run = KeyPair::of_secret("sesame"), other_run = KeyPair::of_secret("another");
  const PublicKey key = KeyPair::random().public_key(), other_key = KeyPair::random().public_key();
  const Signature certificate = certify(run, MemberId(7), key);
  EXPECT_TRUE(is_certified(run.public_key(), MemberId(7), key, certificate));
  EXPECT_FALSE(is_certified(run.public_key(), MemberId(8), key, certificate));
  EXPECT_FALSE(is_certified(run.public_key(), MemberId(7 + (int64_t{1} << 40)), key, certificate));
  EXPECT_FALSE(is_certified(run.public_key(), MemberId(7), other_key, certificate));
  EXPECT_FALSE(is_certified(other_run.public_key(), MemberId(7), key, certificate));
}

TEST(Certificate, WhoKnowsTheSecretCertifiesItself) {
  const MemberCredentials mine = self_certified("sesame");
  EXPECT_TRUE(is_certified(KeyPair::of_secret("sesame").public_key(), MemberId(3), mine.key.public_key(),
                           mine.certificate(MemberId(3))));
}

}  // namespace
}  // namespace sinew
