// Makes the handshake over a socket, for both ends (docs/formats/link.md). It has no time limit of its own: the caller
// closes the socket when it takes too long.
#pragma once

#include <boost/asio/awaitable.hpp>
#include <expected>
#include <functional>
#include <string>

#include "link/handshake.h"
#include "link/tcp_stream.h"

namespace sinew::link {

struct ShakeTerms {
  std::string job, secret;
  MemberId me;
  boost::asio::ssl::context* tls = nullptr;  // null: no TLS
};

// The error is the reason for on_lost.
boost::asio::awaitable<std::expected<void, std::string>> shake_as_dialler(Stream& stream, const ShakeTerms& terms,
                                                                          MemberId peer, const std::string& where);

// Returns the member that was accepted. The error is only for logs. `given_up` returns whether this member has reported
// that peer as lost.
boost::asio::awaitable<std::expected<MemberId, std::string>> shake_as_listener(
    Stream& stream, const ShakeTerms& terms, const std::function<bool(MemberId)>& given_up);

}  // namespace sinew::link
