// Tests a coordinator with the files that it finds in a run directory: whole, damaged, or of another version.
#include <sys/stat.h>
#include <unistd.h>

#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <mutex>
#include <thread>

#include "base/disk.h"
#include "base/hand_clock.h"
#include "base/process.h"
#include "base/signals.h"
#include "cluster/run_log.h"
#include "cluster/testing.h"

namespace sinew::cluster::testing {
namespace {

class Folder {
 public:
  Folder() {
    std::string name = (std::filesystem::temp_directory_path() / "sinew-coordinator-XXXXXX").string();
    path_ = ::mkdtemp(name.data());
  }
  ~Folder() { std::filesystem::remove_all(path_); }
  const std::string& path() const { return path_; }
  void write(const std::string& name, const std::string& text) const { std::ofstream(path_ + "/" + name) << text; }

 private:
  std::string path_;
};

// Runs a coordinator in the directory until it listens, then stops it. Returns what it wrote into coordinator.json, or
// nullopt if it did not begin; `code` then has the error's code.
std::optional<CoordinatorInfo> info_of_a_coordinator(const Folder& folder, std::string* code = nullptr,
                                                     const std::string& advertise = "") {
  RunCoordinatorOptions options;
  options.advertise = advertise;
  options.run_directory = folder.path();
  SignalQueue stop;
  std::atomic<bool> ended = false;
  std::string error;
  std::thread coordinator([&] {
    error = code_of([&] { run_coordinator(options, stop, system_clock()); });
    ended = true;
  });
  std::optional<CoordinatorInfo> info;
  const auto listens = [&] {
    info = coordinator_info_now(folder.path());
    return ended || (info && info->pid == ::getpid() && !info->url.empty() && !info->exit_code);
  };
  EXPECT_TRUE(wait_for(listens));
  stop.send(SIGTERM);
  coordinator.join();
  info = coordinator_info_now(folder.path());  // what the wait has seen may be from the coordinator before
  if (code != nullptr) *code = error;
  return error.empty() ? info : std::nullopt;
}

// A coordinator of the directory, for which time passes only when the test says so.
class Timed {
 public:
  explicit Timed(const Folder& folder) : folder_(folder) {
    options_.run_directory = folder.path();
    options_.log = [this](const std::string&) { ++lines_; };
    thread_ = std::thread([this] {
      code_ = code_of([&] { run_coordinator(options_, stop_, clock_); });
      ended_ = true;
    });
    EXPECT_TRUE(wait_for([&] { return ended_ || status(); }));
    first_ = info();
  }
  ~Timed() {
    stop_.send(SIGTERM);
    thread_.join();
  }
  void pass(double seconds) { clock_.seconds = clock_.seconds + seconds; }
  // Lets time pass in small parts until the condition holds.
  bool pass_until(const std::function<bool()>& condition) {
    return wait_for([&] {
      pass(0.05);
      return condition();
    });
  }
  // Lets this time pass at once, and waits until the coordinator has looked: it then says that it did not run.
  bool looks_after(double seconds) {
    const int before = lines_;
    pass(seconds);
    return wait_for([&] { return lines_ > before; });
  }
  CoordinatorInfo info() const { return coordinator_info_now(folder_.path()).value_or(CoordinatorInfo()); }
  const CoordinatorInfo& first() const { return first_; }  // what it wrote when it began
  std::optional<CoordinatorStatus> status() const {
    return CoordinatorClient(info().url, info().secret, kBound).status();
  }
  // Returns the code of its refusal of a user's call, or "" if it acts on the call.
  std::string refusal() const {
    return code_of([&] { call(first_.url, first_.secret, "POST", "/v2/scale", R"({"workers":2})", kBound); });
  }
  bool ended() const { return ended_; }
  std::string code() const { return ended_ ? code_ : "it has not ended"; }

