#include "base/shared_tls.h"

#include <openssl/evp.h>
#include <openssl/hmac.h>
#include <openssl/ssl.h>
#include <openssl/x509.h>

#include <array>
#include <memory>

#include "base/check.h"

namespace sinew {
namespace {

constexpr std::string_view kLabel = "sinew-tls-1";  // separates this key from other uses of the secret

using Key = std::unique_ptr<EVP_PKEY, decltype(&EVP_PKEY_free)>;
using Certificate = std::unique_ptr<X509, decltype(&X509_free)>;

Key key_of(std::string_view secret) {
  std::array<unsigned char, 32> seed{};  // any 32 bytes are a valid Ed25519 key
  unsigned length = 0;
  const auto* const done =
      HMAC(EVP_sha256(), secret.data(), static_cast<int>(secret.size()),
           reinterpret_cast<const unsigned char*>(kLabel.data()), kLabel.size(), seed.data(), &length);
  SINEW_CHECK(done != nullptr && length == seed.size(), length);
  Key key(EVP_PKEY_new_raw_private_key(EVP_PKEY_ED25519, nullptr, seed.data(), seed.size()), &EVP_PKEY_free);
  SINEW_CHECK(key != nullptr);
  return key;
}

// TLS carries the public key in a certificate. Neither end reads any other field of the certificate, so the other
// fields are minimal.
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

// Replaces OpenSSL's verification of chains, names and dates by a comparison of the public key. The handshake itself
// proves that the peer has the private key.
int judge(X509_STORE_CTX* shown, void* own_key) {
  const X509* const certificate = X509_STORE_CTX_get0_cert(shown);
  const EVP_PKEY* const key = certificate == nullptr ? nullptr : X509_get0_pubkey(certificate);
  const bool same = key != nullptr && EVP_PKEY_eq(key, static_cast<const EVP_PKEY*>(own_key)) == 1;
  X509_STORE_CTX_set_error(shown, same ? X509_V_OK : X509_V_ERR_APPLICATION_VERIFICATION);
  return same ? 1 : 0;
}

}  // namespace

SSL_CTX* new_shared_tls(std::string_view secret, TlsPeer peer) {
  SINEW_CHECK(!secret.empty());
  const Key key = key_of(secret);
  const Certificate certificate = certificate_of(key.get());
  SSL_CTX* const context = SSL_CTX_new(TLS_method());
  SINEW_CHECK(context != nullptr);
  SINEW_CHECK(SSL_CTX_set_min_proto_version(context, TLS1_3_VERSION) == 1);
  SINEW_CHECK(SSL_CTX_use_certificate(context, certificate.get()) == 1);
  SINEW_CHECK(SSL_CTX_use_PrivateKey(context, key.get()) == 1);
  const int asks = SSL_VERIFY_PEER | SSL_VERIFY_FAIL_IF_NO_PEER_CERT;
  SSL_CTX_set_verify(context, peer == TlsPeer::same_secret ? asks : SSL_VERIFY_NONE, nullptr);
  SSL_CTX_set_cert_verify_callback(context, judge, SSL_CTX_get0_privatekey(context));
  // Never resumes a session, so that every connection proves that the peer knows the secret.
  SSL_CTX_set_session_cache_mode(context, SSL_SESS_CACHE_OFF);
  SINEW_CHECK(SSL_CTX_set_num_tickets(context, 0) == 1);
  return context;
}

bool is_stranger(const SSL* connection) {
  return SSL_get_verify_result(connection) == X509_V_ERR_APPLICATION_VERIFICATION;
}

}  // namespace sinew
