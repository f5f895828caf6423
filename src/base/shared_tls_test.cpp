#include "base/shared_tls.h"

#include <gtest/gtest.h>
#include <openssl/ssl.h>

#include <memory>
#include <string>

namespace sinew {
namespace {

using Context = std::unique_ptr<SSL_CTX, decltype(&SSL_CTX_free)>;

Context context_of(std::string_view secret, TlsPeer peer = TlsPeer::same_secret) {
  return {new_shared_tls(secret, peer), &SSL_CTX_free};
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

TEST(SharedTls, PeersWithTheSameSecretTalk) {
  const Context client = context_of("sesame"), server = context_of("sesame"),
                lenient = context_of("sesame", TlsPeer::anybody);
  for (SSL_CTX* one : {server.get(), lenient.get()}) {
    const Two two(client.get(), one);
    EXPECT_TRUE(two.talk());
    EXPECT_STREQ(SSL_get_version(two.client()), "TLSv1.3");
    EXPECT_FALSE(is_stranger(two.client()) || is_stranger(two.server()));
    EXPECT_EQ(SSL_session_reused(two.client()), 0);
  }
}

TEST(SharedTls, APeerWithAnotherSecretIsAStranger) {
  const Context client = context_of("sesame"), server = context_of("sesame!"),
                lenient = context_of("Sesame", TlsPeer::anybody);
  for (SSL_CTX* one : {server.get(), lenient.get()}) {
    const Two two(client.get(), one);
    EXPECT_FALSE(two.talk());
    EXPECT_TRUE(is_stranger(two.client()));
  }
}

TEST(SharedTls, AServerForTheSameSecretRefusesOtherClients) {
  const Context server = context_of("sesame");
  // this client verifies nothing and has no certificate
  const Context nobody(SSL_CTX_new(TLS_client_method()), &SSL_CTX_free);
  EXPECT_FALSE(Two(nobody.get(), server.get()).talk());
  const Context other = context_of("another");
  SSL_CTX_set_verify(other.get(), SSL_VERIFY_NONE, nullptr);  // this client verifies nothing and has another key
  const Two two(other.get(), server.get());
  EXPECT_FALSE(two.talk());
  EXPECT_TRUE(is_stranger(two.server()));
}

TEST(SharedTls, AServerForAnybodyServesClientsThatTrustIt) {
  const Context server = context_of("sesame", TlsPeer::anybody);
  const Context nobody(SSL_CTX_new(TLS_client_method()), &SSL_CTX_free);
  EXPECT_TRUE(Two(nobody.get(), server.get()).talk());
}

TEST(SharedTls, RefusesOlderVersions) {
  const Context server = context_of("sesame", TlsPeer::anybody);
  const Context old(SSL_CTX_new(TLS_client_method()), &SSL_CTX_free);
  SSL_CTX_set_max_proto_version(old.get(), TLS1_2_VERSION);
  EXPECT_FALSE(Two(old.get(), server.get()).talk());
}

}  // namespace
}  // namespace sinew