 private:
  const Folder& folder_;
  RunCoordinatorOptions options_;
  HandClock clock_;
  SignalQueue stop_;
  std::atomic<int> lines_ = 0;
  std::atomic<bool> ended_ = false;
  std::string code_;
  CoordinatorInfo first_;
  std::thread thread_;
};

// The directory of a run may come from elsewhere.
TEST(RunLog, FollowsNoLinkAndWaitsForNoPipe) {
  const Folder folder;
  folder.write("victim", "as before");
  const std::string path = folder.path() + "/coordinator.log";
  ASSERT_EQ(::symlink("victim", path.c_str()), 0);
  RunLog(folder.path(), "coordinator", system_clock()).write("a sentence");
  EXPECT_EQ(read_text(system_disk(), folder.path() + "/victim"), "as before");
  std::filesystem::remove(path);
  ASSERT_EQ(::mkfifo(path.c_str(), 0600), 0);
  RunLog(folder.path(), "coordinator", system_clock()).write("a sentence");  // returns, although nobody reads
  std::filesystem::remove(path);
  RunLog(folder.path(), "coordinator", system_clock()).write("a sentence");
  EXPECT_NE(read_text(system_disk(), path).find("coordinator: a sentence"), std::string::npos);
}

// A directory in the place of the file can neither be read as a file nor be replaced by one.
TEST(RunCoordinator, ALookThatFailsDoesNotConfirmThatItLeads) {
  const Folder folder;
  Timed coordinator(folder);
  EXPECT_EQ(coordinator.refusal(), "");
  const std::string file = folder.path() + "/coordinator.json";
  std::filesystem::rename(file, file + ".aside");
  std::filesystem::create_directory(file);
  ASSERT_TRUE(coordinator.looks_after(kConfirmSeconds + 0.5));
  EXPECT_EQ(coordinator.refusal(), "COORDINATOR_NOT_READY");
  std::filesystem::remove(file);
  std::filesystem::rename(file + ".aside", file);
  EXPECT_TRUE(coordinator.pass_until([&] { return coordinator.refusal().empty(); }));
  EXPECT_FALSE(coordinator.ended());
  std::filesystem::rename(file, file + ".aside");
  std::filesystem::create_directory(file);
  EXPECT_TRUE(coordinator.pass_until([&] { return coordinator.ended(); }));
  EXPECT_EQ(coordinator.code(), "COORDINATOR_LEAD_UNKNOWN");
}

TEST(RunCoordinator, WritesItsFileAgainIfItIsMissingOrDamaged) {
  const Folder folder;
  Timed coordinator(folder);
  const std::string file = folder.path() + "/coordinator.json";
  for (const char* damage : {"", "{", R"({"version":2,"url":"http://x"})"}) {
    std::filesystem::remove(file);
    if (*damage != '\0') folder.write("coordinator.json", damage);
    EXPECT_TRUE(coordinator.pass_until([&] { return coordinator.info().url == coordinator.first().url; })) << damage;
    EXPECT_EQ(coordinator.info().secret, coordinator.first().secret);
    EXPECT_TRUE(coordinator.pass_until([&] { return coordinator.refusal().empty(); })) << damage;
  }
  EXPECT_FALSE(coordinator.ended());
}

// The first view of a successor must come when the coordinator before it is powerless.
TEST(RunCoordinator, ListensLongerIfTheOneBeforeMayLive) {
  const Folder ended, damaged;
  CoordinatorInfo before;
  before.url = "http://127.0.0.1:1";
  before.secret = new_secret();
  ProcessOptions options;
  options.command = {"/bin/true"};
  before.pid = Process(options).pid();  // it has ended when this line is over
  write_coordinator_info(ended.path(), before);
  damaged.write("coordinator.json", "{");
  Timed sure(ended), cautious(damaged);
  for (Timed* one : {&sure, &cautious}) {
    EXPECT_TRUE(one->status()->listening);
    one->pass(ClusterOptions().settle_seconds + 0.5);
  }
  EXPECT_FALSE(sure.status()->listening);
  EXPECT_TRUE(cautious.status()->listening);
  cautious.pass(kCautiousSettleSeconds);
  EXPECT_FALSE(cautious.status()->listening);
}

TEST(RunCoordinator, AdvertisesAnIpv6AddressInBrackets) {
  for (const char* host : {"::1", "[::1]", "node7.example"}) {
    const Folder folder;
    const auto info = info_of_a_coordinator(folder, nullptr, host);
    ASSERT_TRUE(info);
    const std::string expected = std::string(host) == "::1" ? "[::1]" : host;
    EXPECT_TRUE(info->url.starts_with("http://" + expected + ":")) << info->url;
    EXPECT_GT(http::port_of(info->url), 0) << info->url;
  }
}

TEST(RunCoordinator, ReplacesADamagedCoordinatorFileAndNeverRepeatsNumbers) {
  const Folder folder;
  const auto first = info_of_a_coordinator(folder);
  ASSERT_TRUE(first);
  ASSERT_EQ(first->incarnation, 0);
  int64_t before = 0;
  for (const char* damage : {"", "{", "[]", "null", R"({"version":2,"url":"http://x"})", R"({"version":"two"})"}) {
    folder.write("coordinator.json", damage);
    const auto next = info_of_a_coordinator(folder);
    ASSERT_TRUE(next) << damage;
    EXPECT_NE(next->secret, first->secret);
    EXPECT_EQ(next->secret.size(), first->secret.size());
    EXPECT_GT(next->incarnation, 1'000'000) << "more coordinators than a run can have had";
    EXPECT_GE(next->incarnation, before);
    before = next->incarnation;
    EXPECT_TRUE(std::filesystem::exists(folder.path() + "/coordinator.json.damaged"));
    const auto successor = info_of_a_coordinator(folder);
    ASSERT_TRUE(successor);
    EXPECT_EQ(successor->incarnation, next->incarnation + 1);
    EXPECT_EQ(successor->secret, next->secret);
  }
}

TEST(RunCoordinator, ADamagedFileDoesNotSwitchTlsOff) {
  const Folder folder;
  folder.write("coordinator.json", R"({"version":2,"url":"https://127.0.0.1:4711","sec)");
  const auto info = info_of_a_coordinator(folder);
  ASSERT_TRUE(info);
  EXPECT_TRUE(info->with_tls()) << info->url;
}

TEST(RunCoordinator, RefusesAFileOfALaterVersion) {
  const Folder folder;
  std::string code;
  folder.write("coordinator.json", R"({"version":99})");
  EXPECT_FALSE(info_of_a_coordinator(folder, &code));
  EXPECT_EQ(code, "COORDINATOR_FILE_VERSION");
  std::filesystem::remove(folder.path() + "/coordinator.json");
  folder.write("view.json", R"({"version":99,"generation":1})");
  EXPECT_FALSE(info_of_a_coordinator(folder, &code));
  EXPECT_EQ(code, "COORDINATOR_FILE_VERSION");
  folder.write("view.json", R"({"generation":1,"members":[]})");
  EXPECT_FALSE(info_of_a_coordinator(folder, &code));
  EXPECT_EQ(code, "COORDINATOR_FILE_VERSION") << "version 1 named no version";
}

TEST(RunCoordinator, RefusesATokenThatWasRevokedBeforeItStarted) {
  const Folder folder;
  const auto first = info_of_a_coordinator(folder);
  ASSERT_TRUE(first);
  const std::string token = new_join_token(first->secret, 9'000'000'000),
                    other = new_join_token(first->secret, 9'000'000'000);
  record_revocation(system_disk(), folder.path(), id_of_token(token), 0);
  RunCoordinatorOptions options;
  options.run_directory = folder.path();
  SignalQueue stop;
  std::thread coordinator([&] { run_coordinator(options, stop, system_clock()); });
  const auto answers = [&] {
    const auto info = coordinator_info_now(folder.path());
    return info && CoordinatorClient(info->url, other, kBound).status();
  };
  EXPECT_TRUE(wait_for(answers));
  const auto info = coordinator_info_now(folder.path());
  EXPECT_EQ(code_of([&] { call(info->url, token, "GET", "/v2/status", "", kBound); }), "COORDINATOR_TOKEN_REVOKED");
  stop.send(SIGTERM);
  coordinator.join();
}

TEST(RunCoordinator, IgnoresADamagedView) {
  for (const char* damage : {"", "{", "[]", "null", "{}", R"({"version":null})", R"({"version":2,"members":1})"}) {
    const Folder folder;
    folder.write("view.json", damage);
    EXPECT_TRUE(info_of_a_coordinator(folder)) << damage;
  }
}

TEST(RunCoordinator, AMemberKnowsByTheFilesWhetherItIsOneOfTheLast) {
  const Folder folder;
  const auto why = [&](int64_t id) { return why_not_last(folder.path(), MemberId(id)); };
  CoordinatorInfo info;
  info.secret = "secret";
  info.url = "http://127.0.0.1:1";
  write_coordinator_info(folder.path(), info);
  EXPECT_EQ(why(7), "") << "no coordinator ran here: a worker that joined by a URL has the directory to itself";
  info.pid = 4711;
  write_coordinator_info(folder.path(), info);
  EXPECT_THAT(why(7), HasSubstr("another attempt of the run has begun"));
  View view;
  view.generation = Generation(3);
  view.members = {{.id = MemberId(7), .address = "a", .share = 1, .joining = false, .donor = {}},
                  {.id = MemberId(9), .address = "b", .share = 1, .joining = true, .donor = MemberId(7)}};
  json document = json::parse(to_json(view));
  document["version"] = 2;
  folder.write("view.json", document.dump());
  EXPECT_EQ(why(7), "");
  EXPECT_THAT(why(8), HasSubstr("went on without this worker"));
  EXPECT_THAT(why(9), HasSubstr("went on without this worker")) << "it does not have the state yet";
  folder.write("view.json", "{");
  EXPECT_NE(why(7), "") << "nobody knows";
  folder.write("view.json", document.dump());
  info.exit_code = 0;
  write_coordinator_info(folder.path(), info);
  EXPECT_THAT(why(7), HasSubstr("has ended"));
}

}  // namespace
}  // namespace sinew::cluster::testing
