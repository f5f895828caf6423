#include <netdb.h>
#include <sys/socket.h>

#include <array>
#include <atomic>
#include <boost/asio/executor_work_guard.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/post.hpp>
#include <cerrno>
#include <cstring>
#include <optional>
#include <thread>
#include <vector>

#include "http/message.h"
#include "http/pipe.h"
#include "http/url.h"

namespace sinew::http {
namespace {

using Time = std::chrono::steady_clock::time_point;
Time now() {
  return std::chrono::steady_clock::now();
}

// The addresses of a host name. A detached thread resolves the name, because the system's resolver cannot be cancelled.
struct Resolved {
  bool done = false;
  std::vector<tcp::endpoint> endpoints;
  std::string error;
};

Resolved resolve(const std::string& host, uint16_t port) {
  Resolved resolved;
  resolved.done = true;
  addrinfo hints{}, *list = nullptr;
  hints.ai_socktype = SOCK_STREAM;
  const int code = ::getaddrinfo(host.c_str(), nullptr, &hints, &list);
  if (code != 0) resolved.error = ::gai_strerror(code);
  for (const addrinfo* entry = code == 0 ? list : nullptr; entry != nullptr; entry = entry->ai_next) {
    if (entry->ai_family != AF_INET && entry->ai_family != AF_INET6) continue;
    tcp::endpoint endpoint;
    std::memcpy(endpoint.data(), entry->ai_addr, entry->ai_addrlen);
    endpoint.port(port);
    resolved.endpoints.push_back(endpoint);
  }
  if (code == 0) ::freeaddrinfo(list);
  return resolved;
}

// A request that is being sent and the response that is being read.
struct Exchange {
  Exchange(std::string output_, size_t max_body_bytes, bool to_head)
      : output(std::move(output_)), reader(max_body_bytes, to_head) {}

  std::string output, input;
  size_t written = 0;
  ResponseReader reader;
  std::array<char, 16 << 10> chunk;
  bool done = false;       // true: the response is complete, or the exchange failed
  bool any_byte = false;   // true: a part of the response has arrived
  bool reusable = false;   // true: the connection can serve another call
  error_code write_error;  // does not end the exchange: the server may have responded before it closed
  std::optional<Failure> failure;
};

}  // namespace

struct Client::State {
  State(std::string url_, ClientOptions options_)
      : url(std::move(url_)), options(std::move(options_)), address(parse_url(url)) {}
  ~State() { drop(); }

  std::expected<Response, Failure> send(const Request& request, double timeout_seconds);
  std::expected<Response, Failure> exchange(const Request& request);
  std::optional<Failure> open();
  std::optional<Failure> resolve_host();
  std::optional<Failure> connect(const tcp::endpoint& endpoint, Time until);
  std::optional<Failure> handshake();
  void write(Exchange& exchange);
  void read(Exchange& exchange);
  void on_read(Exchange& exchange, const error_code& error, size_t size);
  bool still_open();
  void drop();
  std::optional<Failure> run(const bool& done, Time until, const std::string& doing);
  std::string server() const { return authority(address->host, address->port); }

