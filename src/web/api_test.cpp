// Tests the whole API over HTTP: roles, refusals with their codes, and the changes that requests make.
#include <gtest/gtest.h>

#include <atomic>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <thread>
#include <tuple>

#include "web/context.h"
#include "web/testing.h"

namespace sinew::web {
namespace {

TEST(Api, EveryRouteRequiresItsRole) {
  TestServer test;
  for (const Route& route : routes()) {
    std::string path = route.path;
    for (size_t at; (at = path.find('{')) != std::string::npos;) path.replace(at, path.find('}') - at + 1, "some");
    const std::string body = route.method == std::string("GET") ? "" : "{}";
    for (const auto& [who, role] :
         {std::pair("", Role::kNone), std::pair("r", Role::kRead), std::pair("s", Role::kSubmit)}) {
      const Reply reply = test.call(route.method, path, body, who);
      const int status = reply.status;
      if (role >= route.role) {
        EXPECT_NE(status, 401) << path;
        // Without an id, some MLflow routes mean the default experiment, and that belongs to the server.
        if (status == 403) {
          EXPECT_EQ(reply.json["code"], "API_NOT_OWNER") << path;
        }
      } else {
        EXPECT_EQ(status, role == Role::kNone ? 401 : 403) << who << " " << path;
      }
    }
  }
  EXPECT_EQ(test.call("GET", "/nothing", "", "").status, 401);
  EXPECT_EQ(test.call("GET", "/nothing").status, 404);
  EXPECT_EQ(test.call("GET", "/nothing").json["code"], "API_NO_ROUTE");
  EXPECT_EQ(test.call("PUT", "/api/v1/runs", "{}").status, 405);
  EXPECT_EQ(test.call("PUT", "/api/v1/runs", "{}").json["code"], "API_WRONG_METHOD");
}

TEST(Api, OnlyCompleteTokensAreAccepted) {
  TestServer test;
  const auto status = [&](const std::string& header) {
    return test.call("GET", "/api/v1/runs", "", "", {{"authorization", header}}).status;
  };
  const std::string secret = test.secrets["r"];
  EXPECT_EQ(status("Bearer " + secret), 200);
  EXPECT_EQ(status("bearer " + secret), 200);
  for (const std::string& wrong :
       std::vector<std::string>{secret, "Bearer", "Bearer ", "Bearer x" + secret, "Bearer " + secret + "0",
                                "Basic " + secret, "Bearer " + secret.substr(0, secret.size() - 1), "Digest x"}) {
    EXPECT_EQ(status(wrong), 401) << wrong;
  }
  const Reply reply = test.call("GET", "/api/v1/runs", "", "");
  EXPECT_EQ(reply.response.headers.at("www-authenticate").substr(0, 6), "Bearer");
  EXPECT_EQ(reply.json["code"], "API_NO_TOKEN");
  EXPECT_FALSE(reply.json["error"].get<std::string>().empty());
  EXPECT_FALSE(reply.json["hint"].get<std::string>().empty());
  EXPECT_FALSE(reply.json.contains("error_code"));
  EXPECT_EQ(test.call("GET", kMlflow + "/runs/get?run_id=x", "", "").json["error_code"], "UNAUTHENTICATED");
}

TEST(Api, TooManyRequestsGetARetryTime) {
  TestServer test(0.1);
  int limited = 0;
  for (int i = 0; i < 30; ++i) {
    const Reply reply = test.call("GET", "/api/v1/experiments", "", "r");
    if (reply.status != 429) continue;
    ++limited;
    EXPECT_EQ(reply.json["code"], "API_RATE_LIMITED");
    EXPECT_GE(std::stoi(reply.response.headers.at("retry-after")), 1);
  }
  EXPECT_GT(limited, 0);
  EXPECT_EQ(test.call("GET", "/api/v1/experiments", "", "s").status, 200);  // another caller
}

TEST(Api, HostileTextsAreStoredAsPlainText) {
  TestServer test;
  const std::string id = new_run(test);
  int count = 0;
  for (const std::string& text :
       {std::string("'; DROP TABLE record; --"), std::string("\" OR 1=1"), std::string("<script>alert(1)</script>"),
        std::string("../../etc/passwd"), std::string("%00%0d%0a"), std::string("{{7*7}}"), std::string("ünï\U0001F600"),
        std::string("a\r\nset-cookie: x=1")}) {
    const auto post = [&](const std::string& path, const PlainJson& body) {
      return test.call("POST", kMlflow + path, body.dump()).status;
    };
    const std::string key = "k" + std::to_string(count++);
    EXPECT_EQ(post("/runs/set-tag", {{"run_id", id}, {"key", key}, {"value", text}}), 200);
    EXPECT_EQ(post("/runs/log-parameter", {{"run_id", id}, {"key", key}, {"value", text}}), 200);
    // MLflow allows none of these names; Sinew's own API allows all of them.
    EXPECT_EQ(post("/runs/set-tag", {{"run_id", id}, {"key", text}, {"value", "v"}}), 400);
    EXPECT_EQ(post("/runs/log-parameter", {{"run_id", id}, {"key", text}, {"value", "v"}}), 400);
    EXPECT_EQ(post("/runs/log-metric", {{"run_id", id}, {"key", text}, {"value", 1}, {"timestamp", 1}}), 400);
    const PlainJson series{{"series", {{text, {{1, 1, 1}}}}}};
    EXPECT_EQ(test.call("POST", "/api/v1/runs/" + id + "/points", series.dump()).status, 200);
    EXPECT_EQ(post("/experiments/create", {{"name", text}}), 200);
    EXPECT_EQ(post("/registered-models/create", {{"name", text}}), 200);
    EXPECT_EQ(post("/runs/set-tag", {{"run_id", text}, {"key", "k"}, {"value", "v"}}), 404);
    EXPECT_EQ(post("/runs/search", {{"experiment_ids", {text}}, {"filter", "tags.x = '" + text + "'"}}) / 100,
              text[0] == '\'' ? 4 : 2);
    EXPECT_EQ(post("/runs/search", {{"experiment_ids", {"0"}}, {"filter", text}}), 400);
    const PlainJson run = test.call("GET", kMlflow + "/runs/get?run_id=" + id).json["run"];
    bool found = false;
    for (const PlainJson& tag : run["data"]["tags"]) found = found || (tag["key"] == key && tag["value"] == text);
    EXPECT_TRUE(found) << text;
  }
  EXPECT_EQ(test.call("GET", "/api/v1/runs").json["runs"].size(), 1u);
  const Reply page = test.call("GET", "/metrics");
  EXPECT_EQ(page.status, 200);
  EXPECT_EQ(page.response.headers.at("x-content-type-options"), "nosniff");
}

TEST(Api, MalformedBodiesAreRefused) {
  TestServer test;
  const std::string path = kMlflow + "/runs/create";
  for (const std::string& body :
       {std::string("{"), std::string("[]"), std::string("null"), std::string("\xff\xfe"),
        std::string("{\"experiment_id\": {}}"), std::string("{\"experiment_id\": \"0\", \"tags\": 3}"),
        std::string("{\"experiment_id\": \"0\", \"tags\": [3]}"),
        std::string("{\"experiment_id\": \"0\", \"tags\": [{\"value\": \"x\"}]}"),
        std::string("{\"start_time\": \"soon\"}"),
        "{\"tags\":" + std::string(100'000, '[') + std::string(100'000, ']') + "}",
        std::string("{\"experiment_id\": \"0\", \"run_name\": \"a\\u0000b\"}")}) {
    const Reply reply = test.call("POST", path, body);
    EXPECT_EQ(reply.status, 400) << body.substr(0, 80) << " " << reply.json;
    EXPECT_EQ(reply.json["error_code"], "INVALID_PARAMETER_VALUE") << body.substr(0, 80);
    EXPECT_EQ(reply.json["code"], "API_INVALID_VALUE") << body.substr(0, 80);
  }
  EXPECT_EQ(test.call("POST", path, std::string(17 << 20, ' ')).status, 413);
  EXPECT_EQ(test.call("GET", "/api/v1/runs?unknown=1").status, 400);
  EXPECT_EQ(test.call("GET", "/api/v1/runs?limit=0").status, 400);
  EXPECT_EQ(test.call("GET", "/api/v1/runs?limit=x").status, 400);
  EXPECT_EQ(test.call("POST", "/api/v1/models/m/promote", "{}").status, 400);
  const std::string points = "/api/v1/runs/" + new_run(test) + "/points";
  for (const char* point :
       {"[9223372036854775808, 1, 1]", "[1, 18446744073709551615, 1]", "[1.5, 1, 1]", "[1, \"1\", 1]"}) {
    EXPECT_EQ(test.call("POST", points, R"({"series": {"a": [)" + std::string(point) + "]}}").status, 400) << point;
  }
  const Reply edge =
      test.call("POST", points, R"({"series": {"a": [[9223372036854775807, -9223372036854775808, 1]]}})");
  EXPECT_EQ(edge.status, 200) << edge.json;
}

TEST(Api, FilesAreStoredOnlyUnderValidPaths) {
  TestServer test;
  const std::string id = new_run(test), base = "/api/2.0/mlflow-artifacts/artifacts/0/" + id + "/artifacts/";
  const std::string bytes(3'000'000, 'b');
  EXPECT_EQ(test.call("PUT", base + "deep/file.bin", bytes).status, 200);
  EXPECT_EQ(test.call("PUT", base + "empty", "").status, 200);
  EXPECT_TRUE(test.call("GET", base + "deep/file.bin").response.body == bytes);
  EXPECT_EQ(test.call("GET", base + "empty").response.body, "");
  const Reply part = test.call("GET", base + "deep/file.bin", "", "r", {{"range", "bytes=10-19"}});
  EXPECT_EQ(part.status, 206);
  EXPECT_EQ(part.response.body, std::string(10, 'b'));
  const std::string root = "/api/2.0/mlflow-artifacts/artifacts?path=0/" + id + "/artifacts";
  EXPECT_EQ(test.call("GET", root).json["files"].size(), 2u);
  for (const char* path : {"..%2f..%2fx", "%2e%2e/x", "a//b", "a/../../b", "x%5c..%5cy", "a%0ab", "x/"}) {
    EXPECT_EQ(test.call("PUT", base + path, "x").status, 400) << path;
    EXPECT_GE(test.call("GET", base + path).status, 400) << path;
  }
  EXPECT_EQ(test.call("GET", "/api/2.0/mlflow-artifacts/artifacts?path=../..").status, 400);
  EXPECT_EQ(test.call("PUT", "/api/2.0/mlflow-artifacts/artifacts/0/no-such-run/artifacts/x", "x").status, 404);
  EXPECT_EQ(test.call("PUT", base + "x", "x", "r").status, 403);
  EXPECT_EQ(test.call("DELETE", base + "deep").status, 200);
  EXPECT_EQ(test.call("GET", base + "deep/file.bin").status, 404);
}

TEST(Api, OnlyFilesInsideARunsDirectoryAreServed) {
  TestServer test;
  namespace fs = std::filesystem;
  fs::create_directories(test.folder / "job/20261122T000000Z-abcd/model");
  std::ofstream(test.folder / "job/20261122T000000Z-abcd/metrics.jsonl") << "{}";
  std::ofstream(test.folder / "job/20261122T000000Z-abcd/coordinator.json") << "secret";
  fs::create_symlink(test.folder / "tokens.json", test.folder / "job/20261122T000000Z-abcd/link");
  fs::create_directories(test.folder / ".sinew");
  std::ofstream(test.folder / ".sinew/store.db") << "secret";
  ASSERT_TRUE(test.store.write(store::Create{{store::Kind::kExperiment, "job"}}));
  int number = 0;
  const auto indexed = [&](const std::string& directory) {
    store::Create create{{store::Kind::kRun, "d" + std::to_string(++number)}, "job"};
    create.tags = {{registry::kTagDirectory, directory}};
    create.body = nlohmann::json{{"directory", directory}}.dump();
    EXPECT_TRUE(test.store.write(create));
    return "/api/v1/runs/" + create.subject.id + "/files";
  };
  const std::string good = indexed("job/20261122T000000Z-abcd");
  const PlainJson files = test.call("GET", good).json["files"];
  ASSERT_EQ(files.size(), 2u) << files;
  EXPECT_EQ(files[0]["name"], "metrics.jsonl");
  EXPECT_EQ(test.call("GET", good + "/metrics.jsonl").response.body, "{}");
  fs::create_directory_symlink(test.folder / ".sinew", test.folder / "job/20261122T000000Z-abcd/folder");
  fs::create_directory_symlink(test.folder / "job/20261122T000000Z-abcd", test.folder / "job/link");
  fs::create_symlink("metrics.jsonl", test.folder / "job/20261122T000000Z-abcd/inside");
  EXPECT_TRUE(test.call("GET", indexed("job/link")).json["files"].empty()) << "a directory behind a link";
  for (const char* path :
       {"/folder/store.db", "/inside", "/link", "/coordinator.json", "/..%2f..%2ftokens.json", "/model", "/none"}) {
    EXPECT_GE(test.call("GET", good + path).status, 400) << path;
  }
  for (const char* directory :
       {".", "..", ".sinew", "job/../.sinew", "/etc", "job/20261122T000000Z-abcd/../../.sinew"}) {
    const std::string bad = indexed(directory);
    EXPECT_TRUE(test.call("GET", bad).json["files"].empty()) << directory;
    for (const char* path : {"/store.db", "/tokens.json", "/passwd"}) {
      EXPECT_EQ(test.call("GET", bad + path).status, 404) << directory << path;
    }
  }
  const PlainJson tag{{"run_id", new_run(test)}, {"key", registry::kTagDirectory}, {"value", ".sinew"}};
  EXPECT_EQ(test.call("POST", kMlflow + "/runs/set-tag", tag.dump()).status, 400);
}

// A tag of Sinew's own records why a version was promoted. No client can change or remove it.
TEST(Api, ClientsCannotChangeSinewsOwnTags) {
  TestServer test;
  const auto post = [&](const std::string& path, const PlainJson& body) {
    return test.call("POST", kMlflow + path, body.dump()).status;
  };
  const PlainJson tags = {{{"key", "sinew.decision.champion"}, {"value", "forged"}},
                          {{"key", "mine"}, {"value", "kept"}}};
  EXPECT_EQ(post("/registered-models/create", {{"name", "m"}, {"tags", tags}}), 400);
  EXPECT_EQ(post("/registered-models/create", {{"name", "m"}}), 200);
  EXPECT_EQ(post("/model-versions/create", {{"name", "m"}, {"source", "s3://b/s"}, {"tags", tags}}),
            200);  // MLflow's client copies all tags, so the server accepts the request and drops Sinew's own tag
  EXPECT_EQ(test.store.find({store::Kind::kVersion, "m", 1})->tags, (store::Labels{{"mine", "kept"}}));
  const PlainJson tag{{"name", "m"}, {"version", "1"}, {"key", "sinew.decision.champion"}, {"value", "forged"}};
  EXPECT_EQ(post("/model-versions/set-tag", tag), 400);
  EXPECT_EQ(post("/registered-models/set-tag", tag), 400);
  for (const char* what : {"/model-versions/delete-tag", "/registered-models/delete-tag"})
    EXPECT_EQ(test.call("DELETE", kMlflow + what, tag.dump()).status, 400) << what;
}

TEST(Api, PointsAreReadBackUnchangedOrThinnedOut) {
  TestServer test;
  const std::string id = new_run(test);
  PlainJson points = PlainJson::array();
  for (int i = 0; i < 5000; ++i) points.push_back({i, 1000 + i, std::sin(i / 100.0)});
  const std::string body =
      PlainJson{{"series", {{"a/b", points}, {"n", {{1, 1, "NaN"}, {2, 1, "-Infinity"}}}}}, {"once", "k1"}}.dump();
  for (int i = 0; i < 2; ++i) EXPECT_EQ(test.call("POST", "/api/v1/runs/" + id + "/points", body).status, 200);
  EXPECT_EQ(test.call("GET", "/api/v1/runs/" + id + "/metrics/a/b?points=100000").json["points"], points);
  const PlainJson thin = test.call("GET", "/api/v1/runs/" + id + "/metrics/a/b?points=100").json["points"];
  EXPECT_LE(thin.size(), 100u);
  EXPECT_EQ(thin.front(), points.front());
  EXPECT_EQ(thin.back(), points.back());
  EXPECT_EQ(test.call("GET", "/api/v1/runs/" + id + "/metrics/n").json["points"],
            (PlainJson{{1, 1, "NaN"}, {2, 1, "-Infinity"}}));
  const std::string other = new_run(test);
  const PlainJson overlay = test.call("GET", "/api/v1/overlay?key=a/b&points=10&run=" + id + "&run=" + other).json;
  ASSERT_EQ(overlay["runs"].size(), 1u);
  EXPECT_EQ(overlay["runs"][0]["run"], id);
  EXPECT_EQ(test.call("POST", "/api/v1/runs/" + id + "/points", R"({"series": {"a": [[1, 2]]}})").status, 400);
  EXPECT_EQ(test.call("POST", "/api/v1/runs/none/points", R"({"series": {"a": [[1, 2, 3]]}})").status, 404);
}

// The store checks a subject only if the batch has changes. So the routes check it when a request has none.
TEST(Api, AWriteOfNothingToAMissingSubjectIsNotFound) {
  TestServer test;
  const std::vector<std::tuple<const char*, std::string, std::string>> requests{
      {"POST", "/api/v1/runs/none/points", R"({"series": {}})"},
      {"POST", "/api/v1/runs/none/points", R"({"series": {"a": []}})"},
      {"POST", "/api/v1/runs/none/points", R"({"series": {}, "once": "k"})"},
      {"POST", kMlflow + "/runs/log-batch", R"({"run_id": "none"})"},
      {"POST", kMlflow + "/runs/log-inputs", R"({"run_id": "none"})"},
      {"POST", kMlflow + "/runs/outputs", R"({"run_id": "none"})"},
      {"POST", kMlflow + "/runs/update", R"({"run_id": "none"})"},
      {"PATCH", kMlflow + "/logged-models/m-none/tags", R"({"tags": []})"},
      {"POST", kMlflow + "/logged-models/m-none/params", R"({"params": []})"},
      {"DELETE", kMlflow + "/registered-models/alias", R"({"name": "none", "alias": "a"})"},
      {"DELETE", kArtifacts + "0/none/artifacts", ""},
      {"DELETE", kArtifacts + "0/none/artifacts/a", ""},
      {"DELETE", kArtifacts + "0/models/m-none/artifacts", ""},
      {"DELETE", kArtifacts + "versions/none/1/artifacts", ""},
  };
  for (const auto& [method, target, body] : requests) {
    const Reply reply = test.call(method, target, body);
    EXPECT_EQ(reply.status, 404) << target << " " << body << " " << reply.response.body;
    EXPECT_EQ(reply.json["code"], "API_NOT_FOUND") << target;
  }
  const std::string id = new_run(test);
  EXPECT_EQ(test.call("POST", "/api/v1/runs/" + id + "/points", R"({"series": {}})").json["points"], 0);
  EXPECT_EQ(test.call("DELETE", kArtifacts + "0/" + id + "/artifacts").status, 200);
}

TEST(Api, ALongPollWaitsForEvents) {
  TestServer test;
  const PlainJson now = test.call("GET", "/api/v1/events").json;
  const int64_t after = now["after"];
  const std::string target = "/api/v1/events?wait=20&after=" + std::to_string(after);
  std::thread late([&] {
    ::usleep(300'000);
    new_run(test, "late");
  });
  const PlainJson news = test.call("GET", target).json;
  late.join();
  ASSERT_GE(news["events"].size(), 1u);
  EXPECT_EQ(news["events"][0]["what"], "create");
  EXPECT_EQ(news["events"][0]["seq"], after + 1);
  const PlainJson none =
      test.call("GET", "/api/v1/events?wait=0.2&after=" + std::to_string(news["after"].get<int64_t>())).json;
  EXPECT_TRUE(none["events"].empty());
  EXPECT_EQ(none["after"], news["after"]);
}

TEST(Api, AServerThatStopsCompletesALongPoll) {
  TestServer test;
  RawSocket client(test.server->port());
  client.send("GET /api/v1/events?wait=60&after=1 HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer " + test.secrets["r"] +
              "\r\n\r\n");
  const std::string header = client.until("\r\n\r\n");
  EXPECT_TRUE(header.starts_with("HTTP/1.1 200")) << header;
  test.server.reset();
  const std::string answer = header + client.until("nothing that comes");
  EXPECT_NE(answer.find("{\"events\":[],\"after\":1}"), std::string::npos) << answer;
  EXPECT_TRUE(answer.ends_with("0\r\n\r\n")) << answer;
}

TEST(Api, AnEventStreamContinuesAfterTheLastSeenEvent) {
  auto test = std::make_unique<TestServer>();
  RawSocket client(test->server->port());
  client.send("GET /api/v1/events HTTP/1.1\r\nHost: x\r\nAccept: text/event-stream\r\nLast-Event-ID: 1\r\n" +
              ("Authorization: Bearer " + test->secrets["r"]) + "\r\n\r\n");
  const std::string id = new_run(*test, "streamed");
  const std::string first = client.until(id);
  EXPECT_NE(first.find("content-type: text/event-stream"), std::string::npos) << first;
  EXPECT_NE(first.find("event: create\ndata: {"), std::string::npos) << first;
  EXPECT_EQ(first.find("id: 1\n"), std::string::npos) << first;
  test.reset();
  EXPECT_TRUE(
      client.until("nothing that comes").ends_with("0\r\n\r\n"));  // the last chunk shows that the response is complete
}

TEST(Api, ControlRequestsReachTheRunOrAreRefused) {
  std::vector<ControlRequest> requests;
  TestServer test(0, [&](const std::string& directory, const ControlRequest& request) {
    if (request.action == "stop") throw Error("TEST_OVER", directory + " is over", "start it again");
    requests.push_back(request);
  });
  const std::string id = new_run(test);
  const auto ask = [&](const PlainJson& body, const std::string& run) {
    return test.call("POST", "/api/v1/runs/" + run + "/control", body.dump());
  };
  const Reply unreachable = ask({{"action", "stop"}}, id);  // the run came from MLflow and has no directory
  EXPECT_EQ(unreachable.status, 409);
  EXPECT_EQ(unreachable.json["code"], "API_UNREACHABLE_RUN");
  ASSERT_TRUE(test.store.write(store::Create{{store::Kind::kExperiment, "job"}}));
  store::Create create{{store::Kind::kRun, "d"}, "job"};
  create.tags = {{registry::kTagDirectory, "job/20261122T000000Z-abcd"}};
  create.body = R"({"directory": "job/20261122T000000Z-abcd"})";
  std::filesystem::create_directories(test.folder / "job/20261122T000000Z-abcd");
  ASSERT_TRUE(test.store.write(create));
  EXPECT_EQ(ask({{"action", "scale"}, {"value", 4}, {"reason", "more"}}, "d").status, 200);
  EXPECT_EQ(ask({{"action", "learning_rate"}, {"value", 0.5}}, "d").status, 200);
  ASSERT_EQ(requests.size(), 2u);
  EXPECT_EQ(requests[0].value, 4);
  EXPECT_EQ(requests[0].reason, "more, requested by a");
  const Reply over = ask({{"action", "stop"}}, "d");
  EXPECT_EQ(over.status, 409);
  EXPECT_EQ(over.json["code"], "TEST_OVER");
  for (const PlainJson& wrong :
       {PlainJson{{"action", "fly"}}, PlainJson{{"action", "pause"}}, PlainJson{{"action", "scale"}},
        PlainJson{{"action", "scale"}, {"value", 0.5}}, PlainJson{{"action", "scale"}, {"value", 4097}},
        PlainJson{{"action", "learning_rate"}, {"value", 1e-10}},
        PlainJson{{"action", "learning_rate"}, {"value", "NaN"}}, PlainJson{{"action", "batch_size"}, {"value", -1}}}) {
    EXPECT_EQ(ask(wrong, "d").status, 400) << wrong;
  }
}

TEST(Api, AnAliasMovesOnlyFromTheExpectedVersion) {
  TestServer test;
  EXPECT_EQ(test.call("POST", kMlflow + "/registered-models/create", R"({"name": "m"})").status, 200);
  for (int i = 0; i < 3; ++i) {
    EXPECT_EQ(test.call("POST", kMlflow + "/model-versions/create", R"({"name": "m", "source": "s3://b/s"})").status,
              200);
  }
  const auto put = [&](int64_t version, int64_t expected) {
    return test
        .call("PUT", "/api/v1/models/m/aliases/champion",
              PlainJson{{"version", version}, {"expected", expected}}.dump())
        .status;
  };
  EXPECT_EQ(put(1, 0), 200);
  EXPECT_EQ(put(2, 0), 409);
  EXPECT_EQ(put(2, 1), 200);
  EXPECT_EQ(put(9, 2), 404);
  EXPECT_EQ(test.call("POST", "/api/v1/models/m/rollback", "{}").json["to"], 1);
  EXPECT_EQ(test.call("GET", "/api/v1/models/m").json["aliases"]["champion"]["version"], 1);
  EXPECT_EQ(test.call("POST", "/api/v1/models/m/promote", R"({"version": 3, "force": true})", "s").status, 403);
}

TEST(Api, SlowAndIdleClientsDoNotBlockOthers) {
  TestServer test;
  std::vector<RawSocket> slow;
  for (int i = 0; i < 200; ++i) {
    slow.emplace_back(test.server->port());
    slow.back().send(i % 2 == 0 ? "" : "POST /api/v1/runs HTTP/1.1\r\nHost: x\r\nContent-Length: 1000\r\n\r\n{");
  }
  for (int i = 0; i < 20; ++i) EXPECT_EQ(test.call("GET", "/api/v1/runs").status, 200);
  EXPECT_TRUE(slow[1].until("nothing that comes").starts_with("HTTP/1.1 408"));  // read_seconds have passed
}

}  // namespace
}  // namespace sinew::web
