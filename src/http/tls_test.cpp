#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/x509v3.h>

#include <cstdio>
#include <filesystem>
#include <memory>
#include <thread>
#include <vector>

#include "base/random.h"
#include "http/held_answers.h"
#include "http/raw_socket.h"

namespace sinew::http {
namespace {

using Kind = Failure::Kind;
namespace fs = std::filesystem;

// A self-signed certificate, as two PEM files.
class Certificate {
 public:
  explicit Certificate(const std::string& names, long valid_seconds = 3600) {
    std::string name = (fs::temp_directory_path() / "sinew-tls-XXXXXX").string();
    folder_ = ::mkdtemp(name.data());
    EVP_PKEY* key = ::EVP_EC_gen("P-256");
    X509* x509 = ::X509_new();
    ::X509_set_version(x509, X509_VERSION_3);
    ::ASN1_INTEGER_set(::X509_get_serialNumber(x509), 1);
    ::X509_gmtime_adj(::X509_getm_notBefore(x509), -24 * 3600);
    ::X509_gmtime_adj(::X509_getm_notAfter(x509), valid_seconds);
    ::X509_set_pubkey(x509, key);
    X509_NAME* subject = ::X509_get_subject_name(x509);
    const auto* common = reinterpret_cast<const unsigned char*>("sinew test");
    ::X509_NAME_add_entry_by_txt(subject, "CN", MBSTRING_ASC, common, -1, -1, 0);
    ::X509_set_issuer_name(x509, subject);
    X509_EXTENSION* extension = ::X509V3_EXT_conf_nid(nullptr, nullptr, NID_subject_alt_name, names.c_str());
    ::X509_add_ext(x509, extension, -1);
    ::X509_EXTENSION_free(extension);
    EXPECT_GT(::X509_sign(x509, key, ::EVP_sha256()), 0);
    FILE* file = std::fopen(this->certificate().c_str(), "w");
    EXPECT_EQ(::PEM_write_X509(file, x509), 1);
    std::fclose(file);
    file = std::fopen(this->key().c_str(), "w");
    EXPECT_EQ(::PEM_write_PrivateKey(file, key, nullptr, nullptr, 0, nullptr, nullptr), 1);
    std::fclose(file);
    ::X509_free(x509);
    ::EVP_PKEY_free(key);
  }
  Certificate(const Certificate&) = delete;
  ~Certificate() { fs::remove_all(folder_); }
  std::string certificate() const { return folder_ + "/certificate.pem"; }
  std::string key() const { return folder_ + "/key.pem"; }

  ServerOptions server() const {
    ServerOptions options;
    options.certificate = certificate();
    options.key = key();
    options.max_body_bytes = 8 << 20;
    options.read_seconds = kPatience;
    return options;
  }
  ClientOptions client() const {
    ClientOptions options;
    options.certificate_authority = certificate();
    return options;
  }

