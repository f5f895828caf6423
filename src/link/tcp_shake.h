// Performs the handshake over a socket, for both ends (docs/formats/link.md). It has no time limit: the caller closes
// the socket if the handshake takes too long.
#pragma once

#include <boost/asio/awaitable.hpp>
#include <expected>
#include <functional>
#include <string>

#include "link/handshake.h"
#include "link/tcp_stream.h"

namespace sinew::link {

// The contexts for TLS, one for each role.
struct ShakeTls {
  explicit ShakeTls(const KeyPair& key);
  boost::asio::ssl::context listener, dialler;
};

struct ShakeTerms {
  std::string job;
  MemberId me;
  KeyPair key;
  Signature certificate;    // says that the member `me` has `key`
  PublicKey coordinator;    // the key that signs all certificates of the run
  ShakeTls* tls = nullptr;  // null: no TLS
};

// Returns an error as the `why` of on_lost.
boost::asio::awaitable<std::expected<void, std::string>> shake_as_dialler(Stream& stream, const ShakeTerms& terms,
                                                                          MemberId peer, const std::string& where);

// Returns the member that was accepted. The error is only for logs. `given_up` tells whether this member has reported a
// peer as lost; such a peer is refused.
boost::asio::awaitable<std::expected<MemberId, std::string>> shake_as_listener(
    Stream& stream, const ShakeTerms& terms, const std::function<bool(MemberId)>& given_up);

}  // namespace sinew::link
