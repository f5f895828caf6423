// The whole site over HTTP: who may do what, what is refused and how, what is kept.
#include <gtest/gtest.h>

#include <atomic>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <thread>

#include "web/context.h"
#include "web/testing.h"

namespace sinew::web {
namespace {

using Json = nlohmann::json;

TEST(Site, EveryRouteAsksForItsRoleFirst) {
  Town town;
  for (const Route& route : routes()) {
    std::string path = route.path;
    for (size_t at; (at = path.find('{')) != std::string::npos;) path.replace(at, path.find('}') - at + 1, "some");
    const std::string body = route.method == std::string("GET") ? "" : "{}";
    for (const auto& [who, role] :
         {std::pair("", Role::kNobody), std::pair("r", Role::kRead), std::pair("s", Role::kSubmit)}) {
      const int status = town.call(route.method, path, body, who).status;
      if (role >= route.role) {
        EXPECT_NE(status, 401) << path;
        EXPECT_NE(status, 403) << path;
      } else {
        EXPECT_EQ(status, role == Role::kNobody ? 401 : 403) << who << " " << path;
      }
    }
  }
  EXPECT_EQ(town.call("GET", "/nothing", "", "").status, 401);
  EXPECT_EQ(town.call("GET", "/nothing").status, 404);
  EXPECT_EQ(town.call("PUT", "/api/v1/runs", "{}").status, 405);
}

TEST(Site, OnlyWholeTokensLetAnybodyIn) {
  Town town;
  const auto status = [&](const std::string& header) {
    return town.call("GET", "/api/v1/runs", "", "", {{"authorization", header}}).status;
  };
  const std::string secret = town.secrets["r"];
  EXPECT_EQ(status("Bearer " + secret), 200);
  EXPECT_EQ(status("bearer " + secret), 200);
  for (const std::string& wrong :
       std::vector<std::string>{secret, "Bearer", "Bearer ", "Bearer x" + secret, "Bearer " + secret + "0",
                                "Basic " + secret, "Bearer " + secret.substr(0, secret.size() - 1), "Digest x"}) {
    EXPECT_EQ(status(wrong), 401) << wrong;
  }
  const Reply reply = town.call("GET", "/api/v1/runs", "", "");
  EXPECT_EQ(reply.response.headers.at("www-authenticate").substr(0, 6), "Bearer");
  EXPECT_FALSE(reply.json["error"].get<std::string>().empty());
  EXPECT_FALSE(reply.json["hint"].get<std::string>().empty());
  EXPECT_FALSE(reply.json.contains("error_code"));
  EXPECT_EQ(town.call("GET", kMlflow + "/runs/get?run_id=x", "", "").json["error_code"], "UNAUTHENTICATED");
}

TEST(Site, TooManyRequestsAreToldWhenToComeAgain) {
  Town town(0.1);
  int limited = 0;
  for (int i = 0; i < 30; ++i) {
    const Reply reply = town.call("GET", "/api/v1/experiments", "", "r");
    if (reply.status != 429) continue;
    ++limited;
    EXPECT_GE(std::stoi(reply.response.headers.at("retry-after")), 1);
  }
  EXPECT_GT(limited, 0);
  EXPECT_EQ(town.call("GET", "/api/v1/experiments", "", "s").status, 200);  // somebody else
}

TEST(Site, HostileTextsAreTextsInEveryField) {
  Town town;
  const std::string id = new_run(town);
  for (const std::string& text :
       {std::string("'; DROP TABLE record; --"), std::string("\" OR 1=1"), std::string("<script>alert(1)</script>"),
        std::string("../../etc/passwd"), std::string("%00%0d%0a"), std::string("{{7*7}}"), std::string("ünï\U0001F600"),
        std::string("a\r\nset-cookie: x=1")}) {
    const auto post = [&](const std::string& path, const Json& body) {
      return town.call("POST", kMlflow + path, body.dump()).status;
    };
    EXPECT_EQ(post("/runs/set-tag", {{"run_id", id}, {"key", text}, {"value", text}}), 200);
    EXPECT_EQ(post("/runs/log-parameter", {{"run_id", id}, {"key", text}, {"value", text}}), 200);
    EXPECT_EQ(post("/runs/log-metric", {{"run_id", id}, {"key", text}, {"value", 1}, {"timestamp", 1}}), 200);
    EXPECT_EQ(post("/experiments/create", {{"name", text}}), 200);
    EXPECT_EQ(post("/registered-models/create", {{"name", text}}), 200);
    EXPECT_EQ(post("/runs/set-tag", {{"run_id", text}, {"key", "k"}, {"value", "v"}}), 404);
    EXPECT_EQ(post("/runs/search", {{"experiment_ids", {text}}, {"filter", "tags.x = '" + text + "'"}}) / 100,
              text[0] == '\'' ? 4 : 2);
    EXPECT_EQ(post("/runs/search", {{"experiment_ids", {"0"}}, {"filter", text}}), 400);
    const Json run = town.call("GET", kMlflow + "/runs/get?run_id=" + id).json["run"];
    bool found = false;
    for (const Json& tag : run["data"]["tags"]) found = found || (tag["key"] == text && tag["value"] == text);
    EXPECT_TRUE(found) << text;
  }
  EXPECT_EQ(town.call("GET", "/api/v1/runs").json["runs"].size(), 1u);
  const Reply page = town.call("GET", "/metrics");
  EXPECT_EQ(page.status, 200);
  EXPECT_EQ(page.response.headers.at("x-content-type-options"), "nosniff");
}

TEST(Site, BodiesThatAreNotWhatTheyShouldBe) {
  Town town;
  const std::string path = kMlflow + "/runs/create";
  for (const std::string& body :
       {std::string("{"), std::string("[]"), std::string("null"), std::string("\xff\xfe"),
        std::string("{\"experiment_id\": {}}"), std::string("{\"experiment_id\": \"0\", \"tags\": 3}"),
        std::string("{\"experiment_id\": \"0\", \"tags\": [3]}"),
        std::string("{\"experiment_id\": \"0\", \"tags\": [{\"value\": \"x\"}]}"),
        std::string("{\"start_time\": \"soon\"}"),
        "{\"tags\":" + std::string(100'000, '[') + std::string(100'000, ']') + "}",
        std::string("{\"experiment_id\": \"0\", \"run_name\": \"a\\u0000b\"}")}) {
    const Reply reply = town.call("POST", path, body);
    EXPECT_EQ(reply.status, 400) << body.substr(0, 80) << " " << reply.json;
    EXPECT_EQ(reply.json["error_code"], "INVALID_PARAMETER_VALUE") << body.substr(0, 80);
  }
  EXPECT_EQ(town.call("POST", path, std::string(2 << 20, ' ')).status, 413);
  EXPECT_EQ(town.call("GET", "/api/v1/runs?unknown=1").status, 400);
  EXPECT_EQ(town.call("GET", "/api/v1/runs?limit=0").status, 400);
  EXPECT_EQ(town.call("GET", "/api/v1/runs?limit=x").status, 400);
  EXPECT_EQ(town.call("POST", "/api/v1/models/m/promote", "{}").status, 400);
  const std::string points = "/api/v1/runs/" + new_run(town) + "/points";
  for (const char* point :
       {"[9223372036854775808, 1, 1]", "[1, 18446744073709551615, 1]", "[1.5, 1, 1]", "[1, \"1\", 1]"}) {
    EXPECT_EQ(town.call("POST", points, R"({"series": {"a": [)" + std::string(point) + "]}}").status, 400) << point;
  }
  const Reply edge =
      town.call("POST", points, R"({"series": {"a": [[9223372036854775807, -9223372036854775808, 1]]}})");
  EXPECT_EQ(edge.status, 200) << edge.json;
}

TEST(Site, FilesGoInAndOutAndNowhereElse) {
  Town town;
  const std::string id = new_run(town), base = "/api/2.0/mlflow-artifacts/artifacts/0/" + id + "/artifacts/";
  const std::string bytes(3'000'000, 'b');
  EXPECT_EQ(town.call("PUT", base + "deep/file.bin", bytes).status, 200);
  EXPECT_EQ(town.call("PUT", base + "empty", "").status, 200);
  EXPECT_TRUE(town.call("GET", base + "deep/file.bin").response.body == bytes);
  EXPECT_EQ(town.call("GET", base + "empty").response.body, "");
  const Reply part = town.call("GET", base + "deep/file.bin", "", "r", {{"range", "bytes=10-19"}});
  EXPECT_EQ(part.status, 206);
  EXPECT_EQ(part.response.body, std::string(10, 'b'));
  const std::string root = "/api/2.0/mlflow-artifacts/artifacts?path=0/" + id + "/artifacts";
  EXPECT_EQ(town.call("GET", root).json["files"].size(), 2u);
  for (const char* path : {"..%2f..%2fx", "%2e%2e/x", "a//b", "a/../../b", "x%5c..%5cy", "a%0ab", "x/"}) {
    EXPECT_EQ(town.call("PUT", base + path, "x").status, 400) << path;
    EXPECT_GE(town.call("GET", base + path).status, 400) << path;
  }
  EXPECT_EQ(town.call("GET", "/api/2.0/mlflow-artifacts/artifacts?path=../..").status, 400);
  EXPECT_EQ(town.call("PUT", "/api/2.0/mlflow-artifacts/artifacts/0/no-such-run/artifacts/x", "x").status, 404);
  EXPECT_EQ(town.call("PUT", base + "x", "x", "r").status, 403);
  EXPECT_EQ(town.call("DELETE", base + "deep").status, 200);
  EXPECT_EQ(town.call("GET", base + "deep/file.bin").status, 404);
}

TEST(Site, ARunsDirectoryIsReadAndNothingBesideIt) {
  Town town;
  namespace fs = std::filesystem;
  fs::create_directories(town.folder / "job/20261122T000000Z-abcd/model");
  std::ofstream(town.folder / "job/20261122T000000Z-abcd/metrics.jsonl") << "{}";
  std::ofstream(town.folder / "job/20261122T000000Z-abcd/coordinator.json") << "secret";
  fs::create_symlink(town.folder / "tokens.json", town.folder / "job/20261122T000000Z-abcd/link");
  fs::create_directories(town.folder / ".sinew");
  std::ofstream(town.folder / ".sinew/store.db") << "secret";
  ASSERT_TRUE(town.store.write(store::Create{{store::Kind::kExperiment, "job"}}));
  int number = 0;
  const auto indexed = [&](const std::string& directory) {
    store::Create create{{store::Kind::kRun, "d" + std::to_string(++number)}, "job"};
    create.tags = {{registry::kTagDirectory, directory}};
    create.body = nlohmann::json{{"directory", directory}}.dump();
    EXPECT_TRUE(town.store.write(create));
    return "/api/v1/runs/" + create.subject.id + "/files";
  };
  const std::string good = indexed("job/20261122T000000Z-abcd");
  const Json files = town.call("GET", good).json["files"];
  ASSERT_EQ(files.size(), 2u) << files;
  EXPECT_EQ(files[0]["name"], "metrics.jsonl");
  EXPECT_EQ(town.call("GET", good + "/metrics.jsonl").response.body, "{}");
  for (const char* path : {"/link", "/coordinator.json", "/..%2f..%2ftokens.json", "/model", "/none"}) {
    EXPECT_GE(town.call("GET", good + path).status, 400) << path;
  }
  for (const char* directory :
       {".", "..", ".sinew", "job/../.sinew", "/etc", "job/20261122T000000Z-abcd/../../.sinew"}) {
    const std::string bad = indexed(directory);
    EXPECT_TRUE(town.call("GET", bad).json["files"].empty()) << directory;
    for (const char* path : {"/store.db", "/tokens.json", "/passwd"}) {
      EXPECT_EQ(town.call("GET", bad + path).status, 404) << directory << path;
    }
  }
  const Json tag{{"run_id", new_run(town)}, {"key", registry::kTagDirectory}, {"value", ".sinew"}};
  EXPECT_EQ(town.call("POST", kMlflow + "/runs/set-tag", tag.dump()).status, 400);
}

// Why a version was promoted is a tag; no client can make it say something else, or take it away.
TEST(Site, TagsOfSinewsOwnAreNobodysElse) {
  Town town;
  const auto post = [&](const std::string& path, const Json& body) {
    return town.call("POST", kMlflow + path, body.dump()).status;
  };
  const Json tags = {{{"key", "sinew.decision.champion"}, {"value", "forged"}}, {{"key", "mine"}, {"value", "kept"}}};
  EXPECT_EQ(post("/registered-models/create", {{"name", "m"}, {"tags", tags}}), 400);
  EXPECT_EQ(post("/registered-models/create", {{"name", "m"}}), 200);
  EXPECT_EQ(post("/model-versions/create", {{"name", "m"}, {"source", "s"}, {"tags", tags}}),
            200);  // copied by the client
  EXPECT_EQ(town.store.find({store::Kind::kVersion, "m", 1})->tags, (store::Labels{{"mine", "kept"}}));
  const Json tag{{"name", "m"}, {"version", "1"}, {"key", "sinew.decision.champion"}, {"value", "forged"}};
  EXPECT_EQ(post("/model-versions/set-tag", tag), 400);
  EXPECT_EQ(post("/registered-models/set-tag", tag), 400);
  for (const char* what : {"/model-versions/delete-tag", "/registered-models/delete-tag"})
    EXPECT_EQ(town.call("DELETE", kMlflow + what, tag.dump()).status, 400) << what;
}

TEST(Site, PointsComeBackAsTheyWereOrThinnedOut) {
  Town town;
  const std::string id = new_run(town);
  Json points = Json::array();
  for (int i = 0; i < 5000; ++i) points.push_back({i, 1000 + i, std::sin(i / 100.0)});
  const std::string body =
      Json{{"series", {{"a/b", points}, {"n", {{1, 1, "NaN"}, {2, 1, "-Infinity"}}}}}, {"once", "k1"}}.dump();
  for (int i = 0; i < 2; ++i) EXPECT_EQ(town.call("POST", "/api/v1/runs/" + id + "/points", body).status, 200);
  EXPECT_EQ(town.call("GET", "/api/v1/runs/" + id + "/metrics/a/b?points=100000").json["points"], points);
  const Json thin = town.call("GET", "/api/v1/runs/" + id + "/metrics/a/b?points=100").json["points"];
  EXPECT_LE(thin.size(), 100u);
  EXPECT_EQ(thin.front(), points.front());
  EXPECT_EQ(thin.back(), points.back());
  EXPECT_EQ(town.call("GET", "/api/v1/runs/" + id + "/metrics/n").json["points"],
            (Json{{1, 1, "NaN"}, {2, 1, "-Infinity"}}));
  const std::string other = new_run(town);
  const Json overlay = town.call("GET", "/api/v1/overlay?key=a/b&points=10&run=" + id + "&run=" + other).json;
  ASSERT_EQ(overlay["runs"].size(), 1u);
  EXPECT_EQ(overlay["runs"][0]["run"], id);
  EXPECT_EQ(town.call("POST", "/api/v1/runs/" + id + "/points", R"({"series": {"a": [[1, 2]]}})").status, 400);
  EXPECT_EQ(town.call("POST", "/api/v1/runs/none/points", R"({"series": {"a": [[1, 2, 3]]}})").status, 404);
}

TEST(Site, NewsIsWaitedFor) {
  Town town;
  const Json now = town.call("GET", "/api/v1/events").json;
  const int64_t after = now["after"];
  const std::string target = "/api/v1/events?wait=20&after=" + std::to_string(after);
  std::thread late([&] {
    ::usleep(300'000);
    new_run(town, "late");
  });
  const Json news = town.call("GET", target).json;
  late.join();
  ASSERT_GE(news["events"].size(), 1u);
  EXPECT_EQ(news["events"][0]["what"], "create");
  EXPECT_EQ(news["events"][0]["seq"], after + 1);
  const Json none =
      town.call("GET", "/api/v1/events?wait=0.2&after=" + std::to_string(news["after"].get<int64_t>())).json;
  EXPECT_TRUE(none["events"].empty());
  EXPECT_EQ(none["after"], news["after"]);
}

TEST(Site, ALongPollThatTheServersEndCutsShortIsAWholeAnswer) {
  Town town;
  RawSocket client(town.server->port());
  client.send("GET /api/v1/events?wait=60&after=1 HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer " + town.secrets["r"] +
              "\r\n\r\n");
  const std::string header = client.until("\r\n\r\n");
  EXPECT_TRUE(header.starts_with("HTTP/1.1 200")) << header;
  town.server.reset();
  const std::string answer = header + client.until("nothing that comes");
  EXPECT_NE(answer.find("{\"events\":[],\"after\":1}"), std::string::npos) << answer;
  EXPECT_TRUE(answer.ends_with("0\r\n\r\n")) << answer;
}

TEST(Site, AStreamOfEventsGoesOnWhereItsClientLeftOff) {
  auto town = std::make_unique<Town>();
  RawSocket client(town->server->port());
  client.send("GET /api/v1/events HTTP/1.1\r\nHost: x\r\nAccept: text/event-stream\r\nLast-Event-ID: 1\r\n" +
              ("Authorization: Bearer " + town->secrets["r"]) + "\r\n\r\n");
  const std::string id = new_run(*town, "streamed");
  const std::string first = client.until(id);
  EXPECT_NE(first.find("content-type: text/event-stream"), std::string::npos) << first;
  EXPECT_NE(first.find("event: create\ndata: {"), std::string::npos) << first;
  EXPECT_EQ(first.find("id: 1\n"), std::string::npos) << first;
  town.reset();
  EXPECT_TRUE(client.until("nothing that comes").ends_with("0\r\n\r\n"));  // it ends as a whole message
}

TEST(Site, WishesReachTheRunOrSayWhyNot) {
  std::vector<Wish> wishes;
  Town town(0, [&](const std::string& directory, const Wish& wish) {
    if (wish.kind == "stop") throw Error(directory + " is over", "start it again");
    wishes.push_back(wish);
  });
  const std::string id = new_run(town);
  const auto ask = [&](const Json& body, const std::string& run) {
    return town.call("POST", "/api/v1/runs/" + run + "/control", body.dump());
  };
  EXPECT_EQ(ask({{"wish", "pause"}}, id).status, 409);  // it came from MLflow: no directory
  ASSERT_TRUE(town.store.write(store::Create{{store::Kind::kExperiment, "job"}}));
  store::Create create{{store::Kind::kRun, "d"}, "job"};
  create.tags = {{registry::kTagDirectory, "job/20261122T000000Z-abcd"}};
  create.body = R"({"directory": "job/20261122T000000Z-abcd"})";
  ASSERT_TRUE(town.store.write(create));
  EXPECT_EQ(ask({{"wish", "scale"}, {"value", 4}, {"reason", "more"}}, "d").status, 200);
  EXPECT_EQ(ask({{"wish", "learning_rate"}, {"value", 0.5}}, "d").status, 200);
  ASSERT_EQ(wishes.size(), 2u);
  EXPECT_EQ(wishes[0].value, 4);
  EXPECT_EQ(wishes[0].reason, "more, asked by a");
  EXPECT_EQ(ask({{"wish", "stop"}}, "d").status, 409);
  for (const Json& wrong :
       {Json{{"wish", "fly"}}, Json{{"wish", "scale"}}, Json{{"wish", "scale"}, {"value", 0.5}},
        Json{{"wish", "learning_rate"}, {"value", "NaN"}}, Json{{"wish", "batch_size"}, {"value", -1}}}) {
    EXPECT_EQ(ask(wrong, "d").status, 400) << wrong;
  }
}

TEST(Site, AnAliasMovesOnlyFromWhereItIsThoughtToStand) {
  Town town;
  EXPECT_EQ(town.call("POST", kMlflow + "/registered-models/create", R"({"name": "m"})").status, 200);
  for (int i = 0; i < 3; ++i) {
    EXPECT_EQ(town.call("POST", kMlflow + "/model-versions/create", R"({"name": "m", "source": "s"})").status, 200);
  }
  const auto put = [&](int64_t version, int64_t expected) {
    return town
        .call("PUT", "/api/v1/models/m/aliases/champion", Json{{"version", version}, {"expected", expected}}.dump())
        .status;
  };
  EXPECT_EQ(put(1, 0), 200);
  EXPECT_EQ(put(2, 0), 409);
  EXPECT_EQ(put(2, 1), 200);
  EXPECT_EQ(put(9, 2), 404);
  EXPECT_EQ(town.call("POST", "/api/v1/models/m/rollback", "{}").json["to"], 1);
  EXPECT_EQ(town.call("GET", "/api/v1/models/m").json["aliases"]["champion"]["version"], 1);
  EXPECT_EQ(town.call("POST", "/api/v1/models/m/promote", R"({"version": 3, "force": true})", "s").status, 403);
}

TEST(Site, SlowClientsAndIdleOnesHinderNobody) {
  Town town;
  std::vector<RawSocket> slow;
  for (int i = 0; i < 200; ++i) {
    slow.emplace_back(town.server->port());
    slow.back().send(i % 2 == 0 ? "" : "POST /api/v1/runs HTTP/1.1\r\nHost: x\r\nContent-Length: 1000\r\n\r\n{");
  }
  for (int i = 0; i < 20; ++i) EXPECT_EQ(town.call("GET", "/api/v1/runs").status, 200);
  EXPECT_TRUE(slow[1].until("nothing that comes").starts_with("HTTP/1.1 408"));  // after read_seconds
}

}  // namespace
}  // namespace sinew::web
