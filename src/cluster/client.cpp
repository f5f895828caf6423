// Runs the threads around MembershipClient. One thread sends a heartbeat at every change and every pulse. The other
// holds a long poll, which the coordinator answers when it has something for the member. Answers of both kinds have the
// same contents. The client acts once on each new view, request or event: on the first answer that brings it.
#include <chrono>
#include <condition_variable>
#include <thread>

#include "base/error.h"
#include "base/hex.h"
#include "cluster/coordinator_connection.h"
#include "cluster/membership_client.h"
#include "cluster/protocol.h"

namespace sinew::cluster {
namespace {

constexpr double kHeartbeatSeconds = 2;  // longest wait for the answer to a heartbeat
constexpr double kUpdatesSeconds = 10;   // longest wait for the answer to a poll; the coordinator answers within five
constexpr double kFirstPause = 0.02;  // pause after a failed call; each further failure doubles it, up to kLongestPause
constexpr double kLongestPause = 0.25;

std::string reason_in(const std::expected<http::Response, CallFailure>& response) {
  return response ? error_in(*response).what() : response.error().what;
}

}  // namespace

struct Client::Impl {
  ClientOptions options;
  ClientEvents events;
  Clock& clock;
  CoordinatorConnection heartbeat_connection, updates_connection;

  std::mutex delivering;  // held while the client acts on an answer, so that events come one at a time and in order
  mutable std::mutex mutex;
  std::condition_variable changed;
  MembershipClient membership;
  bool urgent = true;  // true: a heartbeat must be sent before the next pulse
  bool stopping = false;
  std::optional<View> newest;  // the newest view that came
  std::thread sender, receiver;
  std::unique_ptr<Standby> standby;  // null: this member cannot be elected

  Impl(const ClientOptions& options_given, ClientEvents events_given, Clock& clock_given)
      : options(options_given),
        events(std::move(events_given)),
        clock(clock_given),
        heartbeat_connection([this] { return place(); }),
        updates_connection([this] { return place(); }),
        membership(options, random_hex(16)) {}  // no other incarnation has this name

  CoordinatorPlace place() const { return {options.url(), options.secret}; }

  double unled_seconds() const {
    const std::lock_guard lock(mutex);
    return membership.unled_seconds(clock.monotonic_seconds());
  }

  Candidate candidate() const {
    const std::lock_guard lock(mutex);
    Candidate now;
    now.me = membership.id();
    now.secret = options.secret;
    now.view = newest;
    now.out = membership.over() || membership.is_out();
    now.unled_seconds = membership.unled_seconds(clock.monotonic_seconds());
    return now;
  }

  bool knows_end() const {
    const std::lock_guard lock(mutex);
    return membership.knows_end();
  }

  // ---- joining -----------------------------------------------------------------------------------------------------

  void join() {
    const double began = clock.monotonic_seconds();
    double pause = kFirstPause;
    for (;;) {
      const auto response = heartbeat_connection.send("POST", "/v2/join", membership.join_request(), kHeartbeatSeconds);
      if (response && membership.joined(*response, clock.monotonic_seconds())) return;
      const double waited = clock.monotonic_seconds() - began;
      if (waited + pause > options.patience_seconds) {
        throw Error(kUnreachable, "cannot join the run: " + reason_in(response),
                    "check that the run still goes on and that its coordinator listens at this address");
      }
      clock.sleep_seconds(pause);
      pause = std::min(2 * pause, kLongestPause);
    }
  }

  // ---- sending -----------------------------------------------------------------------------------------------------

  void wait(std::unique_lock<std::mutex>& lock, double seconds, const bool& unless) {
    changed.wait_for(lock, std::chrono::duration<double>(seconds),
                     [&] { return stopping || membership.over() || unless; });
  }

  void send() {
    double pause = kFirstPause;
    std::unique_lock lock(mutex);
    while (!membership.over()) {
      wait(lock, options.pulse_seconds, urgent);
      if (membership.over() || (stopping && !urgent)) return;
      const bool last = stopping;
      const std::string heartbeat = membership.heartbeat();
      urgent = false;
      const double sent = clock.monotonic_seconds();
      lock.unlock();
      const auto response = heartbeat_connection.send("POST", "/v2/heartbeat", heartbeat, kHeartbeatSeconds);
      const bool answered = response && take(*response, sent);
      lock.lock();
      if (answered) pause = kFirstPause;
      if (answered || last) continue;
      count_failure(lock, reason_in(response));
      const bool never = false;
      wait(lock, pause, never);
      pause = std::min(2 * pause, kLongestPause);
      // sends again without waiting for the next pulse; the heartbeat repeats the report of the lost one, with newer
      // changes
      urgent = !stopping;
    }
  }

