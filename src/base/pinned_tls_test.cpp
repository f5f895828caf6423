#include "base/pinned_tls.h"

#include <gtest/gtest.h>
#include <openssl/evp.h>
#include <openssl/ssl.h>
#include <openssl/x509.h>

#include <memory>
#include <string>

namespace sinew {
namespace {

using Context = std::unique_ptr<SSL_CTX, decltype(&SSL_CTX_free)>;

Context server_of(std::string_view secret) {
  return {new_tls_server(KeyPair::of_secret(secret)), &SSL_CTX_free};
}

Context client_of(const std::optional<PublicKey>& server) {
  return {new_tls_client(server), &SSL_CTX_free};
}

PublicKey key_of(std::string_view secret) {
  return KeyPair::of_secret(secret).public_key();
}

// A TLS client and a TLS server, connected by a pair of memory buffers.
class Two {
 public:
  Two(SSL_CTX* client, SSL_CTX* server) : client_(SSL_new(client), &SSL_free), server_(SSL_new(server), &SSL_free) {
    BIO *one = nullptr, *other = nullptr;
    EXPECT_EQ(BIO_new_bio_pair(&one, 0, &other, 0), 1);
    SSL_set_bio(client_.get(), one, one);
    SSL_set_bio(server_.get(), other, other);
    SSL_set_connect_state(client_.get());
    SSL_set_accept_state(server_.get());
  }
  SSL* client() const { return client_.get(); }
  SSL* server() const { return server_.get(); }

  // Returns whether the handshake succeeds and each end receives a message of the other.
  bool talk() const {
    for (int round = 0; round < 10; ++round) {
      SSL_do_handshake(client());
      SSL_do_handshake(server());
    }
    return passes(client(), server(), "there") && passes(server(), client(), "and back");
  }

 private:
  static bool passes(SSL* from, SSL* to, const std::string& word) {
    std::string read(100, '\0');
    if (SSL_write(from, word.data(), static_cast<int>(word.size())) <= 0) return false;
    const int count = SSL_read(to, read.data(), static_cast<int>(read.size()));
    return count > 0 && read.substr(0, static_cast<size_t>(count)) == word;
  }

  std::unique_ptr<SSL, decltype(&SSL_free)> client_, server_;
};

TEST(PinnedTls, AClientTalksToTheServerWithTheKey) {
  const Context client = client_of(key_of("sesame")), server = server_of("sesame");
  const Two two(client.get(), server.get());
  EXPECT_TRUE(two.talk());
  EXPECT_STREQ(SSL_get_version(two.client()), "TLSv1.3");
  EXPECT_FALSE(is_stranger(two.client()) || is_stranger(two.server()));
  EXPECT_EQ(SSL_session_reused(two.client()), 0);
  EXPECT_EQ(tls_peer_key(two.client()), key_of("sesame"));
  EXPECT_EQ(tls_peer_key(two.server()), std::nullopt);
}

TEST(PinnedTls, AServerWithAnotherKeyIsAStranger) {
  const Context client = client_of(key_of("sesame")), server = server_of("Sesame");
  const Two two(client.get(), server.get());
  EXPECT_FALSE(two.talk());
  EXPECT_TRUE(is_stranger(two.client()));
}

TEST(PinnedTls, AClientThatAcceptsAnyKeyLearnsIt) {
  const Context client = client_of(std::nullopt), server = server_of("whoever");
  const Two two(client.get(), server.get());
  EXPECT_TRUE(two.talk());
  EXPECT_EQ(tls_peer_key(two.client()), key_of("whoever"));
}

TEST(PinnedTls, AKeyOfAnotherKindIsAStranger) {
  const Context server(SSL_CTX_new(TLS_server_method()), &SSL_CTX_free);
  const std::unique_ptr<EVP_PKEY, decltype(&EVP_PKEY_free)> key(EVP_EC_gen("P-256"), &EVP_PKEY_free);
  const std::unique_ptr<X509, decltype(&X509_free)> certificate(X509_new(), &X509_free);
  X509_gmtime_adj(X509_getm_notBefore(certificate.get()), -60);
  X509_gmtime_adj(X509_getm_notAfter(certificate.get()), 60);
  X509_set_pubkey(certificate.get(), key.get());
  ASSERT_GT(X509_sign(certificate.get(), key.get(), EVP_sha256()), 0);
  ASSERT_EQ(SSL_CTX_use_certificate(server.get(), certificate.get()), 1);
  ASSERT_EQ(SSL_CTX_use_PrivateKey(server.get(), key.get()), 1);
  for (const auto& expected : {std::optional(key_of("sesame")), std::optional<PublicKey>()}) {
    const Context client = client_of(expected);
    const Two two(client.get(), server.get());
    EXPECT_FALSE(two.talk());
    EXPECT_TRUE(is_stranger(two.client()));
  }
}

TEST(PinnedTls, AServerServesClientsThatVerifyNothing) {
  const Context server = server_of("sesame");
  const Context nobody(SSL_CTX_new(TLS_client_method()), &SSL_CTX_free);
  EXPECT_TRUE(Two(nobody.get(), server.get()).talk());
}

TEST(PinnedTls, RefusesOlderVersions) {
  const Context server = server_of("sesame");
  const Context old(SSL_CTX_new(TLS_client_method()), &SSL_CTX_free);
  SSL_CTX_set_max_proto_version(old.get(), TLS1_2_VERSION);
  EXPECT_FALSE(Two(old.get(), server.get()).talk());
}

}  // namespace
}  // namespace sinew
