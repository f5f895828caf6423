// TLS between programs that share a secret. It needs no certificate authorities, files or setup.
//
// http/ and link/ use it. Both ends derive the same key pair from the secret, and a TLS handshake proves that each end
// has the private key. An end refuses a peer with any other key, whatever the peer's certificate says. Only TLS 1.3 is
// allowed: every connection has its own keys (forward secrecy), so an attacker who learns the secret later cannot
// decrypt recorded connections.
#pragma once

#include <openssl/types.h>

#include <string_view>

namespace sinew {

// Which peers an end accepts. A client always requires the secret.
enum class TlsPeer { anybody, same_secret };

// Creates a context for connections of either side. The caller frees it.
SSL_CTX* new_shared_tls(std::string_view secret, TlsPeer peer);

// Returns whether the handshake failed because the peer does not know the secret.
bool is_stranger(const SSL* connection);

}  // namespace sinew
