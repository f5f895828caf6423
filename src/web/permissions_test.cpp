// Tests that a record belongs to the token that created it: no other token with the role submit can change or overwrite
// it. Tests that no client can undo what an admin has decided.
#include "web/permissions.h"

#include <gtest/gtest.h>

#include "web/testing.h"

namespace sinew::web {
namespace {

// Sends every request that changes a run, and expects this status from each.
void change_run(TestServer& test, const std::string& run, const std::string& who, int status) {
  const PlainJson label{{"key", "k"}, {"value", "v"}}, labels = PlainJson::array({label});
  const PlainJson metric{{"key", "loss"}, {"value", 1}, {"timestamp", 1}, {"step", 1}};
  const std::vector<std::pair<const char*, PlainJson>> requests{{"log-metric", metric},
                                                                {"log-batch", PlainJson{{"params", labels}}},
                                                                {"set-tag", label},
                                                                {"log-parameter", label},
                                                                {"log-inputs", PlainJson::object()},
                                                                {"outputs", PlainJson::object()},
                                                                {"log-model", PlainJson{{"model_json", "{}"}}},
                                                                {"update", PlainJson{{"status", "FAILED"}}},
                                                                {"delete-tag", PlainJson{{"key", "k"}}},
                                                                {"delete", PlainJson::object()},
                                                                {"restore", PlainJson::object()}};
  for (const auto& [route, fields] : requests) {
    PlainJson body = fields;
    body["run_id"] = run;
    EXPECT_EQ(post(test, std::string("/runs/") + route, body, who), status) << route;
  }
  const std::string own = "/api/v1/runs/" + run;
  EXPECT_EQ(test.call("POST", own + "/points", R"({"series": {"a": [[1, 1, 1]]}})", who).status, status);
  EXPECT_EQ(test.call("PUT", own + "/files/f", "bytes", who).status, status == 200 ? 201 : status);
  EXPECT_EQ(test.call("PUT", kArtifacts + "0/" + run + "/artifacts/g", "bytes", who).status, status);
  EXPECT_EQ(test.call("DELETE", kArtifacts + "0/" + run + "/artifacts/g", "", who).status, status);
}

TEST(Permissions, EveryRouteThatChangesSomethingHasARule) {
  for (const Route& route : routes()) {
    if (route.role < Role::kSubmit) continue;
    EXPECT_TRUE(has_permission_rule(route)) << route.method << " " << route.path;
  }
}

TEST(Permissions, ARunIsChangedByItsOwnerAndByAdminsOnly) {
  TestServer test;
  const std::string run = new_run(test, "x", "s");
  change_run(test, run, "t", 403);
  EXPECT_EQ(test.call("GET", "/api/v1/runs/" + run + "/files").json["files"].size(), 0U);
  const Reply refused = test.call("POST", kMlflow + "/runs/set-tag",
                                  PlainJson{{"run_id", run}, {"key", "k"}, {"value", "v"}}.dump(), "t");
  EXPECT_EQ(refused.json["code"], "API_NOT_OWNER") << refused.json;
  EXPECT_EQ(refused.json["error_code"], "PERMISSION_DENIED") << refused.json;
  change_run(test, run, "s", 200);
  change_run(test, run, "a", 200);
}

TEST(Permissions, ARunThatTheIndexFoundBelongsToTheServer) {
  TestServer test;
  run_with_files(test, {"resolved.yaml"}, "x: 1", "");
  change_run(test, "d", "s", 403);
  EXPECT_EQ(post(test, "/runs/set-tag", {{"run_id", "d"}, {"key", "k"}, {"value", "v"}}, "a"), 200);
}

TEST(Permissions, TwoNamesOfTheRunInOneRequestDoNotMixUp) {
  TestServer test;
  const std::string mine = new_run(test, "x", "t"), other = new_run(test, "x", "s");
  PlainJson body{{"run_uuid", mine}, {"run_id", other}, {"key", "k"}, {"value", "v"}};
  for (const char* route : {"/runs/set-tag", "/runs/delete-tag", "/runs/log-parameter"})
    EXPECT_EQ(post(test, route, body, "t"), 403) << route;
}

TEST(Permissions, ALoggedModelIsChangedByItsOwnerOnly) {
  TestServer test;
  const std::string made = R"({"experiment_id": "0", "name": "n"})";
  const std::string id = test.call("POST", kMlflow + "/logged-models", made, "s").json["model"]["info"]["model_id"];
  const std::string at = kMlflow + "/logged-models/" + id;
  const PlainJson tags{{"tags", PlainJson::array({PlainJson{{"key", "k"}, {"value", "v"}}})}};
  const PlainJson params{{"params", PlainJson::array({PlainJson{{"key", "k"}, {"value", "v"}}})}};
  const std::string run = new_run(test, "x", "t");
  const PlainJson metric{{"run_id", run},  {"key", "loss"}, {"value", 1},
                         {"timestamp", 1}, {"step", 1},     {"model_id", id}};
  EXPECT_EQ(test.call("PATCH", at + "/tags", tags.dump(), "t").status, 403);
  EXPECT_EQ(test.call("POST", at + "/params", params.dump(), "t").status, 403);
  EXPECT_EQ(test.call("PATCH", at, R"({"status": 2})", "t").status, 403);
  EXPECT_EQ(post(test, "/runs/log-metric", metric, "t"), 403);
  EXPECT_EQ(test.call("PUT", kArtifacts + "0/models/" + id + "/artifacts/f", "x", "t").status, 403);
  EXPECT_EQ(test.call("DELETE", at, "", "t").status, 403);
  EXPECT_EQ(test.call("PATCH", at + "/tags", tags.dump(), "s").status, 200);
  EXPECT_EQ(test.call("DELETE", at, "", "s").status, 200);
}

TEST(Permissions, ModelsVersionsAndExperimentsAreChangedByTheirOwners) {
  TestServer test;
  EXPECT_EQ(post(test, "/registered-models/create", {{"name", "m"}}, "s"), 200);
  const PlainJson version{{"name", "m"}, {"source", "s3://b/k"}};
  EXPECT_EQ(post(test, "/model-versions/create", version, "t"), 200) << "the model takes versions of every token";
  const PlainJson tag_of_model{{"name", "m"}, {"key", "k"}, {"value", "v"}};
  PlainJson tag_of_version = tag_of_model;
  tag_of_version["version"] = "1";
  EXPECT_EQ(post(test, "/registered-models/set-tag", tag_of_model, "t"), 403);
  EXPECT_EQ(post(test, "/registered-models/set-tag", tag_of_model, "s"), 200);
  EXPECT_EQ(post(test, "/model-versions/set-tag", tag_of_version, "s"), 403);
  EXPECT_EQ(post(test, "/model-versions/set-tag", tag_of_version, "t"), 200);
  EXPECT_EQ(post(test, "/model-versions/create", version, "s"), 200);
  PlainJson stage{{"name", "m"}, {"version", "1"}, {"stage", "Production"}, {"archive_existing_versions", true}};
  EXPECT_EQ(post(test, "/model-versions/transition-stage", stage, "t"), 200);
  stage["version"] = "2";
  EXPECT_EQ(post(test, "/model-versions/transition-stage", stage, "s"), 403) << "it would archive another's version";
  EXPECT_EQ(post(test, "/experiments/set-experiment-tag", {{"experiment_id", "0"}, {"key", "k"}, {"value", "v"}}, "s"),
            403);
  const PlainJson created = test.call("POST", kMlflow + "/experiments/create", R"({"name": "e"})", "s").json;
  const PlainJson rename{{"experiment_id", created["experiment_id"]}, {"new_name", "f"}};
  EXPECT_EQ(post(test, "/experiments/update", rename, "t"), 403);
  EXPECT_EQ(post(test, "/experiments/update", rename, "s"), 200);
}

TEST(Monotone, ARunThatAnAdminDeletedIsRestoredByAdminsOnly) {
  TestServer test;
  const std::string run = new_run(test, "x", "s");
  const PlainJson body{{"run_id", run}};
  EXPECT_EQ(post(test, "/runs/delete", body, "s"), 200);
  EXPECT_EQ(post(test, "/runs/restore", body, "s"), 200);
  EXPECT_EQ(post(test, "/runs/delete", body, "a"), 200);
  EXPECT_EQ(post(test, "/runs/delete", body, "s"), 200) << "the owner does not become the one who deleted it";
  EXPECT_EQ(post(test, "/runs/restore", body, "s"), 403);
  EXPECT_TRUE(test.store.find({store::Kind::kRun, run})->hidden);
  EXPECT_EQ(test.call("PUT", "/api/v1/runs/" + run + "/files/f", "x", "s").status, 400);
  EXPECT_EQ(test.call("POST", "/api/v1/runs/" + run + "/points", R"({"series": {"a": [[1, 1, 1]]}})", "s").status, 400);
  EXPECT_EQ(post(test, "/runs/restore", body, "a"), 200);
}

TEST(Monotone, ADeletedModelIsRestoredByAdminsOnly) {
  TestServer test;
  const std::string body = R"({"name": "m"})";
  EXPECT_EQ(test.call("POST", kMlflow + "/registered-models/create", body, "s").status, 200);
  EXPECT_EQ(test.call("DELETE", kMlflow + "/registered-models/delete", body, "a").status, 200);
  EXPECT_EQ(test.call("POST", kMlflow + "/registered-models/create", body, "s").status, 403);
  EXPECT_TRUE(test.store.find({store::Kind::kModel, "m"})->hidden);
  EXPECT_EQ(test.call("POST", kMlflow + "/registered-models/create", body, "a").status, 200);
}

TEST(Monotone, OnlyAnAdminRollsBackAndAWithdrawalStays) {
  TestServer test;
  EXPECT_EQ(post(test, "/registered-models/create", {{"name", "m"}}, "s"), 200);
  for (int i = 0; i < 2; ++i)
    EXPECT_EQ(post(test, "/model-versions/create", {{"name", "m"}, {"source", "s3://b/k"}}, "s"), 200);
  const auto set = [&](int version) {
    return post(test, "/registered-models/alias", {{"name", "m"}, {"alias", "champion"}, {"version", version}}, "a");
  };
  EXPECT_EQ(set(1), 200);
  EXPECT_EQ(set(2), 200);
  EXPECT_EQ(set(1), 200);  // the admin withdraws version 2
  EXPECT_EQ(test.call("POST", "/api/v1/models/m/rollback", "{}", "s").status, 403);
  const Reply again = test.call("POST", "/api/v1/models/m/rollback", "{}", "a");
  EXPECT_EQ(again.status, 409);
  EXPECT_NE(again.json.value("why", "").find("withdrawn"), std::string::npos) << again.json;
  EXPECT_EQ(test.call("GET", "/api/v1/models/m").json["aliases"]["champion"]["version"], 1);
}

TEST(Events, NameTheTokenAndTheAddress) {
  TestServer test;
  const std::string run = new_run(test, "x", "s");
  EXPECT_EQ(post(test, "/runs/set-tag", {{"run_id", run}, {"key", "k"}, {"value", "v"}}, "a"), 200);
  std::vector<std::string> actors;
  const PlainJson events = test.call("GET", "/api/v1/events?kind=run&id=" + run).json["events"];
  for (const PlainJson& event : events) {
    actors.push_back(event.value("actor", ""));
    EXPECT_EQ(event.value("address", ""), "127.0.0.1");
  }
  EXPECT_EQ(actors, (std::vector<std::string>{"s", "a"}));
}

}  // namespace
}  // namespace sinew::web
