// A member's line to the coordinator: one thread speaks (a heartbeat at every change and pulse), one listens (a poll
// that is answered when there is news). Both answers say the same things; whichever comes first is acted upon, once.
#include <chrono>
#include <condition_variable>
#include <cstdio>
#include <thread>

#include "base/error.h"
#include "base/random.h"
#include "cluster/line.h"
#include "cluster/membership_client.h"

namespace sinew::cluster {
namespace {

constexpr double kHeartbeatSeconds = 2;  // for the answer to a heartbeat
constexpr double kUpdatesSeconds = 10;   // for news; the coordinator answers within five
constexpr double kFirstPause = 0.02;     // after a failure; doubles up to
constexpr double kLongestPause = 0.25;

// A name for this life that no other has.
std::string new_incarnation(const ClientOptions& options, const void* self, Clock& clock) {
  const auto bits = [](double number) { return static_cast<uint64_t>(number * 1e9); };
  RandomKey key = random_key({static_cast<uint64_t>(options.pid), bits(clock.monotonic_seconds()),
                              bits(clock.wall_seconds()), reinterpret_cast<uintptr_t>(self)});
  key = derive(derive(key, options.host), options.address);
  char text[40];
  std::snprintf(text, sizeof text, "%016llx%016llx", static_cast<unsigned long long>(key.value),
                static_cast<unsigned long long>(derive(key, uint64_t{1}).value));
  return text;
}

std::string trouble_in(const std::expected<http::Response, http::Failure>& response) {
  return response ? trouble_of(*response).error : response.error().what;
}

}  // namespace

struct Client::Impl {
  ClientOptions options;
  ClientEvents events;
  Clock& clock;
  Line heartbeat_line, updates_line;

  std::mutex delivering;  // held while an answer is acted upon: events come one at a time, and in order
  mutable std::mutex mutex;
  std::condition_variable changed;
  MembershipClient membership;
  bool dirty = true;  // something to say before the next pulse
  bool stopping = false;
  std::thread speaker, listener;

  Impl(const ClientOptions& options_given, ClientEvents events_given, Clock& clock_given)
      : options(options_given),
        events(std::move(events_given)),
        clock(clock_given),
        heartbeat_line(options),
        updates_line(options),
        membership(options, new_incarnation(options, this, clock)) {}

  // ---- joining -----------------------------------------------------------------------------------------------------

  void join() {
    const std::string body = membership.join_request();
    const double began = clock.monotonic_seconds();
    double pause = kFirstPause;
    for (;;) {
      const auto response = heartbeat_line.send("POST", "/v2/join", body, kHeartbeatSeconds);
      if (response && membership.joined(*response, clock.monotonic_seconds())) return;
      const double waited = clock.monotonic_seconds() - began;
      if (waited + pause > options.patience_seconds) {
        throw Error("no coordinator to join: " + trouble_in(response),
                    "is the run still going on, and is this its address?");
      }
      clock.sleep_seconds(pause);
      pause = std::min(2 * pause, kLongestPause);
    }
  }

  // ---- speaking ----------------------------------------------------------------------------------------------------

  void wait(std::unique_lock<std::mutex>& lock, double seconds, const bool& unless) {
    changed.wait_for(lock, std::chrono::duration<double>(seconds),
                     [&] { return stopping || membership.over() || unless; });
  }

  void speak() {
    double pause = kFirstPause;
    std::unique_lock lock(mutex);
    while (!membership.over()) {
      wait(lock, options.pulse_seconds, dirty);
      if (membership.over() || (stopping && !dirty)) return;
      const bool last = stopping;
      const std::string heartbeat = membership.heartbeat();
      dirty = false;
      const double sent = clock.monotonic_seconds();
      lock.unlock();
      const auto response = heartbeat_line.send("POST", "/v2/heartbeat", heartbeat, kHeartbeatSeconds);
      const bool answered = response && take(*response, sent);
      lock.lock();
      if (answered) pause = kFirstPause;
      if (answered || last) continue;
      note_failure(lock, trouble_in(response));
      const bool never = false;
      wait(lock, pause, never);
      pause = std::min(2 * pause, kLongestPause);
      dirty = !stopping;  // it goes out again, with whatever came since
    }
  }

  // ---- listening ---------------------------------------------------------------------------------------------------

  void listen() {
    double pause = kFirstPause;
    std::unique_lock lock(mutex);
    while (!membership.over() && !stopping) {
      const std::string target = membership.updates_target();
      const double sent = clock.monotonic_seconds();
      lock.unlock();
      const auto response = updates_line.send("GET", target, "", kUpdatesSeconds);
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

  // ---- what an answer says -----------------------------------------------------------------------------------------

  bool take(const http::Response& response, double sent) {
    const std::lock_guard one_at_a_time(delivering);
    Heard heard;
    {
      const std::lock_guard lock(mutex);
      heard = membership.hear(response, sent, clock.monotonic_seconds());
      dirty = dirty || heard.speak;
      changed.notify_all();
    }
    if (heard.view && events.on_view) events.on_view(*heard.view);
    if (heard.requests && events.on_requests) events.on_requests(*heard.requests);
    if (heard.finished && events.on_finished) events.on_finished(*heard.finished);
    if (heard.fenced && events.on_fenced) events.on_fenced(*heard.fenced);
    return heard.understood;
  }

  void note_failure(std::unique_lock<std::mutex>& lock, const std::string& what) {
    if (stopping) return;
    lock.unlock();
    {
      const std::lock_guard one_at_a_time(delivering);
      std::unique_lock again(mutex);
      const auto out = membership.failed(what, clock.monotonic_seconds());
      again.unlock();
      if (out && events.on_fenced) events.on_fenced(*out);
      changed.notify_all();
    }
    lock.lock();
  }
};

Client::Client(const ClientOptions& options, ClientEvents events, Clock& clock)
    : impl_(std::make_unique<Impl>(options, std::move(events), clock)) {
  Impl* state = impl_.get();
  state->join();
  state->speaker = std::thread([state] { state->speak(); });
  state->listener = std::thread([state] { state->listen(); });
}

Client::~Client() {
  Impl& state = *impl_;
  {
    const std::lock_guard lock(state.mutex);
    state.stopping = true;
  }
  state.changed.notify_all();
  state.updates_line.cancel();
  state.listener.join();
  state.speaker.join();  // says what is left to say, within kHeartbeatSeconds
}

MemberId Client::id() const {
  return impl_->membership.id();
}

void Client::report(const std::function<void(MemberReport&)>& change) {
  Impl& state = *impl_;
  const std::lock_guard lock(state.mutex);
  if (!state.membership.report(change)) return;
  state.dirty = true;
  state.changed.notify_all();
}

bool Client::leased(double seconds) const {
  const std::lock_guard lock(impl_->mutex);
  return impl_->membership.leased(impl_->clock.monotonic_seconds(), seconds);
}

}  // namespace sinew::cluster
