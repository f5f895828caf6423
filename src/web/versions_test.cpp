// Tests that a promoted version stays as it was evaluated. A caller with a low role can neither bypass the gates, nor
// replace the version's files, nor write the tags that Sinew keeps about it.
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "base/sha256.h"
#include "web/testing.h"

namespace sinew::web {
namespace {

// Creates a version as `sinew models register` does.
void make_version(TestServer& test, double accuracy) {
  registry::VersionFacts facts;
  facts.run = "r";
  facts.status = "done";
  facts.monitor = "val/accuracy";
  facts.metrics = {{"val/accuracy", accuracy}, {"train/accuracy", 1 - accuracy}};
  facts.data = {{"train", "one"}, {"val", "another"}};
  facts.checks = {{"done", "passed"}};
  store::Create create{{store::Kind::kVersion, "m"}};
  create.body = registry::facts_json(facts);
  ASSERT_TRUE(test.store.write(create));
}

TEST(Versions, OnlyAnAdminWeakensTheGates) {
  TestServer test;
  ASSERT_TRUE(test.store.write(store::Create{{store::Kind::kModel, "m"}}));
  for (const double accuracy : {0.9, 0.1, 0.95}) make_version(test, accuracy);
  const auto promote = [&](const PlainJson& body, const char* who) {
    return test.call("POST", "/api/v1/models/m/promote", body.dump(), who).status;
  };
  const auto champion = [&] { return test.call("GET", "/api/v1/models/m").json["aliases"]["champion"]["version"]; };
  EXPECT_EQ(promote({{"version", 1}}, "s"), 200);
  EXPECT_EQ(promote({{"version", 2}}, "s"), 409);
  for (const PlainJson& margin :
       {PlainJson(-1), PlainJson(-1e300), PlainJson("-Infinity"), PlainJson("NaN"), PlainJson(-1e-9)}) {
    EXPECT_EQ(promote({{"version", 2}, {"margin", margin}}, "s"), 403) << margin;
  }
  EXPECT_EQ(promote({{"version", 2}, {"metric", "train/accuracy"}}, "s"), 403);
  EXPECT_EQ(champion(), 1);
  EXPECT_EQ(promote({{"version", 3}, {"margin", 0.1}}, "s"), 409);
  EXPECT_EQ(promote({{"version", 3}, {"margin", 0.01}, {"metric", "auto"}}, "s"), 200);
  EXPECT_EQ(promote({{"version", 2}, {"metric", "train/accuracy"}}, "a"), 200);
  EXPECT_EQ(champion(), 2);
}

TEST(Versions, ASubmitterPromotesToAliasesThatExist) {
  TestServer test;
  ASSERT_TRUE(test.store.write(store::Create{{store::Kind::kModel, "m"}}));
  make_version(test, 0.9);
  const auto promote = [&](const std::string& alias, const char* who) {
    const PlainJson body{{"version", 1}, {"alias", alias}};
    return test.call("POST", "/api/v1/models/m/promote", body.dump(), who).status;
  };
  for (const char* who : {"s", "a"}) {
    for (const std::string& bad : {std::string(), std::string("latest"), std::string("v1"), std::string("a b/../c"),
                                   std::string("x\x1b[2J"), std::string(256, 'x')})
      EXPECT_EQ(promote(bad, who), 400) << bad;
  }
  EXPECT_EQ(promote("production", "s"), 403);
  EXPECT_EQ(promote("champion", "s"), 200);
  EXPECT_EQ(promote("production", "a"), 200);
  EXPECT_EQ(promote("production", "s"), 200);
  EXPECT_EQ(test.call("PUT", "/api/v1/models/m/aliases/production", R"({"version": 0})").status, 200);
  EXPECT_EQ(promote("production", "s"), 403) << "an admin removed it";
  EXPECT_EQ(test.call("PUT", "/api/v1/models/m/aliases/latest", R"({"version": 1})").status, 400);
}

TEST(Versions, TheTagsOfANewVersionHaveALimit) {
  TestServer test;
  ASSERT_TRUE(test.store.write(store::Create{{store::Kind::kModel, "m"}}));
  const auto create = [&](const std::string& key, size_t bytes) {
    const PlainJson tags = PlainJson::array({{{"key", key}, {"value", std::string(bytes, 'x')}}});
    return post(test, "/model-versions/create", {{"name", "m"}, {"source", "s3://b/x"}, {"tags", tags}}, "s");
  };
  EXPECT_EQ(create("k", 100'000), 200);
  EXPECT_EQ(create("sinew.decision.champion", 100'001), 200) << "Sinew leaves out its own tags";
  EXPECT_EQ(create("k", 100'001), 400);
  EXPECT_EQ(create("a//b", 1), 400);
}

TEST(Versions, AVersionKeepsItsOriginalFiles) {
  TestServer test;
  const std::string id = new_run(test, "x", "s"), place = "0/" + id + "/artifacts/model";
  for (const char* name : {"/MLmodel", "/data/weights"}) {
    EXPECT_EQ(test.call("PUT", kArtifacts + place + name, std::string("good") + name, "s").status, 200);
  }
  EXPECT_EQ(test.call("POST", kMlflow + "/registered-models/create", R"({"name": "m"})", "s").status, 200);
  const auto make = [&](const std::string& source) {
    const PlainJson body{{"name", "m"}, {"source", source}, {"run_id", id}};
    const Reply reply = test.call("POST", kMlflow + "/model-versions/create", body.dump(), "s");
    EXPECT_EQ(reply.json["model_version"]["source"], source) << reply.json;
    return reply.json["model_version"]["version"].get<std::string>();
  };
  const auto fetch = [&](const std::string& version, const std::string& name) {
    const std::string target = kMlflow + "/model-versions/get-download-uri?name=m&version=" + version;
    const std::string uri = test.call("GET", target, "", "r").json["artifact_uri"];
    return test.call("GET", kArtifacts + uri.substr(std::string("mlflow-artifacts:/").size()) + name, "", "r");
  };
  const std::string source = "mlflow-artifacts:/" + place;
  const std::vector<std::string> versions{make(source), make(source + "/"), make("runs:/" + id + "/model"),
                                          make("models:/m/1")};
  EXPECT_EQ(test.call("PUT", kArtifacts + place + "/MLmodel", "bad", "s").status, 200);
  EXPECT_EQ(test.call("DELETE", kArtifacts + place + "/data", "", "s").status, 200);
  EXPECT_EQ(test.call("PUT", kArtifacts + place + "/more", "bad", "s").status, 200);
  registry::collect_garbage(test.store, test.artifacts);
  for (const std::string& version : versions) {
    EXPECT_EQ(fetch(version, "/MLmodel").response.body, "good/MLmodel") << version;
    EXPECT_EQ(fetch(version, "/data/weights").response.body, "good/data/weights") << version;
    EXPECT_EQ(fetch(version, "/more").status, 404) << version;
  }
  EXPECT_EQ(fetch(make(source), "/MLmodel").response.body, "bad");
  const std::string elsewhere = make("s3://there/model");  // this source is not on this server
  const std::string target = kMlflow + "/model-versions/get-download-uri?name=m&version=" + elsewhere;
  EXPECT_EQ(test.call("GET", target).json["artifact_uri"], "s3://there/model");
}

// If a version was created before its files, it gets them only after somebody has said that they are complete.
TEST(Versions, AVersionWithoutFilesIsPendingUntilItsFilesAreFrozen) {
  TestServer test;
  const std::string id = new_run(test, "x", "s"), place = kArtifacts + "0/" + id + "/artifacts/model/";
  EXPECT_EQ(test.call("POST", kMlflow + "/registered-models/create", R"({"name": "m"})", "s").status, 200);
  const PlainJson body{{"name", "m"}, {"source", "runs:/" + id + "/model"}};
  const Reply made = test.call("POST", kMlflow + "/model-versions/create", body.dump(), "s");
  EXPECT_EQ(made.json["model_version"]["status"], "PENDING_REGISTRATION") << made.json;
  const std::string alias = R"({"name": "m", "alias": "x", "version": "1"})";
  const std::string version = "/api/v1/models/m/versions/1";
  EXPECT_EQ(test.call("POST", kMlflow + "/registered-models/alias", alias).json["code"], "API_VERSION_WITHOUT_FILES");
  EXPECT_EQ(test.call("PUT", "/api/v1/models/m/aliases/x", R"({"version": 1})").status, 409);
  EXPECT_EQ(test.call("POST", "/api/v1/models/m/promote", R"({"version": 1, "force": true})").status, 409);
  EXPECT_EQ(test.call("POST", version + "/freeze", "{}", "s").json["code"], "API_VERSION_WITHOUT_FILES");
  EXPECT_EQ(test.call("PUT", place + "w", "good", "s").status, 200);
  EXPECT_EQ(test.call("POST", version + "/freeze", "{}", "t").status, 403) << "the version of another token";
  const PlainJson wrong{{"files", PlainJson{{"w", std::string(64, '0')}}}};
  EXPECT_EQ(test.call("POST", version + "/freeze", wrong.dump(), "s").status, 409);
  const PlainJson right{{"files", PlainJson{{"w", sha256_hex("good")}}}};
  EXPECT_EQ(test.call("POST", version + "/freeze", right.dump(), "s").status, 200);
  EXPECT_EQ(test.call("PUT", place + "w", "bad", "s").status, 200);
  EXPECT_EQ(test.call("POST", version + "/freeze", "{}", "s").status, 409) << "a version is frozen once";
  EXPECT_EQ(test.call("GET", version + "/files/w", "", "r").response.body, "good");
  EXPECT_EQ(test.call("GET", kMlflow + "/model-versions/get?name=m&version=1").json["model_version"]["status"],
            "READY");
  EXPECT_EQ(test.call("POST", kMlflow + "/registered-models/alias", alias).status, 200);
}

TEST(Versions, ComeOnlyFromKnownPlaces) {
  TestServer test;
  EXPECT_EQ(test.call("POST", kMlflow + "/registered-models/create", R"({"name": "m"})").status, 200);
  const auto make = [&](const std::string& source) {
    return test.call("POST", kMlflow + "/model-versions/create", PlainJson{{"name", "m"}, {"source", source}}.dump(),
                     "s");
  };
  for (const char* source :
       {"file:///etc/passwd", "/etc/passwd", "etc", "http://192.0.2.1/x", "https://example.com/x", "ftp://x/y",
        "mlflow-artifacts://example.com/x", "runs://x/y", "S4://x", "models://x/1", "C:\\\\x"}) {
    const Reply refused = make(source);
    EXPECT_EQ(refused.status, 400) << source;
    EXPECT_EQ(refused.json["code"], "API_SOURCE_REFUSED") << source;
    EXPECT_EQ(refused.json["error_code"], "INVALID_PARAMETER_VALUE") << source;
  }
  for (const char* source : {"s3://b/k", "S3://b/k", "gs://b/k", "runs:/r/p", "models:/x/1"})
    EXPECT_EQ(make(source).status, 200) << source;
}

TEST(Versions, AFileOfTheRunsDirectoryPrecedesAnUpload) {
  TestServer test;
  const auto directory = run_with_files(test, {"report.json", "model/weights", "model/deep/file"}, "own");
  const std::string files = "/api/v1/runs/d/files/";
  const auto put = [&](const std::string& path) { return test.call("PUT", files + path, "other", "s").status; };
  EXPECT_EQ(put("model/weights"), 409);
  EXPECT_EQ(put("later"), 201);
  EXPECT_EQ(put("model/more"), 201);
  std::ofstream(directory / "later") << "own";
  for (const char* path : {"model/weights", "later", "report.json"}) {
    EXPECT_EQ(test.call("GET", files + path, "", "r").response.body, "own") << path;
  }
  const PlainJson listed = test.call("GET", "/api/v1/runs/d/files").json["files"];
  for (const PlainJson& file : listed) {
    EXPECT_EQ(file["bytes"], file["name"] == "later" ? PlainJson(3) : file["bytes"]);
  }
  EXPECT_EQ(test.call("POST", kMlflow + "/registered-models/create", R"({"name": "m"})", "s").status, 200);
  const PlainJson body{{"name", "m"}, {"source", "mlflow-artifacts:/job/d/artifacts/model"}};
  EXPECT_EQ(test.call("POST", kMlflow + "/model-versions/create", body.dump(), "s").status, 200);
  std::filesystem::remove_all(directory);
  PlainJson kept = PlainJson::object();
  const PlainJson own = test.call("GET", "/api/v1/models/m/versions/1").json["files"];
  for (const PlainJson& file : own) {
    const std::string path = file["path"];
    kept[path] = test.call("GET", "/api/v1/models/m/versions/1/files/" + path).response.body;
  }
  EXPECT_EQ(kept, (PlainJson{{"weights", "own"}, {"deep/file", "own"}, {"more", "other"}}));
}

TEST(Versions, AFileAndAFolderNeverHaveOneName) {
  TestServer test;
  run_with_files(test, {"own", "folder/file"}, "own");
  const auto put = [&](const std::string& path) {
    const Reply reply = test.call("PUT", "/api/v1/runs/d/files/" + path, "other", "s");
    if (reply.status != 201) {
      EXPECT_EQ(reply.json["code"], "API_CONFLICT") << path;
    }
    return reply.status;
  };
  EXPECT_EQ(put("a"), 201);
  EXPECT_EQ(put("a"), 201) << "the file is replaced";
  EXPECT_EQ(put("a/b.txt"), 409);
  EXPECT_EQ(put("a/b/c.txt"), 409);
  EXPECT_EQ(put("b/c/d"), 201);
  EXPECT_EQ(put("b/c/e"), 201);
  EXPECT_EQ(put("b"), 409);
  EXPECT_EQ(put("b/c"), 409);
  EXPECT_EQ(put("ab"), 201);
  EXPECT_EQ(put("own/b"), 409) << "a file of the run's directory";
  EXPECT_EQ(put("folder"), 409) << "a folder of the run's directory";
  EXPECT_EQ(test.call("PUT", kArtifacts + "job/d/artifacts/a/b", "other", "s").status, 409);
}

TEST(Versions, AndExperimentsSayWhenTheyWereChanged) {
  TestServer test;
  EXPECT_EQ(test.call("POST", kMlflow + "/registered-models/create", R"({"name": "m"})").status, 200);
  EXPECT_EQ(test.call("POST", kMlflow + "/model-versions/create", R"({"name": "m", "source": "s3://b/s"})").status,
            200);
  ::usleep(5000);
  const PlainJson tag{{"name", "m"}, {"version", "1"}, {"experiment_id", "0"}, {"key", "k"}, {"value", "v"}};
  for (const char* route : {"/model-versions/set-tag", "/experiments/set-experiment-tag"}) {
    EXPECT_EQ(test.call("POST", kMlflow + route, tag.dump()).status, 200) << route;
  }
  const PlainJson version = test.call("GET", kMlflow + "/model-versions/get?name=m&version=1").json["model_version"];
  EXPECT_GT(version["last_updated_timestamp"], version["creation_timestamp"]);
  const PlainJson experiment = test.call("GET", kMlflow + "/experiments/get?experiment_id=0").json["experiment"];
  EXPECT_GT(experiment["last_update_time"], experiment["creation_time"]);
  EXPECT_EQ(test.call("POST", kMlflow + "/model-versions/create", R"({"name": "m", "source": "s3://b/s"})").status,
            200);
  const PlainJson model = test.call("GET", kMlflow + "/registered-models/get?name=m").json["registered_model"];
  EXPECT_GT(model["last_updated_timestamp"], model["creation_timestamp"]);
}

TEST(Versions, PromptsAndWebhooksAreNotOffered) {
  TestServer test;
  EXPECT_EQ(test.call("POST", kMlflow + "/registered-models/create", R"({"name": "m"})").status, 200);
  EXPECT_EQ(test.call("POST", kMlflow + "/model-versions/create", R"({"name": "m", "source": "s3://b/s"})").status,
            200);
  const PlainJson prompt{{"key", "mlflow.prompt.is_prompt"}, {"value", "true"}};
  const PlainJson tagged{{"name", "p"}, {"tags", PlainJson::array({prompt})}};
  PlainJson of_model{{"name", "m"}, {"version", "1"}, {"source", "s3://b/s"}, {"tags", PlainJson::array({prompt})}};
  of_model.update(prompt);
  const std::vector<std::tuple<const char*, const char*, PlainJson>> requests{
      {"POST", "/registered-models/create", tagged},
      {"POST", "/registered-models/set-tag", of_model},
      {"POST", "/model-versions/create", of_model},
      {"POST", "/model-versions/set-tag", of_model},
      {"POST", "/webhooks", PlainJson{{"name", "w"}, {"url", "https://there"}}},
      {"GET", "/webhooks", PlainJson::object()},
      {"GET", "/webhooks/1", PlainJson::object()},
      {"PATCH", "/webhooks/1", PlainJson::object()},
      {"DELETE", "/webhooks/1", PlainJson::object()},
      {"POST", "/webhooks/1/test", PlainJson::object()}};
  for (const auto& [method, path, body] : requests) {
    const Reply reply = test.call(method, kMlflow + path, body.dump());
    EXPECT_EQ(reply.status, 501) << method << " " << path << " " << reply.response.body;
    EXPECT_EQ(reply.json["code"], "API_NOT_OFFERED") << path;
  }
  EXPECT_EQ(test.call("GET", kMlflow + "/registered-models/get?name=p").status, 404);
}

TEST(Versions, ClientsCannotSetSinewsOwnTags) {
  TestServer test;
  const std::string id = new_run(test);
  EXPECT_EQ(test.call("POST", kMlflow + "/registered-models/create", R"({"name": "m"})").status, 200);
  const std::string tagged =
      R"({"name": "m", "source": "s3://b/s", "tags": [{"key": "sinew.decision.champion", "value": "x"},)"
      R"( {"key": "own", "value": "y"}]})";
  const PlainJson version = test.call("POST", kMlflow + "/model-versions/create", tagged, "s").json["model_version"];
  EXPECT_EQ(version["tags"],
            // only this tag: the server drops Sinew's own tags
            PlainJson::array({PlainJson{{"key", "own"}, {"value", "y"}}}));
  const PlainJson logged =
      test.call("POST", kMlflow + "/logged-models", R"({"experiment_id": "0"})").json["model"]["info"];
  const std::string of_logged = "/logged-models/" + logged["model_id"].get<std::string>() + "/tags";
  for (const char* key : {"sinew.decision.champion", "sinew.mlflow.logged_model", "sinew.mlflow.stage", "sinew.x"}) {
    PlainJson body{{"name", "m"},          {"version", "1"}, {"run_id", id},
                   {"experiment_id", "0"}, {"key", key},     {"value", "0"}};
    body["tags"] = PlainJson::array({PlainJson{{"key", key}, {"value", "0"}}});
    const std::vector<std::pair<const char*, std::string>> ways{{"POST", "/experiments/create"},
                                                                {"POST", "/experiments/set-experiment-tag"},
                                                                {"POST", "/experiments/delete-experiment-tag"},
                                                                {"POST", "/runs/create"},
                                                                {"POST", "/runs/set-tag"},
                                                                {"POST", "/runs/log-batch"},
                                                                {"POST", "/logged-models"},
                                                                {"PATCH", of_logged},
                                                                {"DELETE", of_logged + "/" + key},
                                                                {"POST", "/registered-models/set-tag"},
                                                                {"DELETE", "/registered-models/delete-tag"},
                                                                {"POST", "/model-versions/set-tag"},
                                                                {"DELETE", "/model-versions/delete-tag"}};
    for (const auto& [method, path] : ways) {
      EXPECT_EQ(test.call(method, kMlflow + path, body.dump()).status, 400) << method << " " << path << " " << key;
    }
    body["name"] = "fresh";
    EXPECT_EQ(test.call("POST", kMlflow + "/registered-models/create", body.dump()).status, 400) << key;
  }
  const PlainJson stage{{"name", "m"}, {"version", "1"}, {"stage", "Staging"}};
  EXPECT_EQ(test.call("POST", kMlflow + "/model-versions/transition-stage", stage.dump(), "s").status, 200);
}

}  // namespace
}  // namespace sinew::web
