// Implements links over TCP. One network thread uses the sockets and calls the functions in Events. Threads that call
// Links share ends_ (tcp_ends.h) and the last checksum with the network thread; both have a mutex.
#include <fcntl.h>

#include <algorithm>
#include <atomic>
#include <boost/asio/as_tuple.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/connect.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <list>
#include <mutex>
#include <thread>
#include <utility>

#include "base/check.h"
#include "base/error.h"
#include "link/tcp_address.h"
#include "link/tcp_connection.h"
#include "link/tcp_ends.h"
#include "link/tcp_shake.h"

namespace sinew::link {
namespace {

namespace asio = boost::asio;
using asio::awaitable;
using asio::ip::tcp;
using boost::system::error_code;

constexpr auto kTick = std::chrono::milliseconds(100);
constexpr size_t kUnfinished = 256;  // most unfinished handshakes of callers; also most guests_

std::chrono::steady_clock::duration seconds(double count) {
  return std::chrono::duration_cast<std::chrono::steady_clock::duration>(std::chrono::duration<double>(count));
}

// Makes the socket send small frames at once. Keeps child processes from inheriting it, so that the connection ends
// with this process.
void prepare(tcp::socket& socket) {
  error_code ignored;
  socket.set_option(tcp::no_delay(true), ignored);
  ::fcntl(socket.native_handle(), F_SETFD, FD_CLOEXEC);
}

// A handshake in progress. stop() ends it by closing its socket.
struct Attempt {
  explicit Attempt(tcp::socket socket) : stream(std::make_unique<Stream>(std::move(socket))) {}
  std::unique_ptr<Stream> stream;
  Time deadline;
  std::optional<End> dialled;  // nullopt if the peer dialled
  bool over = false;
  void stop() {
    error_code ignored;
    over = true;
    stream->socket().close(ignored);
  }
};

// A connection from a member that this member does not want yet.
struct Guest {
  std::shared_ptr<Connection> connection;
  Time deadline;
};

class TcpLinks final : public Links, public ConnectionOwner {
 public:
  TcpLinks(const TcpOptions& options, Events events)
      : options_(checked(options)), events_(std::move(events)), acceptor_(io_), tick_(io_), rest_(io_) {
    SINEW_CHECK(events_.on_frame && events_.on_lost);
    if (options_.tls) tls_.emplace(options_.credentials.key);
    listen();
    ticked_ = std::chrono::steady_clock::now();
    wait_for_tick();
    thread_ = std::thread([this] { io_.run(); });
  }
  ~TcpLinks() override {
    SINEW_CHECK(std::this_thread::get_id() != thread_.get_id());
    io_.stop();
    thread_.join();
    for (const auto& [peer, connection] : connections_) connection->close();
  }

  std::string address() const override { return address_; }

  void set_identity(MemberId me) override {
    certificate_ = options_.credentials.certificate(me);
    ends_.set_me(me);
    asio::post(io_, [this] { spawn(accept()); });
  }

  void connect(const std::vector<Peer>& peers) override {
    ends_.name(peers, std::chrono::steady_clock::now() + seconds(options_.connect_seconds));
    asio::post(io_, [this] { reconcile(); });
  }

  void send(MemberId to, Frame frame) override {
    SINEW_CHECK(!frame.payload || frame.payload->size() <= options_.max_payload_bytes, frame.payload->size());
    if (!ends_.wants(to)) return;
    const uint32_t sum = checksum(frame);
    if (!ends_.push(to, seal(std::move(frame), sum))) return;
    asio::post(io_, [this, to] {
      const auto found = connections_.find(to);
      if (found != connections_.end()) found->second->write();
    });
  }

  size_t queued_bytes(MemberId to) const override { return ends_.queued_bytes(to); }
  NetworkUse traffic() const override { return {sent_, received_}; }