 private:
  std::string folder_;
};

const char* const kHere = "IP:127.0.0.1,DNS:localhost";

Request request_for(const std::string& target, std::string body = "") {
  Request request;
  request.method = "POST";
  request.target = target;
  request.body = std::move(body);
  return request;
}

TEST(Tls, ServesRequestsAsWithoutTls) {
  const Certificate certificate(kHere);
  HeldAnswers answers;
  auto server = std::make_unique<Server>(certificate.server(), answers.handler());
  ServerOptions again = certificate.server();
  again.port = server->port();
  EXPECT_TRUE(server->url().starts_with("https://127.0.0.1:"));
  for (const std::string& url : {server->url(), "https://localhost:" + std::to_string(server->port())}) {
    Client client(url, certificate.client());
    for (const size_t size : {0, 1, 100'000, 8 << 20, 5}) {
      const std::string body(size, 'x');
      const auto response = client.send(request_for("/", body), kPatience);
      ASSERT_TRUE(response) << response.error().what;
      ASSERT_TRUE(response->body == "POST / " + body);
    }
    server.reset();
    server = std::make_unique<Server>(again, answers.handler());
    const auto response = client.send(request_for("/after"), kPatience);
    ASSERT_TRUE(response) << response.error().what;
  }
}

TEST(Tls, AnswersLongPollsFromAnotherThread) {
  const Certificate certificate(kHere);
  HeldAnswers answers;
  ServerOptions options = certificate.server();
  options.threads = 2;
  Server server(options, answers.handler());
  constexpr size_t kClients = 30;
  std::vector<std::thread> threads;
  for (size_t i = 0; i < kClients; ++i) {
    threads.emplace_back([&, i] {
      Client client(server.url(), certificate.client());
      const auto response = client.send(request_for("/hold?id=" + std::to_string(i)), kPatience);
      EXPECT_TRUE(response && response->body == std::to_string(i)) << (response ? "" : response.error().what);
    });
  }
  EXPECT_TRUE(eventually([&] { return answers.count() == kClients; }));
  for (const auto& [id, answer] : answers.take()) answer({200, id, "text/plain", {}});
  for (std::thread& thread : threads) thread.join();
}

TEST(Tls, TrustsOnlyTheRightCertificate) {
  const Certificate right(kHere), stranger(kHere), elsewhere("IP:127.0.0.2,DNS:example"), old(kHere, -60);
  HeldAnswers answers;
  struct Case {
    const Certificate *server, *client;
    std::string says;
  };
  for (const Case& expected :
       {Case{&right, &stranger, "self-signed certificate"}, Case{&elsewhere, &elsewhere, "not trusted"},
        Case{&old, &old, "certificate has expired"}}) {
    Server server(expected.server->server(), answers.handler());
    Client client(server.url(), expected.client->client());
    const auto response = client.send(request_for("/"), kPatience);
    ASSERT_FALSE(response);
    EXPECT_EQ(response.error().kind, Kind::tls);
    EXPECT_NE(response.error().what.find(expected.says), std::string::npos) << response.error().what;
    const auto by_system = Client(server.url()).send(request_for("/"), kPatience);
    ASSERT_FALSE(by_system);
    EXPECT_EQ(by_system.error().kind, Kind::tls);
  }
}

TEST(Tls, ReportsThatOneSideHasNoTls) {
  const Certificate certificate(kHere);
  HeldAnswers answers;
  Server with(certificate.server(), answers.handler()), without({}, answers.handler());
  const auto plain = Client("http://127.0.0.1:" + std::to_string(with.port())).send(request_for("/"), kPatience);
  ASSERT_TRUE(plain) << plain.error().what;
  EXPECT_EQ(plain->status, 400);
  EXPECT_NE(plain->body.find("\"code\":\"HTTP_TLS_REQUIRED\""), std::string::npos) << plain->body;
  Client secure("https://127.0.0.1:" + std::to_string(without.port()), certificate.client());
  const auto response = secure.send(request_for("/"), kPatience);
  ASSERT_FALSE(response);
  EXPECT_EQ(response.error().kind, Kind::tls);
  EXPECT_NE(response.error().what.find("does not use TLS"), std::string::npos) << response.error().what;
}

ServerOptions with_key_of(const std::string& secret) {
  ServerOptions options;
  options.own_key = KeyPair::of_secret(secret);
  return options;
}

ClientOptions trusting(const std::string& secret) {
  ClientOptions options;
  options.server_key = KeyPair::of_secret(secret).public_key();
  return options;
}

TEST(Tls, AKnownKeyIsTrustedUnderAnyName) {
  HeldAnswers answers;
  Server server(with_key_of("sesame"), answers.handler());
  EXPECT_TRUE(server.url().starts_with("https://127.0.0.1:"));
  for (const std::string& url : {server.url(), "https://localhost:" + std::to_string(server.port())}) {
    Client client(url, trusting("sesame"));
    for (const size_t size : {0, 1, 100'000, 5}) {
      const std::string body(size, 'x');
      const auto response = client.send(request_for("/", body), kPatience);
      ASSERT_TRUE(response) << response.error().what;
      ASSERT_TRUE(response->body == "POST / " + body);
    }
  }
}

TEST(Tls, TrustsOnlyTheKnownKey) {
  const Certificate certificate(kHere);
  HeldAnswers answers;
  Server shared(with_key_of("sesame"), answers.handler()), other(certificate.server(), answers.handler());
  const auto why = [](const std::string& url, const ClientOptions& options) {
    const auto response = Client(url, options).send(request_for("/"), kPatience);
    EXPECT_FALSE(response);
    if (response) return std::string();
    EXPECT_EQ(response.error().kind, Kind::tls);
    return response.error().what;
  };
  const std::string address = shared.url().substr(8);
  EXPECT_EQ(why(shared.url(), trusting("sesame!")),
            "the certificate of " + address + " is not trusted: it has another key than this client trusts");
  EXPECT_NE(why(other.url(), trusting("sesame")).find("it has another key than this client trusts"), std::string::npos);
  EXPECT_NE(why(shared.url(), certificate.client()).find("not trusted"), std::string::npos);
  EXPECT_NE(why(shared.url(), {}).find("not trusted"), std::string::npos);
  ServerOptions both = certificate.server();
  both.own_key = KeyPair::of_secret("sesame");
  EXPECT_THAT([&] { Server(both, answers.handler()); }, ::testing::Throws<Error>());
}

// The strangers begin a handshake and never finish it.
TEST(Tls, UnfinishedHandshakesDoNotBlockOthers) {
  HeldAnswers answers;
  ServerOptions options = with_key_of("sesame");
  options.read_seconds = kPatience;
  Server server(options, answers.handler());
  std::vector<RawClient> strangers;
  for (int i = 0; i < 200; ++i) {
    strangers.emplace_back(server.port());
    const std::string begun("\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03",
                            11);  // the beginning of a ClientHello of 512 bytes
    ASSERT_TRUE(strangers.back().send(begun.substr(0, static_cast<size_t>(i) % 12)));
  }
  Client client(server.url(), trusting("sesame"));
  const auto response = client.send(request_for("/"), kPatience);
  EXPECT_TRUE(response) << response.error().what;
}

TEST(Tls, ClosesConnectionsWithGarbageOrSilence) {
  const Certificate certificate(kHere);
  HeldAnswers answers;
  ServerOptions options = certificate.server();
  options.read_seconds = 0.5;
  Server server(options, answers.handler());
  for (uint64_t seed = 0; seed < 50; ++seed) {
    RandomStream random(random_key({seed, 2}));
    std::string bytes(seed % 2 == 0 ? "\x16\x03\x01" : "");
    for (uint64_t left = random.below(300); left > 0; --left) bytes += static_cast<char>(random.below(256));
    RawClient client(server.port());
    client.send(bytes);
    client.half_close();
    client.rest();
  }
  RawClient silent(server.port());
  EXPECT_EQ(silent.rest(), "");
}

TEST(Tls, HandshakesTimeOutAndCallsAreCancelled) {
  const Certificate certificate(kHere);
  RawListener deaf;
  Client client("https" + deaf.url().substr(4), certificate.client());
  const auto late = client.send(request_for("/"), 0.2);
  ASSERT_FALSE(late);
  EXPECT_EQ(late.error().kind, Kind::timeout) << late.error().what;
  HeldAnswers answers;
  Server server(certificate.server(), answers.handler());
  Client other(server.url(), certificate.client());
  std::thread thread([&] {
    EXPECT_TRUE(eventually([&] { return answers.count() == 1; }));
    other.cancel();
  });
  const auto cancelled = other.send(request_for("/hold"), kPatience);
  thread.join();
  ASSERT_FALSE(cancelled);
  EXPECT_EQ(cancelled.error().kind, Kind::broken) << cancelled.error().what;
  EXPECT_TRUE(other.send(request_for("/"), kPatience));
}

TEST(Tls, RefusesWrongCertificateFiles) {
  const Certificate one(kHere), two(kHere);
  const auto code_of = [&one](const std::string& certificate, const std::string& key) -> std::string {
    ServerOptions options;
    options.certificate = certificate;
    options.key = key;
    try {
      Server server(options, [](const Request&, Answer) {});
    } catch (const Error& error) {
      const std::string& file = certificate.starts_with("/nowhere") || key == one.key() ? certificate : key;
      EXPECT_NE(std::string(error.what()).find(file), std::string::npos) << error.what();
      return std::string(error.code.text());
    }
    return "";
  };
  EXPECT_EQ(code_of("/nowhere.pem", one.key()), "HTTP_BAD_CERTIFICATE");
  EXPECT_EQ(code_of(one.key(), one.key()), "HTTP_BAD_CERTIFICATE");
  EXPECT_EQ(code_of(one.certificate(), "/nowhere.pem"), "HTTP_BAD_CERTIFICATE");
  EXPECT_EQ(code_of(one.certificate(), two.key()), "HTTP_BAD_CERTIFICATE");
  EXPECT_EQ(code_of(one.certificate(), one.key()), "");
  ClientOptions options;
  options.certificate_authority = "/nowhere.pem";
  RawListener listener;
  const auto response = Client("https" + listener.url().substr(4), options).send(request_for("/"), kPatience);
  ASSERT_FALSE(response);
  EXPECT_EQ(response.error().kind, Kind::tls);
  EXPECT_TRUE(response.error().what.starts_with("cannot read certificates from /nowhere.pem: "));
}

}  // namespace
}  // namespace sinew::http
