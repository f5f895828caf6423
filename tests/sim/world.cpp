#include "world.h"

#include <cstdio>

#include "base/check.h"
#include "fiber.h"

namespace sinew::sim {

World::World(uint64_t seed) : random(derive(random_key({seed}), "story")) {}

void World::after(double seconds, Event event) {
  SINEW_CHECK(seconds >= 0, seconds);
  events_.emplace(std::pair(now_ + seconds, ++scheduled_), std::move(event));
}

bool World::run(double seconds) {
  const double end = now_ + seconds;
  while (!stopped_ && !events_.empty() && events_.begin()->first.first <= end) {
    auto next = events_.extract(events_.begin());
    now_ = std::max(now_, next.key().first);
    next.mapped()();
  }
  if (!stopped_) now_ = std::max(now_, end);
  return !events_.empty();
}

void World::say(const std::string& text) {
  char time[32];
  std::snprintf(time, sizeof time, "%9.4f  ", now_ - 1000);
  log_.push_back(time + text);
}

void World::sleep_seconds(double seconds) {
  SINEW_CHECK(Fiber::current() != nullptr, seconds);
  Fiber::current()->sleep(seconds);
}

void Process::happen(const std::shared_ptr<Life>& life, Event event) {
  if (!life->alive) return;
  if (life->stopped) {
    life->waiting.push_back(std::move(event));
  } else {
    event();
  }
}

void Process::after(double seconds, Event event) const {
  world_.after(seconds, [life = life_, event = std::move(event)]() mutable { happen(life, std::move(event)); });
}

void Process::die() const {
  life_->alive = false;
  life_->waiting.clear();
}

void Process::go_on() const {
  life_->stopped = false;
  for (Event& event : std::exchange(life_->waiting, {})) after(0, std::move(event));
}

}  // namespace sinew::sim
