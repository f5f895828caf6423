// The coordinator over HTTP: routes, the secret, and members that wait for news. What it decides is CoordinatorState's.
#include <condition_variable>
#include <list>
#include <thread>

#include "cluster/coordinator_state.h"
#include "cluster/line.h"

namespace sinew::cluster {
namespace {

constexpr double kHoldSeconds = 5;  // a poll without news is answered after so long

http::Response response_of(Reply reply) {
  http::Response response;
  response.status = reply.status;
  response.body = std::move(reply.body);
  response.headers[kSumHeader] = sum_of(response);
  return response;
}

// Takes the same time wherever the texts differ.
bool same_secret(const std::string& a, const std::string& b) {
  unsigned difference = a.size() == b.size() ? 0 : 1;
  for (size_t i = 0; i < a.size(); ++i) {
    difference |= static_cast<unsigned char>(a[i]) ^ static_cast<unsigned char>(b.empty() ? 0 : b[i % b.size()]);
  }
  return difference == 0;
}

}  // namespace

struct Coordinator::Impl {
  using Call = Reply (CoordinatorState::*)(const std::string&, Moment);
  struct Route {
    const char* method;
    const char* path;
    Call call;  // null: a route of its own
  };
  struct Waiting {
    Poll poll;
    http::Answer answer;
    double until = 0;
  };
  using Outbox = std::vector<std::pair<http::Answer, Reply>>;

  CoordinatorOptions options;
  Clock& clock;
  std::mutex mutex;
  CoordinatorState coordinator;
  std::list<Waiting> waiting;
  bool stopping = false;
  std::condition_variable due_changed;
  std::thread waker;                     // for what is due before the next tick
  std::unique_ptr<http::Server> server;  // last: its threads use all of the above

  Impl(const CoordinatorOptions& options_given, Clock& clock_given)
      : options(options_given), clock(clock_given), coordinator(options, moment()) {}

  Moment moment() const { return {clock.monotonic_seconds(), clock.wall_seconds()}; }

  static const std::vector<Route>& routes() {
    static const std::vector<Route> all = {
        {"POST", "/v2/join", &CoordinatorState::join},
        {"POST", "/v2/heartbeat", &CoordinatorState::heartbeat},
        {"POST", "/v2/lost", &CoordinatorState::lost},
        {"POST", "/v2/scale", &CoordinatorState::scale},
        {"POST", "/v2/control", &CoordinatorState::control},
        {"GET", "/v2/status", nullptr},
        {"GET", "/v2/updates", nullptr},
    };
    return all;
  }

  // Answers are sent after the lock is released: a write may take its time.
  static void send(Outbox& outbox) {
    for (auto& [answer, reply] : outbox) answer(response_of(std::move(reply)));
  }

  // Everyone who waits and for whom there is something now.
  void settle(Moment at, Outbox& outbox) {
    for (auto one = waiting.begin(); one != waiting.end();) {
      auto reply = coordinator.updates(one->poll, at);
      if (!reply && at.now >= one->until) reply = coordinator.no_updates(one->poll, at);
      if (!reply) {
        ++one;
        continue;
      }
      outbox.emplace_back(std::move(one->answer), std::move(*reply));
      one = waiting.erase(one);
    }
    if (coordinator.due()) due_changed.notify_all();
  }

  bool allowed(const http::Request& request) const {
    const auto found = request.headers.find("authorization");
    return found != request.headers.end() && same_secret(found->second, "Bearer " + options.secret);
  }

  void handle(const http::Request& request, http::Answer answer) {
    if (request.path == "/healthz") return answer(response_of({200, R"({"ok":true})"}));
    if (!is_as_sent(request)) {
      return answer(response_of(refuse(503, "the call was changed on its way", "try again")));
    }
    if (!allowed(request)) {
      return answer(response_of(refuse(401, "the call does not carry this run's token",
                                       "send \"Authorization: Bearer <secret>\"; the secret is the run's own")));
    }
    const Route* route = nullptr;
    for (const Route& one : routes()) {
      if (request.path == one.path) route = &one;
    }
    if (route == nullptr) {
      return answer(response_of(refuse(404, "there is no " + request.path.substr(0, 100),
                                       "docs/formats/coordinator.md lists what there is")));
    }
    if (request.method != route->method) {
      return answer(response_of(refuse(405, request.path + " takes " + route->method, "")));
    }
    serve(*route, request, std::move(answer));
  }

  void serve(const Route& route, const http::Request& request, http::Answer answer) {
    Outbox outbox;
    {
      const std::lock_guard lock(mutex);
      const Moment at = moment();
      if (stopping) {
        outbox.emplace_back(std::move(answer), refuse(503, "the coordinator stops", "its successor answers soon"));
      } else if (route.call != nullptr) {
        outbox.emplace_back(std::move(answer), (coordinator.*route.call)(request.body, at));
        settle(at, outbox);
      } else if (request.path == "/v2/status") {
        outbox.emplace_back(std::move(answer), coordinator.status(at));
      } else {
        const auto poll = poll_of(request.query);
        if (!poll) {
          outbox.emplace_back(std::move(answer), poll.error());
        } else {
          waiting.push_back({*poll, std::move(answer), at.now + kHoldSeconds});
          settle(at, outbox);
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
      coordinator.tick(at);
      settle(at, outbox);
    }
    send(outbox);
  }

  void wake_when_due() {
    std::unique_lock lock(mutex);
    while (!stopping) {
      const auto due = coordinator.due();
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
  Impl& state = *impl_;
  http::ServerOptions server;
  server.address = options.listen;
  server.port = options.port;
  server.max_body_bytes = size_t{4} << 20;
  if (options.tls) server.shared_secret = options.secret;
  state.server = std::make_unique<http::Server>(server, [&state](const http::Request& request, http::Answer answer) {
    state.handle(request, std::move(answer));
  });
  state.waker = std::thread([&state] { state.wake_when_due(); });
}

Coordinator::~Coordinator() {
  Impl& state = *impl_;
  Impl::Outbox outbox;
  {
    const std::lock_guard lock(state.mutex);
    state.stopping = true;
    for (auto& one : state.waiting)
      outbox.emplace_back(std::move(one.answer), refuse(503, "the coordinator stops", ""));
    state.waiting.clear();
  }
  Impl::send(outbox);  // so that the server has nobody to wait for
  state.server.reset();
  state.due_changed.notify_all();
  state.waker.join();
}

std::string Coordinator::url() const {
  return impl_->server->url();
}

void Coordinator::tick() {
  impl_->tick();
}

std::optional<int64_t> Coordinator::over() const {
  const std::lock_guard lock(impl_->mutex);
  return impl_->coordinator.over(impl_->clock.monotonic_seconds());
}

}  // namespace sinew::cluster
