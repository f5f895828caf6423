// A member's line to the coordinator: one thread speaks (a word at every change and pulse), one listens (a poll that is
// answered when there is news). Both answers say the same things; whichever comes first is acted upon, once.
#include <chrono>
#include <condition_variable>
#include <cstdio>
#include <limits>
#include <thread>

#include "base/error.h"
#include "base/random.h"
#include "cluster/line.h"
#include "cluster/words.h"

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

// What others wait for goes out at once; the rest travels with the next pulse.
bool matters(const Told& before, const Told& after) {
  const auto generation = [](const Told& told) { return told.view ? told.view->generation : Generation(); };
  return before.phase != after.phase || generation(before) != generation(after) || before.lost != after.lost ||
         before.finished != after.finished || before.taken_requests != after.taken_requests;
}

}  // namespace

struct Client::State {
  ClientOptions options;
  ClientEvents events;
  Clock& clock;
  const std::string life;
  MemberId id;
  Line word_line, news_line;

  std::mutex delivering;  // held while an answer is acted upon: events come one at a time, and in order
  mutable std::mutex mutex;
  std::condition_variable changed;
  Told told;
  bool dirty = true;         // something to say before the next pulse
  bool introducing = false;  // the coordinator asked who this is
  bool stopping = false, over = false;
  Generation have;
  std::string key;
  std::vector<ControlRequest> requests;
  std::optional<int64_t> finished;
  bool knows_end = false;  // and the coordinator was not told that yet, or was: it may be told again
  double reached = 0;      // when a coordinator last answered
  double confirmed = -std::numeric_limits<double>::infinity();
  std::string trouble = "no answer yet";
  std::thread speaker, listener;

  State(const ClientOptions& options_given, ClientEvents events_given, Clock& clock_given)
      : options(options_given),
        events(std::move(events_given)),
        clock(clock_given),
        life(new_life(options, this, clock)),
        word_line(options),
        news_line(options),
        reached(clock.monotonic_seconds()) {}

  // ---- joining -----------------------------------------------------------------------------------------------------

  void join() {
    const std::string body = to_json(JoinCall{{options.address, options.host, options.pid, options.identity}, life});
    const double began = clock.monotonic_seconds();
    double pause = kFirstPause;
    for (;;) {
      const auto response = word_line.send("POST", "/v1/join", body, kWordSeconds);
      if (response && joined(*response)) return;
      trouble = response ? trouble_of(*response).error : response.error().what;
      const double waited = clock.monotonic_seconds() - began;
      if (waited + pause > options.patience_seconds) {
        throw Error("no coordinator to join: " + trouble, "is the run still going on, and is this its address?");
      }
      clock.sleep_seconds(pause);
      pause = std::min(2 * pause, kLongestPause);
    }
  }

  bool joined(const http::Response& response) {
    if (response.status >= 500) return false;
    if (response.status != 200) {
      const Trouble refused = trouble_of(response);
      throw Error(refused.error, refused.hint);
    }
    const auto json = parse_json(response.body);
    const auto given = json ? whole_of(*json, "id", 1) : std::nullopt;
    if (!given) return false;
    id = MemberId(*given);
    reached = clock.monotonic_seconds();
    return true;
  }

  // ---- speaking ----------------------------------------------------------------------------------------------------

  Word word_now() const {
    Word word;
    word.id = id;
    word.life = life;
    word.have = have;
    word.key = key;
    word.knows_end = knows_end;
    word.told = told;
    word.acts = told.view ? told.view->generation : Generation();
    if (!introducing) return word;
    word.introduction = Introduction{options.address, options.host, options.pid, options.identity};
    word.requests = requests;
    return word;
  }

  void wait(std::unique_lock<std::mutex>& lock, double seconds, const bool& unless) {
    changed.wait_for(lock, std::chrono::duration<double>(seconds), [&] { return stopping || over || unless; });
  }