 private:
  void listen();
  template <typename Task>
  void spawn(Task task) {
    asio::co_spawn(io_, std::move(task), [](const std::exception_ptr& failure) {
      if (failure) std::rethrow_exception(failure);  // ends the process: only an event handler can throw
    });
  }
  // Returns the checksum of the payload. Keeps the last one, because the same payload often goes to many peers.
  uint32_t checksum(const Frame& frame) {
    {
      const std::lock_guard lock(summed_mutex_);
      if (frame.payload && summed_.lock() == frame.payload) return sum_;
    }
    const uint32_t sum = payload_checksum(frame);
    const std::lock_guard lock(summed_mutex_);
    summed_ = frame.payload;
    sum_ = sum;
    return sum;
  }

  // ---- on the network thread
  awaitable<void> accept();
  awaitable<void> welcome(std::shared_ptr<Attempt> attempt);
  awaitable<void> dial(std::shared_ptr<Attempt> attempt);
  awaitable<error_code> reach(Attempt& attempt, const HostPort& where);
  void make_room();
  void reconcile();
  void stand(const End& end, std::shared_ptr<Connection> connection);
  void lose(const End& end, std::string why);
  void wait_for_tick();
  void tick(double elapsed, Time now);
  ShakeTerms terms() {
    const MemberCredentials& mine = options_.credentials;
    return {options_.job, *ends_.me(), mine.key, certificate_, mine.coordinator, tls_ ? &*tls_ : nullptr};
  }

  std::vector<Outgoing> take(const Connection& from) override { return ends_.take(from.peer(), from.incarnation()); }
  void wrote(const Connection& to, size_t bytes) override {
    sent_ += static_cast<int64_t>(bytes);
    ends_.wrote(to.peer(), to.incarnation(), bytes);
  }
  bool arrived(const Connection& from, Frame frame) override {
    received_ += static_cast<int64_t>(kHeaderBytes + (frame.payload ? frame.payload->size() : 0));
    if (!ends_.stands(from.peer(), from.incarnation())) return false;
    events_.on_frame(from.peer(), std::move(frame));
    return true;
  }
  void broke(const Connection& connection, std::string why) override {
    lose({connection.peer(), connection.incarnation(), ""}, std::move(why));
  }

  const TcpOptions options_;
  const Events events_;
  std::string address_;
  Signature certificate_{};  // set by set_identity, before the network thread uses it
  Ends ends_;
  std::mutex summed_mutex_;
  std::weak_ptr<const Bytes> summed_;
  uint32_t sum_ = 0;
  std::atomic<int64_t> sent_{0}, received_{0};  // bytes of frames; only the network thread changes them

