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

constexpr auto kAcceptAgain = std::chrono::milliseconds(50);  // after the kernel had no descriptor left

void judge(const ServerOptions& options) {
  if (options.certificate.empty() != options.key.empty()) {
    throw Error("a server needs both a certificate and a key, or none of them", "give the other one too");
  }
  if (!options.shared_secret.empty() && !options.certificate.empty()) {
    throw Error("a server has TLS by a certificate or by a shared secret, not by both", "leave one of them out");
  }
  if (options.threads < 1) throw Error("a server needs at least one thread", "give threads: 1");
  if (!(options.idle_seconds > 0) || !(options.read_seconds > 0) || !(options.answer_seconds > 0)) {
    throw Error("a server's time limits must be greater than 0", "leave them out to have the defaults");
  }
}

}  // namespace

struct Server::State {
  State(const ServerOptions& options, Handler handler, Gate gate)
      : service(std::make_shared<Service>()),
        acceptor(asio::make_strand(*service->context)),
        again(acceptor.get_executor()) {
    service->options = options;
    service->handler = std::move(handler);
    service->gate = std::move(gate);
    tls = server_tls(options);
    listen();
    accept();
    try {
      for (int i = 0; i < options.threads; ++i) threads.emplace_back([this] { run(); });
    } catch (const std::system_error& error) {
      stop();
      throw Error(std::string("cannot start a thread of the server: ") + error.what(),
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
      throw Error("cannot listen on " + where + ": '" + options.address + "' is no IP address",
                  "give an address of this machine, such as 127.0.0.1 or 0.0.0.0 for all of them");
    }
    const tcp::endpoint endpoint(address, options.port);
    acceptor.open(endpoint.protocol(), error);
    if (!error) acceptor.set_option(tcp::acceptor::reuse_address(true), error);
    if (!error) acceptor.bind(endpoint, error);
    if (!error) acceptor.listen(asio::socket_base::max_listen_connections, error);
    if (!error) bound = acceptor.local_endpoint(error);
    if (error) {
      throw Error("cannot listen on " + where + ": " + error.message(),
                  "choose another port, or 0 for a free one, and an address of this machine");
    }
  }

  void run() {
    while (true) {
      try {
        service->context->run();
        return;
      } catch (const std::exception&) {
        // Out of memory: the connection it happened to is closed by what it left behind; the others go on.
      }
    }
  }

  void accept() {
    acceptor.async_accept(asio::make_strand(*service->context), [this](const error_code& error, tcp::socket socket) {
      if (!acceptor.is_open()) return;
      if (!error) {
        admit(std::move(socket));
        return accept();
      }
      again.expires_after(kAcceptAgain);
      again.async_wait([this](const error_code&) {
        if (acceptor.is_open()) accept();
      });
    });
  }

  void admit(tcp::socket socket) try {
    if (service->count() >= service->options.max_connections) return;
    error_code ignored;
    socket.set_option(tcp::no_delay(true), ignored);
    auto pipe = tls ? server_pipe(std::move(socket), tls) : plain_pipe(std::move(socket));
    const auto connection = std::make_shared<Connection>(std::move(pipe), service);
    asio::post(connection->executor(), [connection] { connection->start(); });
  } catch (const std::exception&) {
    // No memory for one more connection: it is closed, as one above the limit is.
  }

  void stop() {
    asio::post(acceptor.get_executor(), [this] {
      error_code ignored;
      acceptor.close(ignored);
      again.cancel();
      // Now nobody is admitted any more. An answer given before this was posted before this.
      for (const auto& connection : service->all()) {
        asio::post(connection->executor(), [connection] { connection->finish(); });
      }
    });
    {
      std::unique_lock lock(service->mutex);
      service->left.wait_for(lock, wait_of(service->options.farewell_seconds),
                             [this] { return service->connections.empty(); });
    }
    service->context->stop();
    for (std::thread& thread : threads) thread.join();
    // Nobody runs anything any more. What is still open is closed, and what that sets free comes to its end here.
    for (const auto& connection : service->all()) connection->close();
    error_code ignored;
    acceptor.close(ignored);
    again.cancel();
    service->context->restart();
    service->context->poll();
  }

  std::shared_ptr<Service> service;
  std::shared_ptr<Tls> tls;
  tcp::acceptor acceptor;
  asio::steady_timer again;
  tcp::endpoint bound;
  std::vector<std::thread> threads;
};

Server::Server(const ServerOptions& options, Handler handler, Gate gate) {
  judge(options);
  state_ = std::make_unique<State>(options, std::move(handler), std::move(gate));
}

size_t room_for_connections(size_t wanted) {
  constexpr rlim_t kOthers = 256;  // files, databases, the process's own
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
