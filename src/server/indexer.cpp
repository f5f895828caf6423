#include "server/indexer.h"

#include <exception>
#include <set>

#include "base/clock.h"
#include "registry/registry.h"
#include "web/web.h"

namespace sinew::server {

Indexer::Indexer(store::Store& store, const std::string& root, const std::string& tokens,
                 std::function<void(const std::string& line)> log)
    : log_(std::move(log)), thread_([this, &store, root, tokens] { run(store, root, tokens); }) {}

Indexer::~Indexer() {
  stop();
  thread_.join();
}

void Indexer::run(store::Store& store, const std::string& root, const std::string& tokens) {
  constexpr double kPauseSeconds = 1, kStepSeconds = 0.1;
  constexpr size_t kMaxRemembered = 1000;
  registry::Index index(store, {.root = root,
                                .should_stop = [this] { return stopping_.load(); },
                                .is_admin = [&](const std::string& owner) { return web::is_admin(tokens, owner); }});
  std::set<std::string> logged;
  const auto log = [&](const std::string& problem) {
    if (log_ && logged.size() < kMaxRemembered && logged.insert(problem).second) log_("index: " + problem);
  };
  while (!stopping_) {
    bool unfinished = false;
    try {
      const registry::PassReport report = index.pass();
      for (const std::string& problem : report.problems) log(problem);
      unfinished = report.unfinished;
    } catch (const std::exception& error) {
      log(error.what());
    }
    for (double slept = 0; !stopping_ && !unfinished && slept < kPauseSeconds; slept += kStepSeconds)
      system_clock().sleep_seconds(kStepSeconds);
  }
}

}  // namespace sinew::server
