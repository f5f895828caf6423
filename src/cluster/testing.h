// A coordinator and its members over real HTTP on loopback, for tests. The tests do not depend on the machine's speed:
// they wait for events, with a bound that only a hang reaches.
#pragma once

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <nlohmann/json.hpp>
#include <thread>

#include "base/expected_error.h"
#include "cluster/cluster.h"

namespace sinew::cluster::testing {

using nlohmann::json;
using Phase = Member::Phase;

constexpr double kBound = 60;  // seconds; only a hang takes longer

inline bool wait_for(const std::function<bool()>& condition) {
  Clock& clock = system_clock();
  const double end = clock.monotonic_seconds() + kBound;
  while (!condition()) {
    if (clock.monotonic_seconds() > end) return false;
    clock.sleep_seconds(0.002);
  }
  return true;
}

inline CoordinatorOptions options_for(int64_t wanted) {
  CoordinatorOptions options;
  options.secret = "sesame";
  options.job = "test";
  options.run_directory = "runs/test";
  options.cluster.wanted = wanted;
  options.cluster.silence_seconds = 20;  // tests of silence set a shorter one
  options.cluster.gather_seconds = 30;
  options.cluster.settle_seconds = 3;
  options.cluster.report_seconds = 0.05;
  return options;
}

// A coordinator, and a thread that calls tick().
class Running {
 public:
  explicit Running(const CoordinatorOptions& options) : coordinator_(options, system_clock()) {
    ticks_ = std::thread([this] {
      while (!stop_) {
        coordinator_.tick();
        system_clock().sleep_seconds(0.02);
      }
    });
  }
  ~Running() {
    stop_ = true;
    ticks_.join();
  }
  std::string url() const { return coordinator_.url(); }
  std::optional<int64_t> over() const { return coordinator_.over(); }
  json status() const { return json::parse(call(url(), "sesame", "GET", "/v2/status", "", kBound)); }
  std::string post(const std::string& path, const std::string& body) const {
    return call(url(), "sesame", "POST", path, body, kBound);
  }

 private:
  Coordinator coordinator_;
  std::atomic<bool> stop_ = false;
  std::thread ticks_;
};

// The coordinator's address, as members find it. A coordinator that replaces a dead one sets its own address.
class Address {
 public:
  void set(const std::string& url) {
    const std::lock_guard lock(mutex_);
    url_ = url;
  }
  std::string get() const {
    const std::lock_guard lock(mutex_);
    return url_;
  }

 private:
  mutable std::mutex mutex_;
  std::string url_;
};

class Worker {
 public:
  explicit Worker(Address& address, const std::function<void(ClientOptions&)>& change = nullptr) {
    static std::atomic<int64_t> pids = 1000;
    ClientOptions options;
    options.url = [&address] { return address.get(); };
    options.secret = "sesame";
    options.pid = pid = ++pids;
    options.address = "127.0.0.1:" + std::to_string(pid);
    options.host = "here";
    options.identity = {"job-digest", "a CPU with libraries", "probe-digest"};
    options.pulse_seconds = 0.05;
    if (change) change(options);
    ClientEvents events;
    events.on_view = [this](const View& view) {
      const std::lock_guard lock(mutex_);
      EXPECT_TRUE(views_.empty() || view.generation > views_.back().generation);
      EXPECT_FALSE(fenced_) << "a view after the end";
      views_.push_back(view);
    };
    events.on_fenced = [this](const std::string& why) {
      const std::lock_guard lock(mutex_);
      EXPECT_FALSE(fenced_) << "fenced twice";
      fenced_ = why;
    };
    events.on_requests = [this](const std::vector<ControlRequest>& requests) {
      const std::lock_guard lock(mutex_);
      requests_ = requests;
    };
    events.on_finished = [this](int64_t code) {
      const std::lock_guard lock(mutex_);
      EXPECT_FALSE(finished_) << "finished twice";
      finished_ = code;
    };
    client = std::make_unique<Client>(options, events, system_clock());
  }

  std::optional<View> view() const {
    const std::lock_guard lock(mutex_);
    return views_.empty() ? std::nullopt : std::optional(views_.back());
  }
  std::optional<std::string> fenced() const { return locked(fenced_); }
  std::vector<ControlRequest> requests() const { return locked(requests_); }
  std::optional<int64_t> finished() const { return locked(finished_); }
  MemberId id() const { return client->id(); }

  // Acts by the newest view, as a member does. A joiner catches up at once.
  void act() const {
    const auto newest = view();
    const ViewMember* entry = newest ? newest->find(id()) : nullptr;
    if (entry == nullptr) return;
    client->report([&](MemberReport& report) {
      if (report.view != newest) report.view = newest;
      if (report.phase != Phase::leaving) report.phase = entry->joining ? Phase::caught_up : Phase::computing;
      report.speed = entry->joining ? 0 : 1;
    });
  }

  int64_t pid = 0;
  std::unique_ptr<Client> client;

 private:
  template <typename T>
  T locked(const T& value) const {
    const std::lock_guard lock(mutex_);
    return value;
  }

  mutable std::mutex mutex_;
  std::vector<View> views_;
  std::optional<std::string> fenced_;
  std::vector<ControlRequest> requests_;
  std::optional<int64_t> finished_;
};

using Workers = std::vector<std::unique_ptr<Worker>>;

inline std::vector<MemberId> ids_of(const Workers& workers) {
  std::vector<MemberId> ids;
  for (const auto& worker : workers) ids.push_back(worker->id());
  return ids;
}

// Waits until exactly these workers compute by one view, and lets each report that view.
inline bool settle(const Workers& workers) {
  const bool settled = wait_for([&] {
    for (const auto& worker : workers) worker->act();
    const auto first = workers.front()->view();
    if (!first || first->computing() != ids_of(workers) || first->members.size() != workers.size()) return false;
    return std::all_of(workers.begin(), workers.end(), [&](const auto& worker) { return worker->view() == first; });
  });
  for (const auto& worker : workers) worker->act();  // a view may have come after the last act()
  return settled;
}

inline Workers start(Address& address, int64_t count) {
  Workers workers;
  for (int64_t i = 0; i < count; ++i) workers.push_back(std::make_unique<Worker>(address));
  return workers;
}

}  // namespace sinew::cluster::testing
