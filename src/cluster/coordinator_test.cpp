// A coordinator and its members over real HTTP on loopback. Nothing here depends on how fast the machine is: waits are
// for things to happen, with a bound that only a hang reaches.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <iostream>
#include <nlohmann/json.hpp>
#include <thread>

#include "base/error.h"
#include "cluster/cluster.h"

namespace sinew::cluster {
namespace {

using nlohmann::json;
using Phase = Member::Phase;
using ::testing::HasSubstr;

constexpr double kBound = 60;  // seconds; a hang, not a slow machine

bool wait_for(const std::function<bool()>& condition) {
  Clock& clock = system_clock();
  const double end = clock.monotonic_seconds() + kBound;
  while (!condition()) {
    if (clock.monotonic_seconds() > end) return false;
    clock.sleep_seconds(0.002);
  }
  return true;
}

CoordinatorOptions options_for(int64_t wanted) {
  CoordinatorOptions options;
  options.secret = "sesame";
  options.job = "test";
  options.run_directory = "runs/test";
  options.cluster.wanted = wanted;
  options.cluster.silence_seconds = 20;  // tests that are about silence say so
  options.cluster.gather_seconds = 30;
  options.cluster.settle_seconds = 0.5;
  options.cluster.report_seconds = 0.05;
  return options;
}

// A coordinator with the ticks it is promised.
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
  json status() const { return json::parse(call(url(), "sesame", "GET", "/v1/status", "", kBound)); }
  std::string post(const std::string& path, const std::string& body) const {
    return call(url(), "sesame", "POST", path, body, kBound);
  }

