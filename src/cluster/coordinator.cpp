// Serves the coordinator over HTTP: its routes, the check of the secret, and the long polls of members that wait for
// updates. CoordinatorState makes the decisions.
#include <condition_variable>
#include <list>
#include <thread>

#include "cluster/coordinator_connection.h"
#include "cluster/coordinator_state.h"
#include "cluster/protocol.h"

namespace sinew::cluster {
namespace {

constexpr double kHoldSeconds = 5;  // the longest wait of a poll; then it is answered without updates
constexpr const char* kHealthPath = "/healthz";

http::Response response_of(Reply reply) {
  http::Response response;
  response.status = reply.status;
  response.body = std::move(reply.body);
  response.headers[kVersionHeader] = std::to_string(kProtocolVersion);
  response.headers[kSumHeader] = sum_of(response);
  return response;
}

Reply refuse_damaged() {
  return refuse(503, kCallDamaged, "the call was changed on its way", "try again");
}

Reply refuse_stranger() {
  return refuse(401, kWrongSecret, "the call does not carry this run's token",
                "send \"Authorization: Bearer <secret>\" with the secret of the run or a join token of it");
}

// Returns nullopt for a stranger.
std::optional<Caller> caller_of(const http::Request& request, const std::string& secret) {
  const std::string scheme = "Bearer ";
  const auto found = request.headers.find("authorization");
  if (found == request.headers.end() || !found->second.starts_with(scheme)) return std::nullopt;
  const std::string given = found->second.substr(scheme.size());
  if (same_secret(given, secret)) return Caller{};
  auto token = genuine_join_token(given, secret);
  return token ? std::optional(Caller{std::move(token)}) : std::nullopt;
}

// Returns the version in the path ("1" for "/v1/join"), or nullopt if it is this program's version or there is none.
std::optional<std::string> other_version(const std::string& path) {
  const size_t end = path.find('/', 1);
  if (!path.starts_with("/v") || end == std::string::npos) return std::nullopt;
  const std::string version = path.substr(2, end - 2);
  const bool number =
      !version.empty() && version.size() < 10 && version.find_first_not_of("0123456789") == version.npos;
  if (!number || version == std::to_string(kProtocolVersion)) return std::nullopt;
  return version;
}

}  // namespace

struct Coordinator::Impl {
  using Call = Reply (*)(CoordinatorState&, const std::string& body, Moment, const Caller&);
  struct Route {
    const char* method;
    const char* path;
    bool for_members;  // true: a join token is enough
    Call call;         // null: serve() handles the route
  };
  struct Waiting {
    UpdatesPoll poll;
    http::Answer answer;
    double until = 0;
  };
  using Outbox = std::vector<std::pair<http::Answer, Reply>>;

  CoordinatorOptions options;
  Clock& clock;
  std::mutex mutex;
  CoordinatorState state;
  std::list<Waiting> waiting;
  bool stopping = false;
  std::condition_variable due_changed;
  std::thread waker;  // ticks when a decision is due before the next regular tick
  // declared last, so that it is destroyed first: its threads use all fields above
  std::unique_ptr<http::Server> server;

  Impl(const CoordinatorOptions& options_given, Clock& clock_given)
      : options(options_given), clock(clock_given), state(options, moment()) {}

  Moment moment() const { return {clock.monotonic_seconds(), clock.wall_seconds()}; }

  static const std::vector<Route>& routes() {
    using State = CoordinatorState;
    using Body = const std::string&;
    static const std::vector<Route> all = {
        {"POST", "/v2/join", true, [](State& s, Body b, Moment at, const Caller& c) { return s.join(b, at, c); }},
        {"POST", "/v2/heartbeat", true,
         [](State& s, Body b, Moment at, const Caller& c) { return s.heartbeat(b, at, c); }},
        {"POST", "/v2/lost", false, [](State& s, Body b, Moment at, const Caller&) { return s.lost(b, at); }},
        {"POST", "/v2/scale", false, [](State& s, Body b, Moment at, const Caller&) { return s.scale(b, at); }},
        {"POST", "/v2/control", false, [](State& s, Body b, Moment at, const Caller&) { return s.control(b, at); }},
        {"POST", "/v2/revoke", false, [](State& s, Body b, Moment at, const Caller&) { return s.revoke(b, at); }},
        {"GET", "/v2/status", true, nullptr},
        {"GET", "/v2/updates", true, nullptr},
    };
    return all;
  }

