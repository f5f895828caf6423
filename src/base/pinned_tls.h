// TLS between programs that know each other's public key (base/key_pair.h). It needs no certificate authorities, files
// or setup.
//
// http/ and link/ use it. A server shows its key, and the TLS handshake proves that it has the private key. A client
// trusts only the key that it expects, whatever the rest of the server's certificate says. Clients show no key: they
// prove who they are inside TLS, by a token or by their own signature. Only TLS 1.3 is allowed: every connection has
// its own keys (forward secrecy), so an attacker who learns a key later cannot decrypt recorded connections.
#pragma once

#include <openssl/types.h>

#include <optional>

#include "base/key_pair.h"

namespace sinew {

// The caller frees the contexts.
SSL_CTX* new_tls_server(const KeyPair& key);
// `server` is the only key to trust. With nullopt the client accepts any Ed25519 key, and the caller must check
// tls_peer_key() before it sends anything secret.
SSL_CTX* new_tls_client(const std::optional<PublicKey>& server);

std::optional<PublicKey> tls_peer_key(const SSL* connection);  // nullopt: the peer has shown no Ed25519 key
// Returns whether the handshake failed because the server has another key than the client expects.
bool is_stranger(const SSL* connection);

}  // namespace sinew