  std::optional<ShakeTls> tls_;
  asio::io_context io_{1};  // declared before everything that has a socket
  tcp::acceptor acceptor_;
  asio::steady_timer tick_, rest_;
  Time ticked_;
  std::list<std::shared_ptr<Attempt>> attempts_;  // oldest first
  std::map<MemberId, Guest> guests_;
  std::map<MemberId, std::shared_ptr<Connection>> connections_;
  std::thread thread_;
};

void TcpLinks::listen() {
  try {
    const tcp::endpoint endpoint(asio::ip::make_address(options_.listen), 0);
    acceptor_.open(endpoint.protocol());
    acceptor_.bind(endpoint);
    acceptor_.listen();
    ::fcntl(acceptor_.native_handle(), F_SETFD, FD_CLOEXEC);
  } catch (const boost::system::system_error& error) {
    throw Error("LINK_CANNOT_LISTEN", "cannot listen on '" + options_.listen + "': " + error.code().message(),
                "give an address of this machine, such as 127.0.0.1 or 0.0.0.0");
  }
  const std::string host = options_.advertise.empty() ? options_.listen : options_.advertise;
  address_ = to_text({host, acceptor_.local_endpoint().port()});
}

awaitable<void> TcpLinks::accept() {
  while (acceptor_.is_open()) {
    auto [code, socket] = co_await acceptor_.async_accept(kToken);
    if (code) {  // no descriptor is free, or the caller has gone
      rest_.expires_after(kTick);
      co_await rest_.async_wait(kToken);
      continue;
    }
    prepare(socket);
    make_room();
    auto attempt = std::make_shared<Attempt>(std::move(socket));
    attempt->deadline = std::chrono::steady_clock::now() + seconds(options_.connect_seconds);
    attempts_.push_back(attempt);
    spawn(welcome(attempt));
  }
}

// If callers have too many unfinished handshakes, closes the oldest of them. Otherwise strangers could hold connections
// open and so keep members out.
void TcpLinks::make_room() {
  size_t callers = 0;
  for (const auto& attempt : attempts_) callers += attempt->dialled || attempt->over ? 0 : 1;
  if (callers < kUnfinished) return;
  for (const auto& attempt : attempts_) {
    if (!attempt->dialled && !attempt->over) return attempt->stop();
  }
}

awaitable<void> TcpLinks::welcome(std::shared_ptr<Attempt> attempt) {
  const ShakeTerms here = terms();
  const std::function<bool(MemberId)> given_up = [this](MemberId peer) { return ends_.given_up(peer); };
  const auto peer = co_await shake_as_listener(*attempt->stream, here, given_up);
  attempts_.remove(attempt);
  if (!peer || attempt->over) co_return;
  auto connection =
      std::make_shared<Connection>(std::move(attempt->stream), *peer, 0, "a caller", options_.max_payload_bytes, *this);
  if (const auto end = ends_.waiting(*peer)) {
    stand(*end, std::move(connection));
    co_return;
  }
  if (ends_.given_up(*peer) || guests_.size() >= kUnfinished) co_return;
  if (const auto old = guests_.extract(*peer)) old.mapped().connection->close();
  guests_[*peer] = {std::move(connection), std::chrono::steady_clock::now() + seconds(options_.connect_seconds)};
}

awaitable<void> TcpLinks::dial(std::shared_ptr<Attempt> attempt) {
  const End end = *attempt->dialled;
  const auto where = host_port(end.address);
  std::string why = "'" + end.address + "' is no address";
  bool shaken = false;
  if (where) {
    if (const error_code code = co_await reach(*attempt, *where)) {
      why = broken_by(code, end.address);
    } else {
      const ShakeTerms here = terms();
      const auto done = co_await shake_as_dialler(*attempt->stream, here, end.peer, end.address);
      shaken = done.has_value() && !attempt->over;
      if (!done) why = done.error();
    }
  }
  attempts_.remove(attempt);
  if (!shaken) {
    lose(end, std::move(why));  // does nothing if the peer is lost already
  } else {
    stand(end, std::make_shared<Connection>(std::move(attempt->stream), end.peer, end.incarnation, end.address,
                                            options_.max_payload_bytes, *this));
  }
}

awaitable<error_code> TcpLinks::reach(Attempt& attempt, const HostPort& where) {
  error_code code;
  const auto address = asio::ip::make_address(where.host, code);
  if (!code) {
    const tcp::endpoint endpoint(address, where.port);
    std::tie(code) = co_await attempt.stream->socket().async_connect(endpoint, kToken);
  } else {
    tcp::resolver resolver(io_);
    const std::string port = std::to_string(where.port);
    auto [unknown, endpoints] = co_await resolver.async_resolve(where.host, port, kToken);
    code = attempt.over ? asio::error::operation_aborted : unknown;
    if (!code) {
      auto [unreached, endpoint] = co_await asio::async_connect(attempt.stream->socket(), endpoints, kToken);
      code = unreached;
    }
  }
  if (!code) prepare(attempt.stream->socket());
  co_return code;
}

// Opens and closes connections so that they match the wanted peers.
void TcpLinks::reconcile() {
  std::erase_if(connections_, [&](const auto& entry) {
    if (ends_.stands(entry.first, entry.second->incarnation())) return false;
    entry.second->close();
    return true;
  });
  for (const End& end : ends_.begin_new()) {
    if (auto guest = guests_.extract(end.peer)) {
      stand(end, std::move(guest.mapped().connection));
    } else if (*ends_.me() > end.peer) {
      auto attempt = std::make_shared<Attempt>(tcp::socket(io_));
      attempt->deadline = Time::max();  // no limit for this attempt: the entry in ends_ has the deadline
      attempt->dialled = end;
      attempts_.push_back(attempt);
      spawn(dial(attempt));
    }
  }
}

void TcpLinks::stand(const End& end, std::shared_ptr<Connection> connection) {
  if (!ends_.stand(end.peer, end.incarnation)) return connection->close();
  connection->belong_to(end.incarnation, end.address);
  if (const auto old = connections_.extract(end.peer))
    old.mapped()->close();  // it belongs to a dropped entry of the peer
  connections_[end.peer] = connection;
  connection->start();
}

void TcpLinks::lose(const End& end, std::string why) {
  const auto found = connections_.find(end.peer);
  if (found != connections_.end() && found->second->incarnation() == end.incarnation) {
    const auto connection = found->second;
    connections_.erase(found);
    connection->close();
  }
  const auto guest = guests_.find(end.peer);
  if (guest != guests_.end() && guest->second.connection->incarnation() == end.incarnation) guests_.erase(guest);
  if (ends_.lose(end.peer, end.incarnation)) events_.on_lost(end.peer, std::move(why));
}

void TcpLinks::wait_for_tick() {
  tick_.expires_after(kTick);
  tick_.async_wait([this](const error_code& code) {
    if (code) return;
    const Time now = std::chrono::steady_clock::now();
    // If this process was suspended for a long time, the bytes that peers sent meanwhile wait in its sockets. So a tick
    // counts at most twice its usual length as silence of the peers.
    const std::chrono::duration<double> elapsed =
        std::min(now - std::exchange(ticked_, now), 2 * Time::duration(kTick));
    tick(elapsed.count(), now);
    wait_for_tick();
  });
}

void TcpLinks::tick(double elapsed, Time now) {
  const double pulse = std::min(1.0, options_.silence_seconds / 4);
  std::vector<std::shared_ptr<Connection>> all;
  for (const auto& [peer, connection] : connections_) all.push_back(connection);
  std::erase_if(guests_, [&](const auto& entry) {
    if (entry.second.deadline > now) return false;
    entry.second.connection->close();
    return true;
  });
  for (const auto& [peer, guest] : guests_) all.push_back(guest.connection);
  // If one peer has been silent for too long, all peers that have been silent for 60 % of that time are lost with it.
  // So a member that is cut off reports all its links at once, and not one after another.
  const bool silence = std::any_of(all.begin(), all.end(), [&](const auto& connection) {
    return connection->silent_seconds() + elapsed >= options_.silence_seconds;
  });
  const double patience = options_.silence_seconds * (silence ? 0.6 : 1);
  for (const auto& connection : all) connection->tick(elapsed, pulse, patience);
  for (const End& end : ends_.late(now)) {
    const bool dials = *ends_.me() > end.peer;
    lose(end, dials ? "no connection with " + end.address + " in time"
                    : "member " + std::to_string(end.peer.value) + " (" + end.address + ") did not connect in time");
  }
  for (const auto& attempt : std::list(attempts_)) {
    const bool unwanted = attempt->dialled && !ends_.waits(attempt->dialled->peer, attempt->dialled->incarnation);
    if (!attempt->over && (unwanted || attempt->deadline <= now)) attempt->stop();
  }
}

}  // namespace

std::unique_ptr<Links> tcp_links(const TcpOptions& options, Events events) {
  return std::make_unique<TcpLinks>(options, std::move(events));
}

}  // namespace sinew::link
