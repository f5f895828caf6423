// TLS among those who share a secret: no authority, no files, nothing to set up.
//
// For http/ and link/. Whoever knows the secret can make its one key pair, and shows by it that he does; a peer with
// any other key is refused, whatever its certificate says. So a connection is as trustworthy as the secret is secret.
// TLS 1.3 only: each connection has keys of its own, and what was recorded of it stays closed to who learns the secret
// later.
#pragma once

#include <openssl/types.h>

#include <string_view>

namespace sinew {

// What an end asks of the other one. A client always asks for the secret.
enum class TlsPeer { anybody, same_secret };

// A context for connections of either side; the caller owns it.
SSL_CTX* new_shared_tls(std::string_view secret, TlsPeer peer);

// After a failed handshake: was it because the other end does not know the secret?
bool is_stranger(const SSL* connection);

}  // namespace sinew
