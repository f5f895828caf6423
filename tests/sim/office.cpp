#include "office.h"

#include <map>
#include <sstream>

namespace sinew::sim {
namespace {

constexpr double kTickSeconds = 0.05, kHoldSeconds = 5;  // as in supervise/coordinator.cpp and cluster/coordinator.cpp

http::Response response_of(cluster::Reply reply) {
  http::Response response;
  response.status = reply.status;
  response.body = std::move(reply.body);
  return response;
}

std::map<std::string, std::string> query_of(const std::string& target) {
  std::map<std::string, std::string> query;
  std::istringstream words(target.substr(target.find('?') + 1));
  for (std::string word; std::getline(words, word, '&');) {
    const size_t equal = word.find('=');
    query[word.substr(0, equal)] = word.substr(equal + 1);
  }
  return query;
}

}  // namespace

Office::Office(World& world, int64_t pid_given, const cluster::CoordinatorOptions& options, const RunFiles& files)
    : pid(pid_given),
      process(world),
      world_(world),
      files_(files),
      term_(options.term),
      coordinator_(options, moment()) {
  tick();
}

void Office::tick() {
  if (const double now = world_.now(); now >= next_look_) {
    next_look_ = now + cluster::kLookAtFileSeconds;
    if (files_.coordinators - 1 > term_) {
      coordinator_.supersede(files_.coordinators - 1, "coordinator.json", moment());
    } else {
      coordinator_.confirm(now);
    }
  }
  coordinator_.tick(moment());
  settle();
  process.after(kTickSeconds, [this] { tick(); });
}

cluster::Reply Office::reply(const std::string& method, const std::string& path, const std::string& body) {
  if (method == "GET") return coordinator_.status(moment());
  if (path == "/v2/join") return coordinator_.join(body, moment());
  if (path == "/v2/heartbeat") return coordinator_.heartbeat(body, moment());
  if (path == "/v2/lost") return coordinator_.lost(body, moment());
  if (path == "/v2/scale") return coordinator_.scale(body, moment());
  return coordinator_.control(body, moment());
}

void Office::handle(const std::string& method, const std::string& target, const std::string& body, Answer answer) {
  if (auto refused = coordinator_.refuse_without_lead(world_.now()); refused && target != "/v2/status")
    return answer(response_of(*std::move(refused)));
  if (target.starts_with("/v2/updates?")) {
    const auto poll = cluster::poll_of(query_of(target));
    if (!poll) return answer(response_of(poll.error()));
    coordinator_.hear(*poll, moment());
    waiting_.push_back({*poll, std::move(answer), world_.now() + kHoldSeconds});
  } else {
    answer(response_of(reply(method, target, body)));
  }
  settle();
}

// Answers every waiting poll that has updates or has waited long enough.
void Office::settle() {
  const auto refused = coordinator_.refuse_without_lead(world_.now());
  if (refused && !superseded()) return;
  for (auto one = waiting_.begin(); one != waiting_.end();) {
    auto reply = refused ? refused : coordinator_.updates(one->poll, moment());
    if (!reply && world_.now() >= one->until) reply = coordinator_.no_updates(one->poll, moment());
    if (!reply) {
      ++one;
      continue;
    }
    one->answer(response_of(std::move(*reply)));
    one = waiting_.erase(one);
  }
  const auto due = coordinator_.due();
  if (!due) return;
  process.after(std::max(0.0, *due - world_.now()), [this] {
    coordinator_.tick(moment());
    settle();
  });
}

void Office::die() {
  process.die();
  for (Waiting& one : waiting_) one.answer(std::nullopt);
  waiting_.clear();
}

double Post::latency() {
  const double seconds = world_.random.uniform(0.0001, 0.003);
  return world_.chance(0.02) ? seconds * 50 : seconds;
}

void Post::cut(int64_t pid, double seconds) {
  cuts_.insert(pid);
  world_.after(seconds, [this, pid] { cuts_.erase(cuts_.find(pid)); });
}

void Post::call(int64_t pid, const Process& from, const std::string& method, const std::string& target,
                const std::string& body, double timeout_seconds, Answer answer) {
  std::shared_ptr<Office>& connection = connections_[{pid, method}];
  if (!connection) connection = office;
  const auto keep = [this, pid, method, there = connection.get(), answer = std::move(answer)](auto response) {
    std::shared_ptr<Office>& now = connections_[{pid, method}];
    if ((!response || response->status >= 500) && now.get() == there) now.reset();
    answer(std::move(response));
  };
  call_at(connection, pid, from, method, target, body, timeout_seconds, keep);
}

// Calls `answer` once: with the response, or with nullopt if the call fails or the timeout ends first.
void Post::call_at(const std::shared_ptr<Office>& there, int64_t pid, const Process& from, const std::string& method,
                   const std::string& target, const std::string& body, double timeout_seconds, Answer answer) {
  const auto once = [answered = std::make_shared<bool>(false), answer](std::optional<http::Response> response) {
    if (!std::exchange(*answered, true)) answer(std::move(response));
  };
  from.after(timeout_seconds, [once] { once(std::nullopt); });
  if (cuts_.contains(pid)) return;
  if (!there) return from.after(latency(), [once] { once(std::nullopt); });
  const auto back = [this, pid, &from, once](std::optional<http::Response> response) {
    if (!cuts_.contains(pid)) from.after(latency(), [once, response] { once(response); });
  };
  world_.after(latency(), [there, method, target, body, back] {
    if (!there->process.alive()) return back(std::nullopt);
    // A suspended process handles the call when it continues.
    there->process.after(
        0, [there = there.get(), method, target, body, back] { there->handle(method, target, body, back); });
  });
}

}  // namespace sinew::sim
