// Simulates the time, the random choices and the processes of a run. There is only one real thread. Everything that
// happens is an event of one queue, and every choice comes from one random stream. So a seed always gives the same
// sequence of events, which is called a story.
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "base/clock.h"
#include "base/random.h"

namespace sinew::sim {

using Event = std::function<void()>;

class World final : public Clock {
 public:
  explicit World(uint64_t seed);

  RandomStream random;
  bool chance(double probability) { return random.uniform() < probability; }

  double now() const { return now_; }
  void after(double seconds, Event event);
  // Runs the events of the next `seconds`, or until stop() is called. Returns false if no event is left.
  bool run(double seconds);
  void stop() { stopped_ = true; }
  bool stopped() const { return stopped_; }

  void say(const std::string& text);
  const std::vector<std::string>& log() const { return log_; }

  double monotonic_seconds() const override { return now_; }
  double wall_seconds() const override { return 1.8e9 + now_; }
  void sleep_seconds(double seconds) override;  // only a fiber may sleep

 private:
  double now_ = 1000;
  int64_t scheduled_ = 0;
  bool stopped_ = false;
  std::map<std::pair<double, int64_t>, Event> events_;  // ordered by time, then by order of creation
  std::vector<std::string> log_;
};

// A simulated process, which can be killed, suspended (stop) and continued (go_on). Its events are dropped after its
// death, and are delayed while it is suspended.
class Process {
 public:
  explicit Process(World& world) : world_(world), life_(std::make_shared<Life>()) {}
  Process(const Process&) = delete;
  Process& operator=(const Process&) = delete;

  void after(double seconds, Event event) const;
  void die() const;
  void stop() const { life_->stopped = true; }
  void go_on() const;
  bool alive() const { return life_->alive; }
  bool stopped() const { return life_->stopped; }

 private:
  struct Life {
    bool alive = true, stopped = false;
    std::deque<Event> waiting;
  };
  static void happen(const std::shared_ptr<Life>& life, Event event);

  World& world_;
  std::shared_ptr<Life> life_;
};

}  // namespace sinew::sim