  // ---- receiving ---------------------------------------------------------------------------------------------------

  void receive() {
    double pause = kFirstPause;
    std::unique_lock lock(mutex);
    while (!membership.over() && !stopping) {
      const std::string target = membership.updates_target();
      const double sent = clock.monotonic_seconds();
      lock.unlock();
      const auto response = updates_connection.send("GET", target, "", kUpdatesSeconds);
      const bool answered = response && take(*response, sent);
      lock.lock();
      const bool never = false;
      if (answered && !membership.introducing()) {
        pause = kFirstPause;
        continue;
      }
      wait(lock, pause, never);
      pause = std::min(2 * pause, kLongestPause);
    }
  }

  void stop() {
    {
      const std::lock_guard lock(mutex);
      stopping = true;
    }
    changed.notify_all();
  }

  // ---- acting on an answer -----------------------------------------------------------------------------------------

  bool take(const http::Response& response, double sent) {
    const std::lock_guard one_at_a_time(delivering);
    ReplyActions actions;
    {
      const std::lock_guard lock(mutex);
      actions = membership.receive(response, sent, clock.monotonic_seconds());
      if (actions.view) newest = actions.view;
      urgent = urgent || actions.send_heartbeat;
      changed.notify_all();
    }
    if (actions.view && events.on_view) events.on_view(*actions.view);
    if (actions.requests && events.on_requests) events.on_requests(*actions.requests);
    if (actions.finished && events.on_finished) events.on_finished(*actions.finished);
    if (actions.fenced && events.on_fenced) events.on_fenced(*actions.fenced);
    return actions.understood;
  }

  void count_failure(std::unique_lock<std::mutex>& lock, const std::string& what) {
    if (stopping) return;
    lock.unlock();
    {
      const std::lock_guard one_at_a_time(delivering);
      std::unique_lock again(mutex);
      const auto fenced = membership.failed(what, clock.monotonic_seconds());
      again.unlock();
      if (fenced && events.on_fenced) events.on_fenced(*fenced);
      changed.notify_all();
    }
    lock.lock();
  }
};

Client::Client(const ClientOptions& options, ClientEvents events, Clock& clock)
    : impl_(std::make_unique<Impl>(options, std::move(events), clock)) {
  Impl* impl = impl_.get();
  impl->join();
  impl->sender = std::thread([impl] { impl->send(); });
  try {
    impl->receiver = std::thread([impl] { impl->receive(); });
    if (options.standby) {
      const StandbyMember member{[impl] { return impl->unled_seconds(); }, [impl] { return impl->candidate(); }};
      impl->standby = std::make_unique<Standby>(*options.standby, member, clock);
    }
  } catch (...) {  // the machine has no thread left
    impl->stop();
    impl->updates_connection.cancel();
    if (impl->receiver.joinable()) impl->receiver.join();
    impl->sender.join();
    throw;
  }
}

Client::~Client() {
  Impl& impl = *impl_;
  impl.stop();
  impl.updates_connection.cancel();
  impl.receiver.join();
  impl.sender.join();  // sends what is left to report, within kHeartbeatSeconds
  if (impl.standby && impl.knows_end()) impl.standby->wait_for_end();
}

MemberId Client::id() const {
  return impl_->membership.id();
}

const Signature& Client::certificate() const {
  return impl_->membership.certificate();
}

void Client::report(const std::function<void(MemberReport&)>& change) {
  Impl& impl = *impl_;
  const std::lock_guard lock(impl.mutex);
  if (!impl.membership.report(change)) return;
  impl.urgent = true;
  impl.changed.notify_all();
}

bool Client::unled() const {
  const std::lock_guard lock(impl_->mutex);
  return impl_->membership.unled(impl_->clock.monotonic_seconds());
}

bool Client::leased(double seconds) const {
  const std::lock_guard lock(impl_->mutex);
  return impl_->membership.leased(impl_->clock.monotonic_seconds(), seconds);
}

}  // namespace sinew::cluster