 private:
  Coordinator coordinator_;
  std::atomic<bool> stop_ = false;
  std::thread ticks_;
};

// Where the coordinator is, for members; a successor changes it.
class Place {
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
  explicit Worker(Place& place, const std::function<void(ClientOptions&)>& change = nullptr) {
    static std::atomic<int64_t> pids = 1000;
    ClientOptions options;
    options.url = [&place] { return place.get(); };
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
      EXPECT_FALSE(out_) << "a view after the end";
      views_.push_back(view);
    };
    events.on_out = [this](const std::string& why) {
      const std::lock_guard lock(mutex_);
      EXPECT_FALSE(out_) << "put out twice";
      out_ = why;
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
  std::optional<std::string> out() const { return locked(out_); }
  std::vector<ControlRequest> requests() const { return locked(requests_); }
  std::optional<int64_t> finished() const { return locked(finished_); }
  MemberId id() const { return client->id(); }

  // Acts by the newest view as a member does; a joiner needs no time to catch up.
  void act() const {
    const auto newest = view();
    const Seat* seat = newest ? newest->find(id()) : nullptr;
    if (seat == nullptr) return;
    client->tell([&](Told& told) {
      if (told.view != newest) told.view = newest;
      if (told.phase != Phase::leaving) told.phase = seat->joining ? Phase::caught_up : Phase::computing;
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
  std::optional<std::string> out_;
  std::vector<ControlRequest> requests_;
  std::optional<int64_t> finished_;
};

using Workers = std::vector<std::unique_ptr<Worker>>;

std::vector<MemberId> ids_of(const Workers& workers) {
  std::vector<MemberId> ids;
  for (const auto& worker : workers) ids.push_back(worker->id());
  return ids;
}

// All of them compute by one view, and by nobody else's.
bool settle(const Workers& workers) {
  return wait_for([&] {
    for (const auto& worker : workers) worker->act();
    const auto first = workers.front()->view();
    if (!first || first->computing() != ids_of(workers) || first->seats.size() != workers.size()) return false;
    return std::all_of(workers.begin(), workers.end(), [&](const auto& worker) { return worker->view() == first; });
  });
}

Workers start(Place& place, int64_t count) {
  Workers workers;
  for (int64_t i = 0; i < count; ++i) workers.push_back(std::make_unique<Worker>(place));
  return workers;
}

std::string error_of(const std::function<void()>& action) {
  try {
    action();
  } catch (const Error& error) {
    return std::string(error.what()) + " | " + error.hint;
  }
  return "no error";
}

TEST(Coordinator, MembersFormAGroupTheyAllSeeAlike) {
  Running coordinator(options_for(3));
  Place place;
  place.set(coordinator.url());
  const Workers workers = start(place, 3);
  ASSERT_TRUE(settle(workers));
  const View view = *workers[0]->view();
  EXPECT_TRUE(view.fresh);
  EXPECT_EQ(view.lead(), workers[0]->id());
  EXPECT_EQ(view.find(workers[1]->id())->address, "127.0.0.1:" + std::to_string(workers[1]->pid));
  EXPECT_TRUE(wait_for([&] { return workers[2]->client->leased(kBound); }));
  const json status = coordinator.status();
  EXPECT_EQ(status["members"].size(), 3u);
  EXPECT_EQ(status["lead"], workers[0]->id().value);
  EXPECT_EQ(status["view"]["generation"], view.generation.value);
  EXPECT_EQ(status["members"][1]["pid"], workers[1]->pid);
  EXPECT_EQ(status["job"], "test");
}

TEST(Coordinator, ALaterWorkerJoinsAndComputes) {
  Running coordinator(options_for(1));
  Place place;
  place.set(coordinator.url());
  Workers workers = start(place, 1);
  ASSERT_TRUE(settle(workers));
  workers.push_back(std::make_unique<Worker>(place));
  Worker& joiner = *workers.back();
  ASSERT_TRUE(wait_for([&] { return joiner.view().has_value(); }));
  const View first = *joiner.view();
  ASSERT_NE(first.find(joiner.id()), nullptr);
  EXPECT_TRUE(first.find(joiner.id())->joining);
  EXPECT_EQ(first.find(joiner.id())->donor, workers[0]->id());
  EXPECT_FALSE(first.fresh);
  ASSERT_TRUE(settle(workers));
}

TEST(Coordinator, TheSupervisorTellsOfADeathAndTheOthersGoOn) {
  Running coordinator(options_for(3));
  Place place;
  place.set(coordinator.url());
  Workers workers = start(place, 3);
  ASSERT_TRUE(settle(workers));
  const auto victim = std::move(workers[0]);  // the lead
  workers.erase(workers.begin());
  const json answer =
      json::parse(coordinator.post("/v1/lost", R"({"pid":)" + std::to_string(victim->pid) + R"(,"why":"killed"})"));
  EXPECT_EQ(answer["lost"], json::array({victim->id().value}));
  ASSERT_TRUE(settle(workers));
  EXPECT_THAT(workers[0]->view()->why, HasSubstr("member 1 lost: killed; its work moves to 2 and 3"));
  ASSERT_TRUE(wait_for([&] { return victim->out().has_value(); }));
  EXPECT_EQ(*victim->out(), "killed");
  EXPECT_FALSE(victim->client->leased(kBound));
  ASSERT_TRUE(wait_for([&] { return coordinator.status()["last_recovery"].contains("seconds"); }));
  EXPECT_THAT(error_of([&] { coordinator.post("/v1/lost", R"({"pid":4999999,"why":"x"})"); }),
              HasSubstr("no member here has process 4999999"));
}

TEST(Coordinator, APeerThatMostReportIsOut) {
  Running coordinator(options_for(3));
  Place place;
  place.set(coordinator.url());
  Workers workers = start(place, 3);
  ASSERT_TRUE(settle(workers));
  const MemberId lost = workers[1]->id();
  for (const size_t i : {size_t{0}, size_t{2}}) {
    workers[i]->client->tell([&](Told& told) { told.lost.emplace_back(lost, "connection reset"); });
  }
  const auto victim = std::move(workers[1]);
  workers.erase(workers.begin() + 1);
  ASSERT_TRUE(settle(workers));
  ASSERT_TRUE(wait_for([&] { return victim->out().has_value(); }));
  EXPECT_THAT(*victim->out(), HasSubstr("connection reset (told by 1"));
}

TEST(Coordinator, OfTwoThatReportEachOtherOneStays) {
  Running coordinator(options_for(2));
  Place place;
  place.set(coordinator.url());
  Workers workers = start(place, 2);
  ASSERT_TRUE(settle(workers));
  workers[0]->client->tell([&](Told& told) { told.lost.emplace_back(workers[1]->id(), "cable cut"); });
  workers[1]->client->tell([&](Told& told) { told.lost.emplace_back(workers[0]->id(), "cable cut"); });
  ASSERT_TRUE(wait_for([&] { return workers[0]->out() || workers[1]->out(); }));
  workers.erase(workers.begin() + (workers[0]->out() ? 0 : 1));
  ASSERT_TRUE(settle(workers));
  EXPECT_FALSE(workers[0]->out());
}

TEST(Coordinator, WhoLeavesHandsItsWorkOverFirst) {
  Running coordinator(options_for(2));
  Place place;
  place.set(coordinator.url());
  Workers workers = start(place, 2);
  ASSERT_TRUE(settle(workers));
  const auto leaver = std::move(workers[0]);
  workers.erase(workers.begin());
  leaver->client->tell([](Told& told) { told.phase = Phase::leaving; });
  ASSERT_TRUE(wait_for([&] {
    const auto view = leaver->view();
    return view->find(leaver->id()) != nullptr && view->find(leaver->id())->share == 0;
  }));
  EXPECT_FALSE(leaver->out());
  leaver->act();
  ASSERT_TRUE(wait_for([&] { return leaver->out().has_value(); }));
  EXPECT_THAT(*leaver->out(), HasSubstr("others have its work"));
  ASSERT_TRUE(settle(workers));
}

TEST(Coordinator, RequestsReachEveryoneUntilTheLeadTookThem) {
  Running coordinator(options_for(2));
  Place place;
  place.set(coordinator.url());
  const Workers workers = start(place, 2);
  ASSERT_TRUE(settle(workers));
  coordinator.post("/v1/control", R"({"kind":"learning_rate","value":0.5,"reason":"too fast"})");
  coordinator.post("/v1/control", R"({"kind":"checkpoint"})");
  for (const auto& worker : workers) {
    ASSERT_TRUE(wait_for([&] { return worker->requests().size() == 2; }));
    EXPECT_EQ(worker->requests()[0], (ControlRequest{1, "learning_rate", 0.5, "too fast"}));
    EXPECT_EQ(worker->requests()[1], (ControlRequest{2, "checkpoint", 0, ""}));
  }
  workers[0]->client->tell([](Told& told) { told.taken_requests = 1; });
  for (const auto& worker : workers) {
    ASSERT_TRUE(wait_for([&] { return worker->requests().size() == 1; }));
    EXPECT_EQ(worker->requests()[0].number, 2);
  }
  EXPECT_EQ(json::parse(coordinator.post("/v1/scale", R"({"workers":5})")), json({{"workers", 5}, {"was", 2}}));
  EXPECT_EQ(coordinator.status()["wanted"], 5);
  EXPECT_EQ(coordinator.status()["requests"].size(), 1u);
}

TEST(Coordinator, ASuccessorKnowsWhatTheMembersTell) {
  Place place;
  auto first = std::make_unique<Running>(options_for(3));
  place.set(first->url());
  Workers workers = start(place, 3);
  ASSERT_TRUE(settle(workers));
  first->post("/v1/control", R"({"kind":"evaluate","reason":"curious"})");
  for (const auto& worker : workers) ASSERT_TRUE(wait_for([&] { return worker->requests().size() == 1; }));
  const View before = *workers[0]->view();
  first.reset();
  CoordinatorOptions options = options_for(3);
  options.at_least = Generation(5);
  Running second(options);
  place.set(second.url());
  ASSERT_TRUE(wait_for([&] { return second.status()["members"].size() == 3 && !second.status()["listening"]; }));
  EXPECT_EQ(second.status()["view"]["generation"], before.generation.value) << "nothing changed, so nothing moved";
  EXPECT_EQ(second.status()["requests"].size(), 1u);
  for (const auto& worker : workers) {
    EXPECT_EQ(worker->view(), before);
    EXPECT_TRUE(wait_for([&] { return worker->client->leased(kBound); }));
  }
  second.post("/v1/lost", R"({"id":2,"why":"killed"})");
  ASSERT_TRUE(wait_for([&] { return workers[1]->out().has_value(); }));
  workers.erase(workers.begin() + 1);
  ASSERT_TRUE(settle(workers));
  EXPECT_GE(workers[0]->view()->generation.value, before.generation.value + 1000);
  workers.push_back(std::make_unique<Worker>(place));
  EXPECT_GE(workers.back()->id().value, 1000) << "an id the first may have given";
  ASSERT_TRUE(settle(workers));
}

TEST(Coordinator, ASuccessorPutsOutWhoDoesNotSpeak) {
  Place place, nowhere;
  auto first = std::make_unique<Running>(options_for(2));
  place.set(first->url());
  nowhere.set(first->url());
  Workers workers;
  workers.push_back(std::make_unique<Worker>(place));
  workers.push_back(std::make_unique<Worker>(nowhere));
  ASSERT_TRUE(settle(workers));
  first.reset();
  CoordinatorOptions options = options_for(2);
  options.first_id = MemberId(500);
  Running second(options);
  place.set(second.url());
  const auto deaf = std::move(workers[1]);
  workers.pop_back();
  ASSERT_TRUE(settle(workers));
  EXPECT_THAT(workers[0]->view()->why, HasSubstr("member 2 lost: has not spoken to the new coordinator"));
  nowhere.set(second.url());  // the zombie finds the way back, and hears that the group went on
  ASSERT_TRUE(wait_for([&] { return deaf->out().has_value(); }));
  EXPECT_THAT(*deaf->out(), HasSubstr("the group went on without it"));
}

TEST(Coordinator, WhoIsSilentIsPutOut) {
  CoordinatorOptions options = options_for(2);
  options.cluster.silence_seconds = 3;
  Running coordinator(options);
  Place place;
  place.set(coordinator.url());
  Workers workers = start(place, 1);
  const json mute = json::parse(coordinator.post(
      "/v1/join", R"({"address":"a","host":"h","pid":1,"life":"mute",)"
                  R"("identity":{"job":"job-digest","machine":"a CPU with libraries","probe":"probe-digest"}})"));
  ASSERT_TRUE(wait_for([&] { return workers[0]->view().has_value(); }));
  ASSERT_TRUE(settle(workers));
  EXPECT_THAT(workers[0]->view()->why, HasSubstr("silent for"));
  const json word = {{"id", mute["id"]}, {"life", "mute"},     {"have", 0},          {"key", ""}, {"acts", 0},
                     {"step", 0},        {"phase", "waiting"}, {"durable_step", -1}, {"speed", 0}};
  EXPECT_THAT(json::parse(coordinator.post("/v1/word", word.dump()))["out"].get<std::string>(),
              HasSubstr("silent for"));
}

TEST(Coordinator, TheEndIsToldToEveryone) {
  Running coordinator(options_for(3));
  Place place;
  place.set(coordinator.url());
  const Workers workers = start(place, 3);
  ASSERT_TRUE(settle(workers));
  EXPECT_EQ(coordinator.over(), std::nullopt);
  workers[0]->client->tell([](Told& told) { told.finished = 3; });
  for (const auto& worker : workers) ASSERT_TRUE(wait_for([&] { return worker->finished() == 3; }));
  ASSERT_TRUE(wait_for([&] { return coordinator.over() == 3; }));
  EXPECT_THAT(error_of([&] { Worker late(place); }), HasSubstr("the run is over"));
}

TEST(Coordinator, TheLastWordIsSaidBeforeAClientEnds) {
  Running coordinator(options_for(1));
  Place place;
  place.set(coordinator.url());
  const Workers workers = start(place, 1);
  ASSERT_TRUE(settle(workers));
  workers[0]->client->tell([](Told& told) { told.finished = 0; });
  workers[0]->client.reset();
  EXPECT_EQ(coordinator.status()["finished"], 0);
}

TEST(Coordinator, AWorkerThatWouldComputeOtherNumbersIsRefusedByName) {
  Running coordinator(options_for(1));
  Place place;
  place.set(coordinator.url());
  const Workers workers = start(place, 1);
  ASSERT_TRUE(settle(workers));
  const auto refused = [&](const std::function<void(Identity&)>& change) {
    const std::string text =
        error_of([&] { Worker other(place, [&](ClientOptions& options) { change(options.identity); }); });
    std::cout << text << "\n";
    return text;
  };
  EXPECT_THAT(refused([](Identity& identity) { identity.job = "xyz"; }),
              HasSubstr("refused: another job or other data: its digest is xyz, that of member 1 is job-digest"));
  EXPECT_THAT(refused([](Identity& identity) { identity.machine = "another CPU"; }),
              HasSubstr("it has another CPU, member 1 has a CPU with libraries"));
  EXPECT_THAT(refused([](Identity& identity) { identity.probe = "0"; }), HasSubstr("it computes other numbers"));
  EXPECT_EQ(coordinator.status()["members"].size(), 1u);
}

TEST(Coordinator, WithoutTheTokenNothingIsTold) {
  Running coordinator(options_for(1));
  EXPECT_THAT(error_of([&] { call(coordinator.url(), "guess", "GET", "/v1/status", "", kBound); }),
              HasSubstr("does not carry this run's token"));
  EXPECT_THAT(error_of([&] { call(coordinator.url(), "", "POST", "/v1/scale", R"({"workers":9})", kBound); }),
              HasSubstr("token"));
  EXPECT_EQ(coordinator.status()["wanted"], 1);
  EXPECT_EQ(call(coordinator.url(), "", "GET", "/healthz", "", kBound), R"({"ok":true})");
  Place place;
  place.set(coordinator.url());
  EXPECT_THAT(error_of([&] { Worker thief(place, [](ClientOptions& options) { options.secret = "guess"; }); }),
              HasSubstr("token"));
}

TEST(Coordinator, CallsThatAreWrongSaySo) {
  Running coordinator(options_for(1));
  const struct {
    const char *method, *path, *body, *error;
  } cases[] = {
      {"POST", "/v1/nonsense", "{}", "there is no /v1/nonsense"},
      {"GET", "/v1/join", "", "/v1/join takes POST"},
      {"POST", "/v1/status", "{}", "/v1/status takes GET"},
      {"POST", "/v1/scale", "", "the body is not JSON"},
      {"POST", "/v1/scale", "{\"workers\":", "the body is not JSON"},
      {"POST", "/v1/scale", "[]", "a JSON object is expected"},
      {"POST", "/v1/scale", "{}", "\"workers\" is missing: a whole number, from 1 to 4096"},
      {"POST", "/v1/scale", R"({"workers":0})", "\"workers\" must be a whole number, from 1 to 4096"},
      {"POST", "/v1/scale", R"({"workers":1e99})", "\"workers\" must be"},
      {"POST", "/v1/scale", R"({"workers":"3"})", "\"workers\" must be"},
      {"POST", "/v1/control", R"({"kind":"dance"})", "\"kind\" is none of stop, checkpoint, evaluate"},
      {"POST", "/v1/control", R"({"kind":"learning_rate"})", "must be a factor above 0"},
      {"POST", "/v1/control", R"({"kind":"learning_rate","value":-1})", "must be a factor above 0"},
      {"POST", "/v1/control", R"({"kind":"learning_rate","value":1e999})", "the body is not JSON"},
      {"POST", "/v1/control", R"({"kind":"batch_size","value":0})", "must be a whole number, 1 or more"},
      {"POST", "/v1/control", R"({"kind":"batch_size","value":2.5})", "must be a whole number, 1 or more"},
      {"POST", "/v1/lost", R"({"why":"x"})", "\"id\" or \"pid\" must say who is lost"},
      {"POST", "/v1/lost", R"({"id":7,"why":"x"})", "no member here has id 7"},
      {"POST", "/v1/join", R"({"address":"a","host":"h","pid":1,"life":"x"})", "\"identity\" is missing"},
      {"POST", "/v1/word", R"({"id":-1})", "\"id\" must be a whole number, 1 or more"},
      {"GET", "/v1/news?id=0&have=0", "", "\"id\" and \"have\" must be whole numbers"},
  };
  for (const auto& one : cases) {
    EXPECT_THAT(error_of([&] { call(coordinator.url(), "sesame", one.method, one.path, one.body, kBound); }),
                HasSubstr(one.error))
        << one.path << " " << one.body;
  }
  EXPECT_THAT(error_of([&] { coordinator.post("/v1/scale", std::string(5 << 20, ' ')); }), HasSubstr("the body is larger than"));
}

TEST(Client, WithoutACoordinatorJoiningEnds) {
  Place place;
  place.set("http://127.0.0.1:1");
  EXPECT_THAT(error_of([&] { Worker lonely(place, [](ClientOptions& options) { options.patience_seconds = 0.3; }); }),
              HasSubstr("no coordinator to join: cannot connect to 127.0.0.1:1"));
}

TEST(Client, WhoseCoordinatorStaysAwayGivesUp) {
  Place place;
  auto coordinator = std::make_unique<Running>(options_for(1));
  place.set(coordinator->url());
  Worker worker(place, [](ClientOptions& options) { options.patience_seconds = 2; });
  ASSERT_TRUE(wait_for([&] { return worker.view().has_value(); }));
  coordinator.reset();
  ASSERT_TRUE(wait_for([&] { return worker.out().has_value(); }));
  EXPECT_THAT(*worker.out(), HasSubstr("no coordinator for so long"));
  EXPECT_FALSE(worker.client->leased(kBound));
}

}  // namespace
}  // namespace sinew::cluster
