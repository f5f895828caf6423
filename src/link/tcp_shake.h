// The handshake over a socket, from either end (docs/formats/link.md). Unbounded in time: who calls closes the socket
// when it has lasted too long.
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
  boost::asio::ssl::context* tls = nullptr;  // null: in clear
};

// The error says why not, as on_lost does.
boost::asio::awaitable<std::expected<void, std::string>> shake_as_dialler(Stream& stream, const ShakeTerms& terms,
                                                                          MemberId peer, const std::string& where);

// Who is let in; the error is for nobody but a log. `given_up`: has this member counted that peer as lost?
boost::asio::awaitable<std::expected<MemberId, std::string>> shake_as_listener(
    Stream& stream, const ShakeTerms& terms, const std::function<bool(MemberId)>& given_up);

}  // namespace sinew::link