  // Sends the answers. The caller must have released the lock, because a write may take long.
  static void send(Outbox& outbox) {
    for (auto& [answer, reply] : outbox) answer(response_of(std::move(reply)));
  }

  // Answers every waiting poll that has updates or has waited long enough.
  void answer_polls(Moment at, Outbox& outbox) {
    const auto refused = state.refuse_without_lead(at.now);
    if (refused && !state.superseded_by()) return;  // the polls wait until it knows whether it leads
    for (auto one = waiting.begin(); one != waiting.end();) {
      auto reply = refused ? refused : state.updates(one->poll, at);
      if (!reply && at.now >= one->until) reply = state.no_updates(one->poll, at);
      if (!reply) {
        ++one;
        continue;
      }
      outbox.emplace_back(std::move(one->answer), std::move(*reply));
      one = waiting.erase(one);
    }
    if (state.due()) due_changed.notify_all();
  }

  // Decides about a call when its header has arrived. The memory for bodies is limited, and members need it. So a
  // stranger, and the holder of a token that is not valid any more, may send no body: they get their answer at once.
  // The bodies of a token count against a share of their own, because other members may have the same address.
  http::Decision admit(const http::Request& header) {
    http::Decision decision;
    if (header.path == kHealthPath) {
      decision.max_body_bytes = 0;
      return decision;
    }
    const auto caller = caller_of(header, options.secret);
    if (!head_is_as_sent(header)) {
      decision.refusal = response_of(refuse_damaged());
    } else if (!caller) {
      decision.refusal = response_of(refuse_stranger());
    } else if (caller->token) {
      decision.sender = "token " + caller->token->id;
      const std::lock_guard lock(mutex);
      if (auto reply = state.refuse_unread(header.path, *caller, moment())) decision.refusal = response_of(*reply);
    }
    return decision;
  }

  // Returns false if the caller's token has expired or was revoked.
  bool is_welcome(const Caller& caller) {
    const std::lock_guard lock(mutex);
    return !state.refuse_caller(caller, moment());
  }

  void handle(const http::Request& request, http::Answer answer) {
    if (request.path == kHealthPath) return answer(response_of({200, R"({"ok":true})"}));
    if (!is_as_sent(request)) return answer(response_of(refuse_damaged()));
    const auto caller = caller_of(request, options.secret);
    if (!caller) return answer(response_of(refuse_stranger()));
    if (const auto version = other_version(request.path)) {
      return answer(response_of(refuse(400, kVersionDiffers,
                                       "the call has version " + *version + " of the protocol, and this coordinator " +
                                           std::to_string(kProtocolVersion),
                                       "use the version of sinew that started the run")));
    }
    const Route* route = nullptr;
    for (const Route& one : routes()) {
      if (request.path == one.path) route = &one;
    }
    if (route == nullptr) {
      return answer(response_of(refuse(404, kUnknownRoute, "there is no " + request.path.substr(0, 100),
                                       "docs/formats/coordinator.md lists the calls")));
    }
    if (request.method != route->method) {
      return answer(response_of(refuse(405, kBadRequest, request.path + " takes " + route->method, "")));
    }
    if (caller->token && !route->for_members) {
      return answer(response_of(refuse(403, kNotAllowed, "a join token does not allow " + request.path,
                                       "use the run's secret: do it on the machine of the coordinator")));
    }
    // The server keeps a member's connection even if strangers hold many connections.
    const bool known = is_welcome(*caller);
    serve(*route, *caller, request, [answer = std::move(answer), known](http::Response response) {
      response.known_client = known;
      answer(std::move(response));
    });
  }

