// Tests that hostile callers, without a token or with a token of a low role, can harm neither the server nor other
// callers.
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <thread>

#include "web/context.h"
#include "web/testing.h"

namespace sinew::web {
namespace {

std::string nested(size_t depth) {
  return std::string(depth, '[') + std::string(depth, ']');
}

// Sends a header and no byte of the body. Returns the beginning of the response, or "" if the server waits for the
// body.
std::string answer_to_header(TestServer& test, const std::string& line, const std::string& more,
                             const std::string& secret) {
  RawSocket client(test.server->port());
  client.send(line + " HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer " + secret + "\r\n" + more + "\r\n\r\n");
  return client.until("\r\n\r\n").substr(0, 12);
}

TEST(Hostile, JsonInsideATextHasTheSameDepthLimit) {
  TestServer test;
  const std::string id = new_run(test, "x", "s");
  const auto log_model = [&](const std::string& model) {
    return test.call("POST", kMlflow + "/runs/log-model", PlainJson{{"run_id", id}, {"model_json", model}}.dump(), "s");
  };
  const Reply deep = log_model("{\"a\":" + nested(100'000) + "}");
  EXPECT_EQ(deep.status, 400);
  EXPECT_NE(deep.response.body.find("nested"), std::string::npos) << deep.response.body;
  for (const char* wrong : {"", "[]", "{", "3"}) EXPECT_EQ(log_model(wrong).status, 400) << wrong;
  EXPECT_EQ(log_model(R"({"artifact_path": "m"})").status, 200);
  const PlainJson tag{{"run_id", id}, {"key", "mlflow.log-model.history"}, {"value", nested(100'000)}};
  EXPECT_EQ(test.call("POST", kMlflow + "/runs/set-tag", tag.dump(), "s").status, 200);
  EXPECT_EQ(log_model("{}").status, 400);
  EXPECT_EQ(test.call("GET", "/health").status, 200);
}

TEST(Hostile, ParsingABodyTakesABoundedTime) {
  TestServer test;
  std::string names, objects;
  for (int i = 0; i < 40'000; ++i) names += (i == 0 ? "" : ",") + ("\"n" + std::to_string(i)) + "\":1";
  for (int i = 0; i < 300'000; ++i) objects += i == 0 ? "{}" : ",{}";
  const auto search = [&](const std::string& more) {
    return test.call("POST", kMlflow + "/runs/search", R"({"experiment_ids": ["0"], "x": )" + more + "}", "r");
  };
  for (const std::string& many : {"{" + names + "}", "[{}, {\"a\": {" + names + "}}]"}) {
    const Reply refused = search(many);
    EXPECT_EQ(refused.status, 400);
    EXPECT_NE(refused.response.body.find("too many names"), std::string::npos) << refused.response.body;
  }
  EXPECT_EQ(search("[" + objects + "]").status, 200);  // only the names of one object are compared with each other
  PlainJson series = PlainJson::object();
  for (int i = 0; i < 3000; ++i) series["metric/" + std::to_string(i)] = {{1, 1, 1}};
  const std::string points = PlainJson{{"series", series}}.dump();
  EXPECT_EQ(test.call("POST", "/api/v1/runs/" + new_run(test, "x", "s") + "/points", points, "s").json["points"], 3000);
}

TEST(Hostile, RefusesABodyWithoutATokenAtItsHeader) {
  TestServer test;
  const std::string large = "Content-Length: 100000", endless = "Transfer-Encoding: chunked";
  for (const char* line : {"POST /api/v1/runs/x/points", "POST /nothing", "PUT /api/v1/runs/x/files/a"}) {
    for (const std::string& more : {large, endless}) {
      EXPECT_EQ(answer_to_header(test, line, more, "wrong"), "HTTP/1.1 401") << line << " " << more;
    }
  }
  EXPECT_EQ(answer_to_header(test, "GET /health", large, "wrong"),
            "HTTP/1.1 413");  // the route needs no token, but the body is too large
  EXPECT_EQ(answer_to_header(test, "POST /api/v1/runs/x/points", large, test.secrets["r"]), "HTTP/1.1 403");
  EXPECT_EQ(test.call("GET", "/health", std::string(60'000, ' '), "").status, 200);
  EXPECT_EQ(test.call("POST", kMlflow + "/runs/create", "{" + std::string(200'000, ' ') + "}", "s").status, 200);
}

TEST(Hostile, LimitsUploadsBeforeTheirBodyArrives) {
  StoppedClock clock;
  TestServer test(0.1, {}, clock);  // allows bursts of two
  const std::string large = "Content-Length: 1000000000000";
  create_for(test, "s", {{store::Kind::kRun, "r"}, "0"});
  const std::string id = "r", line = "PUT /api/v1/runs/" + id + "/files/a";
  for (int i = 0; i < 2; ++i) EXPECT_EQ(test.call("PUT", "/api/v1/runs/" + id + "/files/a", "x", "s").status, 201);
  EXPECT_EQ(answer_to_header(test, line, large, test.secrets["s"]), "HTTP/1.1 429");
  int guesses = 0;
  while (guesses < 1000 && answer_to_header(test, line, large, "guess") == "HTTP/1.1 401") ++guesses;
  EXPECT_EQ(guesses, 40);
  EXPECT_EQ(answer_to_header(test, "POST /api/v1/runs/x/points", large, "guess"), "HTTP/1.1 429");
}

TEST(Hostile, OnlyAnAdminBypassesTheGates) {
  TestServer test;
  EXPECT_EQ(test.call("POST", kMlflow + "/registered-models/create", R"({"name": "m"})", "s").status, 200);
  for (int i = 0; i < 2; ++i) {
    EXPECT_EQ(
        test.call("POST", kMlflow + "/model-versions/create", R"({"name": "m", "source": "s3://b/s"})", "s").status,
        200);
  }
  const std::string alias = R"({"name": "m", "alias": "champion", "version": "2"})";
  const std::string file = kArtifacts + "versions/m/1/artifacts/model/weights";
  for (const auto& [who, status] : {std::pair("s", 403), std::pair("a", 200)}) {
    EXPECT_EQ(test.call("PUT", "/api/v1/models/m/aliases/champion", R"({"version": 1})", who).status, status);
    EXPECT_EQ(test.call("POST", kMlflow + "/registered-models/alias", alias, who).status, status);
    EXPECT_EQ(test.call("DELETE", kMlflow + "/registered-models/alias", alias, who).status, status);
    EXPECT_EQ(test.call("PUT", file, "bytes", who).status, status);
  }
  const Reply refused = test.call("DELETE", kArtifacts + "versions/m/1/artifacts/model", "", "s");
  EXPECT_EQ(refused.status, 403);
  EXPECT_EQ(refused.json["error_code"], "PERMISSION_DENIED");
  EXPECT_EQ(refused.json["code"], "API_FORBIDDEN");
  EXPECT_EQ(test.call("GET", file, "", "r").response.body, "bytes");
  EXPECT_EQ(answer_to_header(test, "PUT " + file, "Content-Length: 1000000000000", test.secrets["s"]), "HTTP/1.1 403");
  EXPECT_EQ(test.call("DELETE", kArtifacts + "versions/m/1/artifacts/model").status, 200);
  EXPECT_EQ(test.call("GET", file).status, 404);
}

TEST(Hostile, ARevokedTokenReceivesNoMoreEvents) {
  HandClock clock;
  TestServer test(0, {}, clock);
  const auto listen = [&](const std::string& query, const std::string& accept) {
    RawSocket client(test.server->port());
    client.send("GET /api/v1/events?" + query + " HTTP/1.1\r\nHost: x\r\nAccept: " + accept +
                "\r\nAuthorization: Bearer " + test.secrets["r"] + "\r\n\r\n");
    return client;
  };
  RawSocket stream = listen("after=1", "text/event-stream");
  new_run(test);
  EXPECT_NE(stream.until("event: create").find("200 OK"), std::string::npos);
  const int64_t after = test.call("GET", "/api/v1/events").json["after"];
  RawSocket poll = listen("wait=60&after=" + std::to_string(after), "*/*");
  poll.until("\r\n\r\n");
  ASSERT_TRUE(remove_token(test.folder / "tokens.json", "r"));
  clock.seconds = clock.seconds + 2;
  const std::string id = new_run(test);
  const std::string last = stream.until("0\r\n\r\n"), polled = poll.until("0\r\n\r\n");
  EXPECT_TRUE(last.ends_with("0\r\n\r\n")) << last;
  EXPECT_EQ(last.find(id), std::string::npos) << last;
  EXPECT_NE(polled.find("{\"events\":[],"), std::string::npos) << polled;
}

TEST(Hostile, ResponsesAreBoundedInPointsAndBytes) {
  TestServer test;
  std::string runs;
  for (int i = 0; i < 3; ++i) runs += "&run=" + new_run(test);
  EXPECT_EQ(test.call("GET", "/api/v1/overlay?key=a&points=600000" + runs, "", "r").status, 200);
  const Reply refused = test.call("GET", "/api/v1/overlay?key=a&points=700000" + runs, "", "r");
  EXPECT_EQ(refused.status, 400);
  EXPECT_NE(refused.json["hint"], "");
  const int64_t first = test.call("GET", "/api/v1/events").json["after"];
  constexpr int kTags = 40;
  for (int i = 0; i < kTags; ++i) {
    store::SetTags tags{{store::Kind::kExperiment, "0"}, {}};
    for (int k = 0; k < 100; ++k)
      tags.tags["t" + std::to_string(k)] = std::string(4000, static_cast<char>('a' + i % 20));
    ASSERT_TRUE(test.store.write(tags));
  }
  int seen = 0, pages = 0;
  for (int64_t after = first; pages < kTags; ++pages) {
    const Reply page = test.call("GET", "/api/v1/events?after=" + std::to_string(after), "", "r");
    if (page.json["events"].empty()) break;
    EXPECT_LT(page.response.body.size(), 2u << 20);
    seen += static_cast<int>(page.json["events"].size());
    after = page.json["after"];
  }
  EXPECT_EQ(seen, kTags);
  EXPECT_GT(pages, 1);
}

TEST(Hostile, ModelsLoggedConcurrentlyAreAllKept) {
  TestServer test;
  const std::string id = new_run(test, "x", "s");
  std::vector<std::thread> threads;
  for (int i = 0; i < 8; ++i) {
    threads.emplace_back([&, i] {
      const PlainJson body{{"run_id", id}, {"model_json", PlainJson{{"artifact_path", std::to_string(i)}}.dump()}};
      EXPECT_EQ(test.call("POST", kMlflow + "/runs/log-model", body.dump(), "s").status, 200);
    });
  }
  for (std::thread& thread : threads) thread.join();
  const PlainJson tags = test.call("GET", "/api/v1/runs/" + id).json["tags"];
  EXPECT_EQ(PlainJson::parse(tags["mlflow.log-model.history"].get<std::string>()).size(), 8u);
}

TEST(Hostile, IdempotencyKeysOfTwoRunsAreIndependent) {
  TestServer test;
  const std::string body = R"({"series": {"a": [[1, 1, 1]]}, "once": "1"})";
  for (const std::string& run : {new_run(test), new_run(test)}) {
    for (int i = 0; i < 2; ++i) EXPECT_EQ(test.call("POST", "/api/v1/runs/" + run + "/points", body).status, 200);
    EXPECT_EQ(test.call("GET", "/api/v1/runs/" + run + "/metrics/a").json["points"].size(), 1u);
  }
}

TEST(Hostile, HiddenFilesOfARunsDirectoryAreNotServed) {
  TestServer test;
  run_with_files(test, {".coordinator.json.12-3.tmp", ".cache/secret", "metrics.jsonl"}, "text");
  EXPECT_EQ(test.call("GET", "/api/v1/runs/d/files/metrics.jsonl").response.body, "text");
  for (const char* name : {"/.coordinator.json.12-3.tmp", "/.cache/secret"}) {
    EXPECT_EQ(test.call("GET", std::string("/api/v1/runs/d/files") + name, "", "r").status, 404) << name;
  }
  EXPECT_TRUE(test.call("GET", "/api/v1/runs/d/files?path=.cache").json["files"].empty());
}

TEST(Hostile, ABatchForAMissingModelWritesNothing) {
  TestServer test;
  const std::string id = new_run(test);
  const PlainJson none{{"run_id", id}, {"model_id", "m-none"}, {"key", "a"}, {"value", 1}, {"timestamp", 1}};
  EXPECT_EQ(test.call("POST", kMlflow + "/runs/log-metric", none.dump()).status, 404);
  const PlainJson made = test.call("POST", kMlflow + "/logged-models", R"({"experiment_id": "0", "name": "n"})").json;
  const std::string model = made["model"]["info"]["model_id"];
  const auto metric = [](const std::string& of, const std::string& key, double value) {
    return PlainJson{{"model_id", of}, {"key", key}, {"value", value}, {"timestamp", 1}};
  };
  const auto log_batch = [&](const PlainJson& metrics) {
    return test.call("POST", kMlflow + "/runs/log-batch", PlainJson{{"run_id", id}, {"metrics", metrics}}.dump())
        .status;
  };
  const auto of_model = [&] {
    PlainJson values = PlainJson::object();
    const PlainJson got = test.call("GET", kMlflow + "/logged-models/" + model).json;
    for (const PlainJson& one : got["model"]["data"]["metrics"]) values[one["key"]] = one["value"];
    return values;
  };
  EXPECT_EQ(log_batch(PlainJson::array({metric(model, "a", 1), metric("m-none", "b", 2)})), 404);
  PlainJson odd = metric(model, "a", 1);
  odd["dataset_name"] = PlainJson::object();
  EXPECT_EQ(log_batch(PlainJson::array({odd})), 400);
  EXPECT_TRUE(test.call("GET", "/api/v1/runs/" + id).json["metrics"].empty());
  EXPECT_EQ(of_model(), PlainJson::object());
  const auto events = [&] { return test.call("GET", "/api/v1/events").json["events"].size(); };
  const size_t before = events();
  EXPECT_EQ(log_batch(PlainJson::array({metric(model, "a", 1), metric(model, "b", 2), metric(model, "a", 3)})), 200);
  EXPECT_EQ(of_model(), (PlainJson{{"a", 3.0}, {"b", 2.0}}));
  EXPECT_LE(events(), before + 2);  // at most one event for the points and one for the model
}

TEST(Hostile, AFilterByNameSearchesAllPages) {
  TestServer test;
  for (int i = 0; i < 30; ++i) {
    const PlainJson run{{"experiment_id", "0"}, {"run_name", i % 10 == 0 ? "odd one" : "usual"}};
    EXPECT_EQ(test.call("POST", kMlflow + "/runs/create", run.dump()).status, 200);
  }
  std::string before = "0";
  for (int page = 0; page < 3; ++page) {
    const PlainJson answer = test.call("GET", "/api/v1/runs?name=odd&limit=1&before=" + before).json;
    ASSERT_EQ(answer["runs"].size(), 1u) << page;
    EXPECT_EQ(answer["runs"][0]["name"], "odd one");
    before = answer["before"].dump();
  }
  EXPECT_TRUE(test.call("GET", "/api/v1/runs?name=odd&limit=1&before=" + before).json["runs"].empty());
}

}  // namespace
}  // namespace sinew::web