  void speak() {
    double pause = kFirstPause;
    std::unique_lock lock(mutex);
    while (!over) {
      wait(lock, options.pulse_seconds, dirty);
      if (over || (stopping && !dirty)) return;
      const bool last = stopping;
      const Word word = word_now();
      dirty = false;
      const double sent = clock.monotonic_seconds();
      lock.unlock();
      const auto response = word_line.send("POST", "/v1/word", to_json(word), kWordSeconds);
      const bool answered = response && take(*response, sent);
      lock.lock();
      if (answered) pause = kFirstPause;
      if (answered || last) continue;
      note_failure(lock, response ? trouble_of(*response).error : response.error().what);
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
    while (!over && !stopping) {
      const std::string target = "/v1/news?id=" + std::to_string(id.value) + "&life=" + life +
                                 "&have=" + std::to_string(have.value) + "&key=" + key +
                                 "&knows_end=" + (knows_end ? "1" : "0");
      const double sent = clock.monotonic_seconds();
      lock.unlock();
      const auto response = news_line.send("GET", target, "", kNewsSeconds);
      const bool answered = response && take(*response, sent);
      lock.lock();
      const bool never = false;
      if (answered && !introducing) {
        pause = kFirstPause;
        continue;
      }
      wait(lock, pause, never);
      pause = std::min(2 * pause, kLongestPause);
    }
  }

  // ---- what an answer says -----------------------------------------------------------------------------------------

  bool take(const http::Response& response, double sent) {
    if (response.status != 200) return false;
    const auto news = news_of(response.body);
    if (!news) return false;
    const std::lock_guard one_at_a_time(delivering);
    std::unique_lock lock(mutex);
    if (over) return true;
    reached = clock.monotonic_seconds();
    if (news->who) {
      introducing = dirty = true;
      changed.notify_all();
      return true;
    }
    introducing = false;
    if (news->out) {
      end(lock, *news->out);
      return true;
    }
    if (news->seated) confirmed = std::max(confirmed, sent);
    act_upon(*news, lock);
    return true;
  }

  void act_upon(const News& news, std::unique_lock<std::mutex>& lock) {
    if (news.view && news.view->generation > have) {
      have = news.view->generation;
      std::erase_if(told.lost, [&](const auto& peer) { return news.view->find(peer.first) == nullptr; });
      lock.unlock();
      if (events.on_view) events.on_view(*news.view);
      lock.lock();
    }
    if (news.requests && news.key != key) {
      key = news.key;
      requests = *news.requests;
      const auto list = requests;
      lock.unlock();
      if (events.on_requests) events.on_requests(list);
      lock.lock();
    }
    if (news.finished && !knows_end) {
      knows_end = dirty = true;
      lock.unlock();
      if (events.on_finished) events.on_finished(*news.finished);
      lock.lock();
      changed.notify_all();
    }
  }

  // Put out, once. Nothing comes after it.
  void end(std::unique_lock<std::mutex>& lock, const std::string& why) {
    over = true;
    confirmed = -std::numeric_limits<double>::infinity();
    changed.notify_all();
    lock.unlock();
    if (events.on_out) events.on_out(why);
    lock.lock();
  }

  void note_failure(std::unique_lock<std::mutex>& lock, const std::string& what) {
    trouble = what;
    if (over || stopping || clock.monotonic_seconds() - reached <= options.patience_seconds) return;
    lock.unlock();
    {
      const std::lock_guard one_at_a_time(delivering);
      std::unique_lock again(mutex);
      if (!over) end(again, "no coordinator for so long that this member gives up: " + what);
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
  return state_->id;
}

void Client::tell(const std::function<void(Told&)>& change) {
  State& state = *state_;
  const std::lock_guard lock(state.mutex);
  const Told before = state.told;
  change(state.told);
  if (!matters(before, state.told)) return;
  state.dirty = true;
  state.changed.notify_all();
}

bool Client::leased(double seconds) const {
  const std::lock_guard lock(state_->mutex);
  return !state_->over && state_->clock.monotonic_seconds() - state_->confirmed < seconds;
}

}  // namespace sinew::cluster
