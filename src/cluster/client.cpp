// A member's line to the coordinator: one thread speaks (a word at every change and pulse), one listens (a poll that is
// answered when there is news). Both answers say the same things; whichever comes first is acted upon, once.
#include <chrono>
#include <condition_variable>
#include <cstdio>
#include <thread>

#include "base/error.h"
#include "base/random.h"
#include "cluster/conversation.h"
#include "cluster/line.h"

namespace sinew::cluster {
namespace {

constexpr double kWordSeconds = 2;    // for the answer to a word
constexpr double kNewsSeconds = 10;   // for news; the coordinator answers within five
constexpr double kFirstPause = 0.02;  // after a failure; doubles up to
constexpr double kLongestPause = 0.25;

// A name for this life that no other has.
std::string new_life(const ClientOptions& options, const void* self, Clock& clock) {
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

struct Client::State {
  ClientOptions options;
  ClientEvents events;
  Clock& clock;
  Line word_line, news_line;

  std::mutex delivering;  // held while an answer is acted upon: events come one at a time, and in order
  mutable std::mutex mutex;
  std::condition_variable changed;
  Conversation talk;
  bool dirty = true;  // something to say before the next pulse
  bool stopping = false;
  std::thread speaker, listener;

  State(const ClientOptions& options_given, ClientEvents events_given, Clock& clock_given)
      : options(options_given),
        events(std::move(events_given)),
        clock(clock_given),
        word_line(options),
        news_line(options),
        talk(options, new_life(options, this, clock)) {}

  // ---- joining -----------------------------------------------------------------------------------------------------

  void join() {
    const std::string body = talk.join_call();
    const double began = clock.monotonic_seconds();
    double pause = kFirstPause;
    for (;;) {
      const auto response = word_line.send("POST", "/v1/join", body, kWordSeconds);
      if (response && talk.joined(*response, clock.monotonic_seconds())) return;
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
    changed.wait_for(lock, std::chrono::duration<double>(seconds), [&] { return stopping || talk.over() || unless; });
  }

  void speak() {
    double pause = kFirstPause;
    std::unique_lock lock(mutex);
    while (!talk.over()) {
      wait(lock, options.pulse_seconds, dirty);
      if (talk.over() || (stopping && !dirty)) return;
      const bool last = stopping;
      const std::string word = talk.word();
      dirty = false;
      const double sent = clock.monotonic_seconds();
      lock.unlock();
      const auto response = word_line.send("POST", "/v1/word", word, kWordSeconds);
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
    while (!talk.over() && !stopping) {
      const std::string target = talk.news_target();
      const double sent = clock.monotonic_seconds();
      lock.unlock();
      const auto response = news_line.send("GET", target, "", kNewsSeconds);
      const bool answered = response && take(*response, sent);
      lock.lock();
      const bool never = false;
      if (answered && !talk.introducing()) {
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
      heard = talk.hear(response, sent, clock.monotonic_seconds());
      dirty = dirty || heard.speak;
      changed.notify_all();
    }
    if (heard.view && events.on_view) events.on_view(*heard.view);
    if (heard.requests && events.on_requests) events.on_requests(*heard.requests);
    if (heard.finished && events.on_finished) events.on_finished(*heard.finished);
    if (heard.out && events.on_out) events.on_out(*heard.out);
    return heard.understood;
  }

  void note_failure(std::unique_lock<std::mutex>& lock, const std::string& what) {
    if (stopping) return;
    lock.unlock();
    {
      const std::lock_guard one_at_a_time(delivering);
      std::unique_lock again(mutex);
      const auto out = talk.failed(what, clock.monotonic_seconds());
      again.unlock();
      if (out && events.on_out) events.on_out(*out);
      changed.notify_all();
    }
    lock.lock();
  }
};

Client::Client(const ClientOptions& options, ClientEvents events, Clock& clock)
    : state_(std::make_unique<State>(options, std::move(events), clock)) {
  State* state = state_.get();
  state->join();
  state->speaker = std::thread([state] { state->speak(); });
  state->listener = std::thread([state] { state->listen(); });
}

Client::~Client() {
  State& state = *state_;
  {
    const std::lock_guard lock(state.mutex);
    state.stopping = true;
  }
  state.changed.notify_all();
  state.news_line.cancel();
  state.listener.join();
  state.speaker.join();  // says what is left to say, within kWordSeconds
}

MemberId Client::id() const {
  return state_->talk.id();
}

void Client::tell(const std::function<void(Told&)>& change) {
  State& state = *state_;
  const std::lock_guard lock(state.mutex);
  if (!state.talk.tell(change)) return;
  state.dirty = true;
  state.changed.notify_all();
}

bool Client::leased(double seconds) const {
  const std::lock_guard lock(state_->mutex);
  return state_->talk.leased(state_->clock.monotonic_seconds(), seconds);
}

}  // namespace sinew::cluster
