#include <sys/resource.h>

#include <algorithm>
#include <boost/asio/post.hpp>
#include <boost/asio/strand.hpp>
#include <thread>

#include "base/error.h"
#include "http/connection.h"
#include "http/url.h"

namespace sinew::http {
namespace {

// the pause after accept failed, usually for lack of descriptors
constexpr auto kAcceptAgain = std::chrono::milliseconds(50);

void validate(const ServerOptions& options) {
  constexpr ErrorCode kBadOptions = "HTTP_BAD_OPTIONS";
  if (options.certificate.empty() != options.key.empty()) {
    throw Error(kBadOptions, "a server needs both a certificate and a key, or neither", "give the missing file");
  }
  if (options.own_key && !options.certificate.empty()) {
    throw Error(kBadOptions, "a server has either certificate files or a key of its own, not both",
                "leave one of them out");
  }
  if (options.threads < 1) throw Error(kBadOptions, "a server needs at least one thread", "set threads to 1");
  if (!(options.idle_seconds > 0) || !(options.read_seconds > 0) || !(options.answer_seconds > 0) ||
      !(options.body_seconds > 0)) {
    throw Error(kBadOptions, "a server's time limits must be greater than 0", "leave them out to use the defaults");
  }
}

}  // namespace

struct Server::State {
  State(const ServerOptions& options, Handler handler, Admission admission)
      : service(std::make_shared<Service>(options)),
        acceptor(asio::make_strand(*service->context)),
        retry_timer(acceptor.get_executor()) {
    service->handler = std::move(handler);
    service->admission = std::move(admission);
    tls = server_tls(options);
    listen();
    accept();
    try {
      for (int i = 0; i < options.threads; ++i) threads.emplace_back([this] { run(); });
    } catch (const std::system_error& error) {
      stop();
      throw Error("HTTP_NO_THREAD", std::string("cannot start a thread of the server: ") + error.what(),
                  "allow more threads (ulimit -u)");
    }
  }
  ~State() { stop(); }

  void listen() {
    const ServerOptions& options = service->options;
    const std::string where = authority(options.address, options.port);
    error_code error;
    const auto address = asio::ip::make_address(options.address, error);
    if (error) {
      throw Error("HTTP_CANNOT_LISTEN",
                  "cannot listen on " + where + ": '" + options.address + "' is not an IP address",
                  "give an address of this machine, such as 127.0.0.1, or 0.0.0.0 for all its addresses");
    }
    const tcp::endpoint endpoint(address, options.port);
    acceptor.open(endpoint.protocol(), error);
    if (!error) acceptor.set_option(tcp::acceptor::reuse_address(true), error);
    if (!error) acceptor.bind(endpoint, error);
    if (!error) acceptor.listen(asio::socket_base::max_listen_connections, error);
    if (!error) bound = acceptor.local_endpoint(error);
    if (error) {
      throw Error("HTTP_CANNOT_LISTEN", "cannot listen on " + where + ": " + error.message(),
                  "choose another port, or 0 for a free one, and an address of this machine");
    }
  }

  void run() {
    while (true) {
      try {
        service->context->run();
        return;
      } catch (const std::exception&) {
        // Out of memory. The connection that this thread was serving ends at its deadline; the others continue.
      }
    }
  }

  void accept() {
    acceptor.async_accept(asio::make_strand(*service->context), [this](const error_code& error, tcp::socket socket) {
      if (!acceptor.is_open()) return;
      if (!error) {
        start_connection(std::move(socket));
        return accept();
      }
      retry_timer.expires_after(kAcceptAgain);
      retry_timer.async_wait([this](const error_code&) {
        if (acceptor.is_open()) accept();
      });
    });
  }

  void start_connection(tcp::socket socket) try {
    error_code ignored;
    const auto endpoint = socket.remote_endpoint(ignored);
    const std::string peer = ignored ? "" : endpoint.address().to_string();
    if (!service->make_room(peer)) return;
    socket.set_option(tcp::no_delay(true), ignored);
    auto pipe = tls ? server_pipe(std::move(socket), tls) : plain_pipe(std::move(socket));
    const auto connection = std::make_shared<Connection>(std::move(pipe), service, peer);
    asio::post(connection->executor(), [connection] { connection->start(); });
  } catch (const std::exception&) {
    // Out of memory. The socket closes, as it does above the limit of connections.
  }

  void stop() {
    asio::post(acceptor.get_executor(), [this] {
      error_code ignored;
      acceptor.close(ignored);
      retry_timer.cancel();
      // No connection starts from now on. A response that a handler has already given is in the queue of its
      // connection's executor, which runs its tasks in order. So the connection gets the response before finish().
      for (const auto& connection : service->all()) {
        asio::post(connection->executor(), [connection] { connection->finish(); });
      }
    });
    {
      std::unique_lock lock(service->mutex);
      service->closed.wait_for(lock, to_duration(service->options.shutdown_grace_seconds),
                               [this] { return service->guests.count() == 0; });
    }
    service->context->stop();
    for (std::thread& thread : threads) thread.join();
    // No thread runs the context any more. This thread closes the remaining connections and runs their last callbacks.
    for (const auto& connection : service->all()) connection->close();
    error_code ignored;
    acceptor.close(ignored);
    retry_timer.cancel();
    service->context->restart();
    service->context->poll();
  }

  std::shared_ptr<Service> service;
  std::shared_ptr<Tls> tls;
  tcp::acceptor acceptor;
  asio::steady_timer retry_timer;
  tcp::endpoint bound;
  std::vector<std::thread> threads;
};

Server::Server(const ServerOptions& options, Handler handler, Admission admission) {
  validate(options);
  state_ = std::make_unique<State>(options, std::move(handler), std::move(admission));
}

size_t connection_limit(size_t wanted) {
  constexpr rlim_t kOthers = 256;  // descriptors for files and databases
  rlimit limit{};
  if (::getrlimit(RLIMIT_NOFILE, &limit) != 0) return std::min<size_t>(wanted, 512);
  const rlim_t needed = wanted + kOthers;
  if (limit.rlim_cur < needed && limit.rlim_cur < limit.rlim_max) {
    limit.rlim_cur = std::min(needed, limit.rlim_max);
    ::setrlimit(RLIMIT_NOFILE, &limit);
    ::getrlimit(RLIMIT_NOFILE, &limit);
  }
  return std::min<size_t>(wanted, limit.rlim_cur > 2 * kOthers ? limit.rlim_cur - kOthers : limit.rlim_cur / 2);
}

Server::~Server() = default;

uint16_t Server::port() const {
  return state_->bound.port();
}

std::string Server::url() const {
  return (state_->tls ? "https://" : "http://") + authority(state_->bound.address().to_string(), port());
}

}  // namespace sinew::http
