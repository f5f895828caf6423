// Tests what limits a token: scope, expiry, rotation, revocation and quotas. Tests that the access log says what a
// caller did, and holds no secret.
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <mutex>

#include "base/disk.h"
#include "base/expected_error.h"
#include "web/access_log.h"
#include "web/testing.h"
#include "web/upload_quota.h"

namespace sinew::web {
namespace {

TokenRights submit_rights() {
  TokenRights rights;
  rights.role = Role::kSubmit;
  return rights;
}

TEST(Scopes, MatchByStars) {
  EXPECT_TRUE(fits_scope({"*"}, ""));
  EXPECT_TRUE(fits_scope({"a", "team-*"}, "team-x"));
  EXPECT_TRUE(fits_scope({"*a*b"}, "xaaybcb"));
  EXPECT_FALSE(fits_scope({"team-*"}, "team"));
  EXPECT_FALSE(fits_scope({"a*b"}, "abc"));
  EXPECT_FALSE(fits_scope({}, "a"));
  EXPECT_FALSE(fits_scope({std::string(400, '*') + "b"}, std::string(400, 'a')));
  EXPECT_EQ(scope_of("a,b*"), (std::vector<std::string>{"a", "b*"}));
}

TEST(Tokens, AreStoredAsHashesInAPrivateFile) {
  const Folder folder;
  const std::string path = folder / "tokens.json", file = folder / "secret";
  TokenRights rights = submit_rights();
  rights.experiments = {"digits"};
  rights.expires_ms = 9'000'000'000'000;
  rights.requests_per_second = 5;
  rights.upload_bytes = 7;
  rights.upload_bytes_per_day = 8;
  const std::string secret = add_token(path, "ci", rights, file);
  EXPECT_EQ(read_text(system_disk(), file), secret + "\n");
  for (const std::string& each : {path, file}) {
    struct stat facts {};
    ASSERT_EQ(::stat(each.c_str(), &facts), 0);
    EXPECT_EQ(facts.st_mode & 0777, 0600U) << each;
  }
  EXPECT_EQ(read_text(system_disk(), path).find(secret.substr(6)), std::string::npos);
  const Token token = read_tokens(path).at(0);
  EXPECT_EQ(token.rights.experiments, rights.experiments);
  EXPECT_EQ(token.rights.models, std::vector<std::string>{"*"});
  EXPECT_EQ(token.rights.expires_ms, rights.expires_ms);
  EXPECT_EQ(token.rights.requests_per_second, 5);
  EXPECT_EQ(token.rights.upload_bytes, 7);
  EXPECT_EQ(token.rights.upload_bytes_per_day, 8);
  rights.models = {};
  EXPECT_EQ(code_of([&] { add_token(path, "ci", rights); }), "SERVER_BAD_TOKEN_SCOPE");
}

TEST(Tokens, AFileOfAnEarlierVersionIsRead) {
  const Folder folder;
  write_durably(system_disk(), folder / "tokens.json",
                R"({"tokens": [{"name": "a", "role": "submit", "salt": "1", "sha256": "2", "made_ms": 3}]})");
  const Token token = read_tokens(folder / "tokens.json").at(0);
  EXPECT_EQ(token.rights.role, Role::kSubmit);
  EXPECT_EQ(token.rights.experiments, std::vector<std::string>{"*"});
  EXPECT_EQ(token.rights.expires_ms, 0);
}

TEST(Tokens, EndAtTheirTime) {
  HandClock clock;
  TestServer test(0, {}, clock);
  TokenRights rights = submit_rights();
  rights.expires_ms = static_cast<int64_t>(clock.wall_seconds() * 1000) + 5000;
  test.add("short", rights);
  EXPECT_EQ(test.call("GET", "/api/v1/runs", "", "short").status, 200);
  clock.seconds = clock.seconds + 5.001;
  EXPECT_EQ(test.call("GET", "/api/v1/runs", "", "short").status, 401);
}

TEST(Tokens, KeepTheirRightsThroughARotation) {
  HandClock clock;
  TestServer test(0, {}, clock);
  const std::string path = test.folder / "tokens.json", before = test.secrets["s"];
  const auto status = [&](const std::string& secret) {
    test.secrets["x"] = secret;
    return test.call("GET", "/api/v1/runs", "", "x").status;
  };
  const std::string run = new_run(test, "x", "s");
  const std::string after = rotate_token(path, "s", 60, {}, "", clock);
  EXPECT_EQ(status(before), 200) << "within the overlap";
  EXPECT_EQ(status(after), 200);
  EXPECT_EQ(post(test, "/runs/set-tag", {{"run_id", run}, {"key", "k"}, {"value", "v"}}, "x"), 200) << "the same owner";
  clock.seconds = clock.seconds + 61;
  EXPECT_EQ(status(before), 401);
  EXPECT_EQ(status(after), 200);
  const std::string last = rotate_token(path, "s", 0, {}, "", clock);
  EXPECT_EQ(status(after), 401);
  EXPECT_EQ(status(last), 200);
  EXPECT_EQ(code_of([&] { rotate_token(path, "nobody", 0); }), "SERVER_NO_TOKEN");
}

TEST(Tokens, StopAtOnceWhenTheyAreRemoved) {
  StoppedClock clock;
  TestServer test(0, {}, clock);
  EXPECT_EQ(test.call("GET", "/api/v1/runs", "", "s").status, 200);
  EXPECT_TRUE(remove_token(test.folder / "tokens.json", "s"));
  EXPECT_EQ(test.call("GET", "/api/v1/runs", "", "s").status, 401);
  EXPECT_EQ(test.call("GET", "/api/v1/runs", "", "r").status, 200);
}

TEST(Tokens, AreReadOnlyFromAFileThatNobodyElseMayChange) {
  const Folder folder;
  const std::string path = folder / "tokens.json";
  add_token(path, "a", Role::kAdmin);
  ASSERT_EQ(::chmod(path.c_str(), 0620), 0);
  EXPECT_EQ(code_of([&] { read_tokens(path); }), "FILE_UNTRUSTED");
  ASSERT_EQ(::chmod(path.c_str(), 0600), 0);
  EXPECT_EQ(read_tokens(path).size(), 1U);
}

TEST(Tokens, OfANameExistOnce) {
  const Folder folder;
  const std::string path = folder / "tokens.json", secret = add_token(path, "ci", Role::kRead);
  EXPECT_EQ(code_of([&] { add_token(path, "ci", Role::kAdmin); }), "SERVER_TOKEN_EXISTS");
  EXPECT_NE(find_token(read_tokens(path), secret, 0), nullptr);
  EXPECT_TRUE(remove_token(path, "ci"));
  add_token(path, "ci", Role::kAdmin);
  EXPECT_TRUE(is_admin(path, "ci"));
  EXPECT_TRUE(is_admin(path, kLocalCaller));
  EXPECT_FALSE(is_admin(path, "nobody"));
}

TEST(Scopes, OfAnExperimentAreForItsNameAndNotForAnId) {
  TestServer test;
  TokenRights rights = submit_rights();
  rights.experiments = {"team-a*"};
  test.add("team", rights);
  const PlainJson made = test.call("POST", kMlflow + "/experiments/create", R"({"name": "team-a/x"})").json;
  EXPECT_EQ(post(test, "/experiments/create", {{"name", made["experiment_id"]}}, "team"), 403);
}

TEST(Scopes, HoldForTheModelOfAMetric) {
  TestServer test;
  TokenRights rights;
  rights.role = Role::kAdmin;
  rights.experiments = {"team-a*"};
  test.add("boss", rights);
  const PlainJson made = test.call("POST", kMlflow + "/experiments/create", R"({"name": "team-a/x"})").json;
  const PlainJson run =
      test.call("POST", kMlflow + "/runs/create", PlainJson{{"experiment_id", made["experiment_id"]}}.dump(), "boss")
          .json;
  const auto log = [&](const PlainJson& experiment) {
    const PlainJson model =
        test.call("POST", kMlflow + "/logged-models", PlainJson{{"experiment_id", experiment}, {"name", "n"}}.dump())
            .json;
    const PlainJson metric{
        {"run_id", run["run"]["info"]["run_id"]},        {"key", "loss"}, {"value", 1}, {"timestamp", 1}, {"step", 1},
        {"model_id", model["model"]["info"]["model_id"]}};
    return post(test, "/runs/log-metric", metric, "boss");
  };
  EXPECT_EQ(log("0"), 403);
  EXPECT_EQ(log(made["experiment_id"]), 200);
}

TEST(Scopes, LimitWhatATokenChanges) {
  TestServer test;
  TokenRights rights = submit_rights();
  rights.experiments = {"team-a*"};
  rights.models = {"a-*"};
  test.add("team", rights);
  rights.role = Role::kAdmin;
  test.add("boss", rights);
  EXPECT_EQ(post(test, "/experiments/create", {{"name", "team-b"}}, "team"), 403);
  EXPECT_EQ(post(test, "/experiments/create", {{"name", "team-b"}}, "boss"), 403);
  const PlainJson made = test.call("POST", kMlflow + "/experiments/create", R"({"name": "team-a/x"})", "team").json;
  const std::string id = made["experiment_id"];
  EXPECT_EQ(post(test, "/experiments/update", {{"experiment_id", id}, {"new_name", "team-b"}}, "team"), 403);
  EXPECT_EQ(post(test, "/runs/create", {{"experiment_id", id}}, "team"), 200);
  EXPECT_EQ(post(test, "/logged-models", {{"experiment_id", id}}, "team"), 200);
  const Reply refused = test.call("POST", kMlflow + "/runs/create", R"({"experiment_id": "0"})", "team");
  EXPECT_EQ(refused.status, 403);
  EXPECT_EQ(refused.json["code"], "API_OUT_OF_SCOPE");
  EXPECT_EQ(post(test, "/logged-models", {{"experiment_id", "0"}}, "team"), 403);
  EXPECT_EQ(post(test, "/registered-models/create", {{"name", "b-net"}}, "team"), 403);
  EXPECT_EQ(post(test, "/registered-models/create", {{"name", "a-net"}}, "team"), 200);
  EXPECT_EQ(post(test, "/model-versions/create", {{"name", "a-net"}, {"source", "s3://b/k"}}, "team"), 200);
  const std::string other = new_run(test);
  for (const char* who : {"team", "boss"}) {
    EXPECT_EQ(post(test, "/runs/set-tag", {{"run_id", other}, {"key", "k"}, {"value", "v"}}, who), 403) << who;
    EXPECT_EQ(test.call("PUT", "/api/v1/runs/" + other + "/files/f", "x", who).status, 403) << who;
  }
  EXPECT_EQ(post(test, "/registered-models/create", {{"name", "b-net"}}, "a"), 200);
  EXPECT_EQ(test.call("PUT", "/api/v1/models/b-net/aliases/x", R"({"version": 0})", "boss").status, 403);
  EXPECT_EQ(test.call("GET", "/api/v1/runs/" + other, "", "team").status, 200) << "a token reads everything";
}

TEST(Scopes, AnExperimentThatIsNamedGivesTheRunsThatTheIndexFound) {
  TestServer test;
  run_with_files(test, {"resolved.yaml"}, "x: 1", "");
  TokenRights rights = submit_rights();
  rights.experiments = {"job"};
  test.add("named", rights);
  rights.experiments = {"other"};
  test.add("other", rights);
  const PlainJson tag{{"run_id", "d"}, {"key", "k"}, {"value", "v"}};
  EXPECT_EQ(post(test, "/runs/set-tag", tag, "named"), 200);
  EXPECT_EQ(post(test, "/runs/set-tag", tag, "other"), 403);
  EXPECT_EQ(post(test, "/runs/set-tag", tag, "s"), 403);
}

TEST(Quotas, OfRequestsAreThoseOfTheToken) {
  StoppedClock clock;
  TestServer test(0, {}, clock);
  TokenRights rights = submit_rights();
  rights.requests_per_second = 1;
  test.add("slow", rights);
  for (int i = 0; i < 2; ++i) EXPECT_EQ(test.call("GET", "/api/v1/runs", "", "slow").status, 200);
  const Reply refused = test.call("GET", "/api/v1/runs", "", "slow");
  EXPECT_EQ(refused.status, 429);
  EXPECT_EQ(refused.json["code"], "API_RATE_LIMITED");
  EXPECT_EQ(test.call("GET", "/api/v1/runs", "", "s").status, 200);
}

TEST(Quotas, OfUploadsHoldForEachFileAndForTheDay) {
  TestServer test;
  TokenRights rights = submit_rights();
  rights.upload_bytes = 100;
  rights.upload_bytes_per_day = 150;
  test.add("small", rights);
  const std::string files = "/api/v1/runs/" + new_run(test, "x", "small") + "/files/";
  const auto put = [&](const std::string& name, size_t bytes) {
    return test.call("PUT", files + name, std::string(bytes, 'x'), "small");
  };
  const Reply large = put("large", 101);
  EXPECT_EQ(large.status, 413);
  EXPECT_EQ(large.json["code"], "API_UPLOAD_TOO_LARGE");
  EXPECT_EQ(put("a", 100).status, 201);
  const Reply more = put("b", 51);
  EXPECT_EQ(more.status, 413);
  EXPECT_EQ(more.json["code"], "API_UPLOAD_QUOTA");
  EXPECT_EQ(put("c", 50).status, 201);

  RawSocket chunked(test.server->port());  // announces no length
  chunked.send("PUT " + files + "d HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer " + test.secrets["small"] +
               "\r\nTransfer-Encoding: chunked\r\n\r\n65\r\n" + std::string(101, 'x') + "\r\n");
  EXPECT_TRUE(chunked.until("API_UPLOAD").starts_with("HTTP/1.1 413"));
}

// A version copies the files of a run's directory, also of a run of another token.
TEST(Quotas, OfUploadsCountTheFilesThatAVersionCopies) {
  TestServer test;
  const std::filesystem::path there = run_with_files(test, {"checkpoints/a"}, std::string(90, 'a').c_str(), "t");
  TokenRights rights = submit_rights();
  rights.upload_bytes = 100;
  rights.upload_bytes_per_day = 150;
  test.add("small", rights);
  ASSERT_EQ(post(test, "/registered-models/create", {{"name", "m"}}, "small"), 200);
  const auto freeze = [&] {
    const PlainJson body{{"name", "m"}, {"source", "runs:/d/checkpoints"}};
    return test.call("POST", kMlflow + "/model-versions/create", body.dump(), "small");
  };
  EXPECT_EQ(freeze().status, 200);
  EXPECT_EQ(freeze().status, 200);  // nothing new is stored
  std::ofstream(there / "checkpoints/b") << std::string(61, 'b');
  const Reply more = freeze();
  EXPECT_EQ(more.status, 413);
  EXPECT_EQ(more.json["code"], "API_UPLOAD_QUOTA");
  std::ofstream(there / "checkpoints/b") << std::string(101, 'b');
  const Reply large = freeze();
  EXPECT_EQ(large.status, 413);
  EXPECT_EQ(large.json["code"], "API_UPLOAD_TOO_LARGE");
  EXPECT_NE(large.response.body.find("'checkpoints/b'"), std::string::npos) << large.response.body;
  EXPECT_EQ(test.artifacts.list().size(), 1U);
  EXPECT_EQ(test.store.note("web.uploads.small").substr(6), "90");
}

TEST(Quotas, OfTheDayOutliveTheServer) {
  const Folder folder;
  store::Store store(folder / "s.db");
  constexpr int64_t kDay = 86'400'000;
  {
    UploadQuota quota(store);
    EXPECT_TRUE(quota.take("t", 60, 100, 5 * kDay));
    EXPECT_FALSE(quota.take("t", 41, 100, 5 * kDay));
    EXPECT_TRUE(quota.take("other", 100, 100, 5 * kDay));
    ASSERT_TRUE(store.write(quota.note("t")));
  }
  UploadQuota quota(store);
  EXPECT_FALSE(quota.take("t", 41, 100, 5 * kDay));
  EXPECT_TRUE(quota.take("t", 40, 100, 5 * kDay));
  EXPECT_TRUE(quota.take("t", 100, 100, 6 * kDay)) << "another day";
  EXPECT_FALSE(quota.take("t", INT64_MAX, 100, 6 * kDay));
}

// Collects lines from several threads.
struct Lines {
  std::mutex mutex;
  std::vector<std::string> lines;
  void add(const std::string& line) {
    const std::lock_guard lock(mutex);
    lines.push_back(line);
  }
};

TEST(AccessLog, HasOneLineForEachRequestAndNoSecret) {
  Lines access;
  TestServer test(0, {}, system_clock(),
                  [&](Options& options) { options.access_log = [&](const std::string& line) { access.add(line); }; });
  const std::string run = new_run(test, "x", "s");
  test.call("GET", "/api/v1/runs?name=hidden-in-the-query", "", "r");
  test.call("PUT", "/api/v1/runs/" + run + "/files/f", "bytes", "r");  // refused at its header
  test.secrets["wrong"] = "sinew-guessed";
  test.call("GET", "/api/v1/runs", "", "wrong");
  test.server.reset();  // waits for the requests
  std::vector<std::string> found;
  for (const std::string& line : access.lines) {
    const PlainJson entry = PlainJson::parse(line);
    found.push_back(entry["token"].get<std::string>() + " " + entry["method"].get<std::string>() + " " +
                    std::to_string(entry["status"].get<int>()));
    EXPECT_EQ(entry["address"], "127.0.0.1");
    EXPECT_GE(entry["ms"].get<double>(), 0);
    for (const std::string& secret : {std::string("hidden-in-the-query"), std::string("guessed"),
                                      test.secrets["s"].substr(6), test.secrets["r"].substr(6)})
      EXPECT_EQ(line.find(secret), std::string::npos) << line;
  }
  EXPECT_EQ(found, (std::vector<std::string>{"s POST 200", "r GET 200", "r PUT 403", " GET 401"}));
  EXPECT_EQ(PlainJson::parse(access.lines.at(1))["path"], "/api/v1/runs");
}

TEST(AccessLog, HasOneLineForARequestThatIsAnsweredTwice) {
  Lines access;
  Options options;
  options.access_log = [&](const std::string& line) { access.add(line); };
  AccessLog log(options);
  AccessEntry entry(log, {});
  entry.finish(503);  // the store is unusable, so Health answers instead of the thread that waits for the store
  entry.finish(200);
  ASSERT_EQ(access.lines.size(), 1U);
  EXPECT_EQ(PlainJson::parse(access.lines[0])["status"], 503);
}

TEST(AccessLog, StrangersGetAFewLinesAMinute) {
  Lines access;
  HandClock clock;
  TestServer test(0, {}, clock,
                  [&](Options& options) { options.access_log = [&](const std::string& line) { access.add(line); }; });
  const auto count = [&](const std::string& token) {
    return std::ranges::count_if(access.lines, [&](const std::string& line) {
      const PlainJson entry = PlainJson::parse(line);
      return entry["token"] == token && !entry.contains("left_out");
    });
  };
  const std::string path = "/" + std::string(900, 'a');
  for (int i = 0; i < 50; ++i) {
    test.call("GET", path, "", "");
    test.call("GET", path, "", "r");
  }
  EXPECT_EQ(count(""), AccessLog::kLinesOfAddress);
  EXPECT_EQ(count("r"), 50);
  EXPECT_EQ(PlainJson::parse(access.lines[0])["path"].get<std::string>().size(), 100U);
  EXPECT_EQ(PlainJson::parse(access.lines[1])["path"].get<std::string>().size(), path.size());
  clock.seconds = clock.seconds + 61;
  test.call("GET", "/version", "", "");
  EXPECT_EQ(count(""), AccessLog::kLinesOfAddress + 1);
  const PlainJson left_out = PlainJson::parse(access.lines.at(access.lines.size() - 2));
  EXPECT_EQ(left_out["address"], "127.0.0.1");
  EXPECT_EQ(left_out["left_out"], 50 - AccessLog::kLinesOfAddress);
}

TEST(AccessLog, StrangersOfManyAddressesShareALimit) {
  Lines access;
  HandClock clock;
  Options options;
  options.clock = &clock;
  options.access_log = [&](const std::string& line) { access.add(line); };
  AccessLog log(options);
  for (int i = 0; i < 10'000; ++i) log.write({"10.0.0." + std::to_string(i), "", "GET", "/", 401, 1});
  EXPECT_EQ(access.lines.size(), static_cast<size_t>(AccessLog::kLinesOfStrangers));
  clock.seconds = clock.seconds + 61;
  log.write({"10.0.0.1", "ci", "GET", "/", 200, 1});
  int64_t left_out = 0;
  for (const std::string& line : access.lines) left_out += PlainJson::parse(line).value("left_out", int64_t{0});
  EXPECT_EQ(left_out, 10'000 - AccessLog::kLinesOfStrangers);
  EXPECT_LT(access.lines.size(), 200U);
}

TEST(FailedLogins, AreReportedOncePerAddressAndMinute) {
  Lines log;
  HandClock clock;
  TestServer test(0, {}, clock,
                  [&](Options& options) { options.log = [&](const std::string& line) { log.add(line); }; });
  test.secrets["wrong"] = "sinew-guessed";
  for (int i = 0; i < 5; ++i) test.call("GET", "/api/v1/runs", "", "wrong");
  test.call("GET", "/api/v1/runs", "", "");  // a request without a token is no login
  ASSERT_EQ(log.lines.size(), 1U);
  EXPECT_NE(log.lines[0].find("1 request from 127.0.0.1"), std::string::npos) << log.lines[0];
  clock.seconds = clock.seconds + 61;
  test.call("GET", "/api/v1/runs", "", "wrong");
  ASSERT_EQ(log.lines.size(), 2U);
  EXPECT_NE(log.lines[1].find("5 requests from"), std::string::npos) << log.lines[1];
  EXPECT_EQ(log.lines[1].find("guessed"), std::string::npos);
}

}  // namespace
}  // namespace sinew::web