  void serve(const Route& route, const Caller& caller, const http::Request& request, http::Answer answer) {
    Outbox outbox;
    {
      const std::lock_guard lock(mutex);
      const Moment at = moment();
      if (stopping) {
        outbox.emplace_back(std::move(answer),
                            refuse(503, kNotReady, "the coordinator stops", "its successor answers soon"));
      } else if (auto without_lead = state.refuse_without_lead(at.now); without_lead && request.path != "/v2/status") {
        outbox.emplace_back(std::move(answer), *std::move(without_lead));
      } else if (route.call != nullptr) {
        outbox.emplace_back(std::move(answer), route.call(state, request.body, at, caller));
        answer_polls(at, outbox);
      } else if (request.path == "/v2/status") {
        auto refused = state.refuse_caller(caller, at);
        outbox.emplace_back(std::move(answer), refused ? *std::move(refused) : state.status(at, caller));
      } else {
        auto poll = poll_of(request.query);
        if (!poll) {
          outbox.emplace_back(std::move(answer), poll.error());
        } else {
          poll->caller = caller;
          state.hear(*poll, at);
          waiting.push_back({*poll, std::move(answer), at.now + kHoldSeconds});
          answer_polls(at, outbox);
        }
      }
    }
    send(outbox);
  }

  void tick() {
    Outbox outbox;
    {
      const std::lock_guard lock(mutex);
      const Moment at = moment();
      state.tick(at);
      answer_polls(at, outbox);
    }
    send(outbox);
  }

  void wake_when_due() {
    std::unique_lock lock(mutex);
    while (!stopping) {
      const auto due = state.due();
      if (!due) {
        due_changed.wait(lock);
        continue;
      }
      const double left = *due - clock.monotonic_seconds();
      if (left > 0) {
        due_changed.wait_for(lock, std::chrono::duration<double>(std::min(left, 1.0)));
        continue;
      }
      lock.unlock();
      tick();
      lock.lock();
    }
  }
};

Coordinator::Coordinator(const CoordinatorOptions& options, Clock& clock)
    : impl_(std::make_unique<Impl>(options, clock)) {
  Impl& impl = *impl_;
  http::ServerOptions server;
  server.address = options.listen;
  server.port = options.port;
  server.max_body_bytes = size_t{4} << 20;
  server.max_connections = http::connection_limit(server.max_connections);
  server.max_connections_of_address = server.max_connections / 4;
  server.max_body_memory = size_t{64} << 20;
  if (options.tls) server.own_key = KeyPair::of_secret(options.secret);
  impl.server = std::make_unique<http::Server>(
      server, [&impl](const http::Request& request, http::Answer answer) { impl.handle(request, std::move(answer)); },
      [&impl](const http::Request& header) { return impl.admit(header); });
  impl.waker = std::thread([&impl] { impl.wake_when_due(); });
}

Coordinator::~Coordinator() {
  Impl& impl = *impl_;
  Impl::Outbox outbox;
  {
    const std::lock_guard lock(impl.mutex);
    impl.stopping = true;
    for (auto& one : impl.waiting)
      outbox.emplace_back(std::move(one.answer), refuse(503, kNotReady, "the coordinator stops", ""));
    impl.waiting.clear();
  }
  Impl::send(outbox);  // so that the server's destructor has no answer to wait for
  impl.server.reset();
  impl.due_changed.notify_all();
  impl.waker.join();
}

std::string Coordinator::url() const {
  return impl_->server->url();
}

void Coordinator::tick() {
  impl_->tick();
}

void Coordinator::confirm(double seconds) {
  const std::lock_guard lock(impl_->mutex);
  impl_->state.confirm(seconds);
}

void Coordinator::supersede(int64_t term) {
  const std::lock_guard lock(impl_->mutex);
  impl_->state.supersede(term, "coordinator.json", impl_->moment());
}

std::optional<int64_t> Coordinator::superseded_by() const {
  const std::lock_guard lock(impl_->mutex);
  return impl_->state.superseded_by();
}

std::optional<int64_t> Coordinator::over() const {
  const std::lock_guard lock(impl_->mutex);
  return impl_->state.over(impl_->clock.monotonic_seconds());
}

}  // namespace sinew::cluster