  const std::string url;
  const ClientOptions options;
  const std::expected<Url, std::string> address;
  // Shared with the thread that resolves a name, which may finish after the client is destroyed.
  const std::shared_ptr<asio::io_context> context = std::make_shared<asio::io_context>();
  const asio::executor_work_guard<asio::io_context::executor_type> work{context->get_executor()};
  std::shared_ptr<Tls> tls;
  std::unique_ptr<Pipe> pipe;
  int pending = 0;  // callbacks that have not run yet; they refer to variables on the stack
  std::vector<tcp::endpoint> endpoints;
  Time deadline;
  double timeout_seconds = 0;
  std::atomic<bool> cancelled = false;
};

// Runs callbacks until `done`. If the call is cancelled or runs out of time, closes the connection and returns the
// failure.
std::optional<Failure> Client::State::run(const bool& done, Time until, const std::string& doing) {
  while (!done) {
    if (cancelled.exchange(false)) {
      drop();
      return Failure{Failure::Kind::broken, "the call to " + server() + " was cancelled"};
    }
    if (now() >= until) {
      drop();
      std::string within = std::to_string(timeout_seconds);
      within.resize(within.find('.') + 3);
      return Failure{Failure::Kind::timeout, "cannot " + doing + " " + server() + " within " + within + " s"};
    }
    context->run_one_until(until);
  }
  return std::nullopt;
}

void Client::State::drop() {
  if (!pipe) return;
  error_code ignored;
  pipe->socket().close(ignored);
  while (pending > 0) context->run_one();  // the closed socket makes every callback run at once, with an error
  pipe.reset();
}

// Returns false if the server has closed the idle connection, or has sent bytes that answer no request.
bool Client::State::still_open() {
  char byte;
  const ssize_t got = ::recv(pipe->socket().native_handle(), &byte, 1, MSG_PEEK | MSG_DONTWAIT);
  return got < 0 && (errno == EAGAIN || errno == EWOULDBLOCK);
}

std::optional<Failure> Client::State::resolve_host() {
  error_code error;
  if (const auto ip = asio::ip::make_address(address->host, error); !error) {
    endpoints = {tcp::endpoint(ip, address->port)};
    return std::nullopt;
  }
  const auto shared = std::make_shared<Resolved>();
  try {
    std::thread([context = context, shared, host = address->host, port = address->port] {
      asio::post(*context, [shared, resolved = resolve(host, port)] { *shared = resolved; });
    }).detach();
  } catch (const std::system_error& no_thread) {
    return Failure{Failure::Kind::refused, "cannot resolve " + address->host + ": " + no_thread.what()};
  }
  if (auto failure = run(shared->done, deadline, "resolve the host of")) return failure;
  endpoints = shared->endpoints;
  if (!endpoints.empty()) return std::nullopt;
  return Failure{Failure::Kind::refused, "cannot resolve " + address->host + ": " + shared->error};
}

std::optional<Failure> Client::State::connect(const tcp::endpoint& endpoint, Time until) {
  pipe = plain_pipe(tcp::socket(*context));
  bool done = false;
  error_code result;
  ++pending;
  pipe->socket().async_connect(endpoint, [&](const error_code& error) {
    --pending;
    done = true;
    result = error;
  });
  if (auto failure = run(done, until, "connect to")) return failure;
  if (result) {
    drop();
    return Failure{Failure::Kind::refused, "cannot connect to " + server() + ": " + result.message()};
  }
  error_code ignored;
  pipe->socket().set_option(tcp::no_delay(true), ignored);
  return std::nullopt;
}

std::optional<Failure> Client::State::handshake() {
  if (!tls) {
    auto made = client_tls(options);
    if (!made) return Failure{Failure::Kind::tls, made.error()};
    tls = *made;
  }
  pipe = client_pipe(std::move(pipe->socket()), tls, address->host);
  bool done = false;
  error_code result;
  ++pending;
  pipe->handshake([&](const error_code& error, size_t) {
    --pending;
    done = true;
    result = error;
  });
  if (auto failure = run(done, deadline, "agree on TLS with")) return failure;
  if (!result) return std::nullopt;
  const std::string certificate_error = pipe->certificate_error();
  drop();
  if (peer_sent_no_tls(result)) {
    return Failure{Failure::Kind::tls, server() + " does not use TLS; its URL begins with http://"};
  }
  if (certificate_error.empty()) {
    return Failure{Failure::Kind::tls, "cannot agree on TLS with " + server() + ": " + result.message()};
  }
  return Failure{Failure::Kind::tls, "the certificate of " + server() + " is not trusted: " + certificate_error};
}

std::optional<Failure> Client::State::open() {
  if (auto failure = resolve_host()) return failure;
  std::optional<Failure> failure;
  for (size_t i = 0; i < endpoints.size(); ++i) {
    // Limits the time for each address, so that an address that does not respond leaves time for the addresses after
    // it.
    const auto share = (deadline - now()) / static_cast<int64_t>(endpoints.size() - i);
    failure = connect(endpoints[i], now() + share);
    if (!failure || failure->kind == Failure::Kind::broken) break;
  }
  if (failure) return failure;
  return address->tls ? handshake() : std::nullopt;
}

void Client::State::write(Exchange& exchange) {
  ++pending;
  pipe->write_some(asio::buffer(exchange.output) + exchange.written, [&](const error_code& error, size_t size) {
    --pending;
    exchange.written += size;
    exchange.write_error = error;
    if (!error && !exchange.done && exchange.written < exchange.output.size()) write(exchange);
  });
}

void Client::State::read(Exchange& exchange) {
  ++pending;
  pipe->read_some(asio::buffer(exchange.chunk), [&](const error_code& error, size_t size) {
    --pending;
    on_read(exchange, error, size);
  });
}

void Client::State::on_read(Exchange& exchange, const error_code& error, size_t size) {
  exchange.any_byte |= size > 0;
  exchange.input.append(exchange.chunk.data(), size);
  ParseState state = exchange.input.empty() ? ParseState::need_more : exchange.reader.feed(exchange.input);
  // If a response has no length, only an orderly end of the connection shows that it is complete.
  if (state == ParseState::need_more && error == asio::error::eof) state = exchange.reader.end();
  if (state == ParseState::need_more && !error) return read(exchange);
  exchange.done = true;
  if (state == ParseState::done) {
    exchange.reusable =
        !error && exchange.reader.keep_alive() && exchange.input.empty() && exchange.written == exchange.output.size();
  } else if (state == ParseState::refused && exchange.any_byte) {
    exchange.failure = exchange.reader.refusal();
    exchange.failure->what = server() + " sent " + exchange.failure->what;
  } else {
    const error_code cause = exchange.write_error ? exchange.write_error : error;
    const std::string how = cause == asio::error::eof ? "the server closed the connection" : cause.message();
    exchange.failure = {Failure::Kind::broken, "no answer from " + server() + ": " + how};
  }
}

std::expected<Response, Failure> Client::State::exchange(const Request& request) {
  const bool kept = pipe != nullptr;
  if (!kept) {
    if (auto failure = open()) return std::unexpected(std::move(*failure));
  }
  Exchange exchange(request_text(request, server()), options.max_body_bytes, request.method == "HEAD");
  write(exchange);
  read(exchange);
  const auto ended = run(exchange.done, deadline, "get an answer from");
  if (ended) return std::unexpected(*ended);
  if (!exchange.reusable) drop();
  if (!exchange.failure) return exchange.reader.take();
  // The server closed the kept connection after still_open() had checked it. drop() has set `pipe` to null, so this
  // recursion opens a new connection and cannot repeat.
  if (kept && !exchange.any_byte) return this->exchange(request);
  return std::unexpected(std::move(*exchange.failure));
}

std::expected<Response, Failure> Client::State::send(const Request& request, double timeout_seconds_) {
  const auto bad_url = [](std::string what) {
    return std::unexpected(Failure{Failure::Kind::bad_url, std::move(what)});
  };
  if (!address) return bad_url("the URL '" + url + "' " + address.error());
  if (std::string why = unsendable(request); !why.empty()) return bad_url(std::move(why));
  const auto wait = to_duration(timeout_seconds_);
  timeout_seconds = std::chrono::duration<double>(wait).count();
  deadline = now() + wait;
  if (pipe && !still_open()) drop();
  return exchange(request);
}

Client::Client(std::string url, ClientOptions options)
    : state_(std::make_unique<State>(std::move(url), std::move(options))) {}
Client::~Client() = default;
Client::Client(Client&&) noexcept = default;

std::expected<Response, Failure> Client::send(const Request& request, double timeout_seconds) {
  return state_->send(request, timeout_seconds);
}

void Client::cancel() {
  state_->cancelled = true;
  asio::post(*state_->context, [] {});  // wakes the thread in send(), which then reads the flag
}

const std::string& Client::url() const {
  return state_->url;
}

}  // namespace sinew::http
