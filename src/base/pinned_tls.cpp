#include "base/pinned_tls.h"

#include <openssl/ssl.h>
#include <openssl/x509.h>

#include <memory>

#include "base/check.h"

namespace sinew {
namespace {

using Certificate = std::unique_ptr<X509, decltype(&X509_free)>;

// TLS carries the public key in a certificate. No client reads any other field of the certificate, so the other fields
// are minimal.
Certificate certificate_of(EVP_PKEY* key) {
  Certificate certificate(X509_new(), &X509_free);
  SINEW_CHECK(certificate != nullptr);
  X509* const made = certificate.get();
  X509_NAME* const name = X509_get_subject_name(made);
  const std::array<unsigned char, 5> words = {'s', 'i', 'n', 'e', 'w'};
  SINEW_CHECK(X509_set_version(made, X509_VERSION_3) == 1);
  SINEW_CHECK(ASN1_INTEGER_set(X509_get_serialNumber(made), 1) == 1);
  SINEW_CHECK(ASN1_TIME_set_string(X509_getm_notBefore(made), "20000101000000Z") == 1);
  SINEW_CHECK(ASN1_TIME_set_string(X509_getm_notAfter(made), "99991231235959Z") == 1);  // no expiry
  SINEW_CHECK(X509_NAME_add_entry_by_txt(name, "CN", MBSTRING_ASC, words.data(), words.size(), -1, 0) == 1);
  SINEW_CHECK(X509_set_issuer_name(made, name) == 1);
  SINEW_CHECK(X509_set_pubkey(made, key) == 1);
  SINEW_CHECK(X509_sign(made, key, nullptr) > 0);
  return certificate;
}

std::optional<PublicKey> key_in(const X509* certificate) {
  const EVP_PKEY* const key = certificate == nullptr ? nullptr : X509_get0_pubkey(certificate);
  if (key == nullptr || EVP_PKEY_get_id(key) != EVP_PKEY_ED25519) return std::nullopt;
  PublicKey bytes{};
  size_t size = bytes.size();
  if (EVP_PKEY_get_raw_public_key(key, bytes.data(), &size) != 1 || size != bytes.size()) return std::nullopt;
  return bytes;
}

// Replaces OpenSSL's verification of chains, names and dates by a comparison of the public key. The handshake itself
// proves that the server has the private key. `expected` is null if any key will do.
int judge(X509_STORE_CTX* shown, void* expected) {
  const auto key = key_in(X509_STORE_CTX_get0_cert(shown));
  const bool trusted = key && (expected == nullptr || *key == *static_cast<const PublicKey*>(expected));
  X509_STORE_CTX_set_error(shown, trusted ? X509_V_OK : X509_V_ERR_APPLICATION_VERIFICATION);
  return trusted ? 1 : 0;
}

// Where a context keeps the key that its clients expect.
int expected_key_index() {
  static const int index = SSL_CTX_get_ex_new_index(
      0, nullptr, nullptr, nullptr,
      [](void*, void* key, CRYPTO_EX_DATA*, int, long, void*) { delete static_cast<PublicKey*>(key); });
  SINEW_CHECK(index >= 0);
  return index;
}

SSL_CTX* new_tls_context() {
  SSL_CTX* const context = SSL_CTX_new(TLS_method());
  SINEW_CHECK(context != nullptr);
  SINEW_CHECK(SSL_CTX_set_min_proto_version(context, TLS1_3_VERSION) == 1);
  // Never resumes a session, so that every connection proves the keys.
  SSL_CTX_set_session_cache_mode(context, SSL_SESS_CACHE_OFF);
  SINEW_CHECK(SSL_CTX_set_num_tickets(context, 0) == 1);
  return context;
}

}  // namespace

SSL_CTX* new_tls_server(const KeyPair& key) {
  const Certificate certificate = certificate_of(key.handle());
  SSL_CTX* const context = new_tls_context();
  SINEW_CHECK(SSL_CTX_use_certificate(context, certificate.get()) == 1);
  SINEW_CHECK(SSL_CTX_use_PrivateKey(context, key.handle()) == 1);
  SSL_CTX_set_verify(context, SSL_VERIFY_NONE, nullptr);
  return context;
}

SSL_CTX* new_tls_client(const std::optional<PublicKey>& server) {
  SSL_CTX* const context = new_tls_context();
  auto* const expected = server ? new PublicKey(*server) : nullptr;
  SINEW_CHECK(SSL_CTX_set_ex_data(context, expected_key_index(), expected) == 1);  // the context frees it
  SSL_CTX_set_verify(context, SSL_VERIFY_PEER, nullptr);
  SSL_CTX_set_cert_verify_callback(context, judge, expected);
  return context;
}

std::optional<PublicKey> tls_peer_key(const SSL* connection) {
  return key_in(SSL_get0_peer_certificate(connection));
}

bool is_stranger(const SSL* connection) {
  return SSL_get_verify_result(connection) == X509_V_ERR_APPLICATION_VERIFICATION;
}

}  // namespace sinew
