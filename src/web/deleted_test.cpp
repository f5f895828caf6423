// Tests that nothing can be logged to a deleted run. Tests that an experiment is deleted and restored together with its
// runs, as in MLflow.
#include <gtest/gtest.h>

#include "web/testing.h"

namespace sinew::web {
namespace {

// Sends every request that logs to the run, and expects the server to accept all of them or to refuse all of them.
void log_everything(TestServer& test, const std::string& run, bool accepted) {
  const PlainJson labels = PlainJson::array({PlainJson{{"key", "k"}, {"value", "v"}}});
  const PlainJson metric{{"key", "loss"}, {"value", 1}, {"timestamp", 1}, {"step", 1}};
  const PlainJson dataset = PlainJson::array({PlainJson{{"dataset", PlainJson{{"name", "d"}, {"digest", "g"}}}}});
  const std::vector<std::pair<const char*, PlainJson>> requests{
      {"log-metric", metric},
      {"log-batch", PlainJson{{"metrics", PlainJson::array({metric})}}},
      {"log-batch", PlainJson{{"params", labels}}},
      {"log-batch", PlainJson{{"tags", labels}}},
      {"log-batch", PlainJson::object()},
      {"set-tag", labels[0]},
      {"log-parameter", labels[0]},
      {"log-inputs", PlainJson{{"datasets", dataset}}},
      {"log-inputs", PlainJson::object()},
      {"outputs", PlainJson{{"models", PlainJson::array({PlainJson{{"model_id", "m"}}})}}},
      {"log-model", PlainJson{{"model_json", "{}"}}},
      {"update", PlainJson{{"run_name", "n"}}},
      {"delete-tag", PlainJson{{"key", "k"}}},
      {"set-tag", labels[0]},
  };
  for (const auto& [route, fields] : requests) {
    PlainJson body = fields;
    body["run_id"] = run;
    const Reply reply = test.call("POST", kMlflow + "/runs/" + route, body.dump());
    EXPECT_EQ(reply.status, accepted ? 200 : 400) << route << " " << reply.response.body;
    if (accepted) continue;
    EXPECT_EQ(reply.json.value("error_code", ""), "INVALID_PARAMETER_VALUE") << route;
    EXPECT_NE(reply.json.value("message", "").find("must be in the 'active' state"), std::string::npos) << route;
  }
}

int post(TestServer& test, const std::string& route, const PlainJson& body) {
  return test.call("POST", kMlflow + route, body.dump()).status;
}

TEST(Deleted, ARunTakesNothingUntilItIsRestored) {
  TestServer test;
  const std::string run = new_run(test);
  log_everything(test, run, true);
  EXPECT_EQ(post(test, "/runs/delete", {{"run_id", run}}), 200);
  log_everything(test, run, false);
  EXPECT_EQ(post(test, "/runs/restore", {{"run_id", run}}), 200);
  log_everything(test, run, true);
}

TEST(Deleted, AnExperimentTakesItsRunsAlong) {
  TestServer test;
  const std::string id = test.call("POST", kMlflow + "/experiments/create", R"({"name": "e"})").json["experiment_id"];
  const PlainJson experiment{{"experiment_id", id}};
  const std::string run = test.call("POST", kMlflow + "/runs/create", experiment.dump()).json["run"]["info"]["run_id"];
  const auto stage = [&] {
    return test.call("GET", kMlflow + "/runs/get?run_id=" + run).json["run"]["info"]["lifecycle_stage"];
  };
  const PlainJson tag{{"experiment_id", id}, {"key", "k"}, {"value", "v"}};
  EXPECT_EQ(post(test, "/experiments/set-experiment-tag", tag), 200);
  EXPECT_EQ(post(test, "/experiments/delete", experiment), 200);
  EXPECT_EQ(stage(), "deleted");
  log_everything(test, run, false);
  EXPECT_EQ(post(test, "/runs/create", experiment), 400);
  EXPECT_EQ(post(test, "/logged-models", experiment), 400);
  EXPECT_EQ(post(test, "/runs/restore", {{"run_id", run}}), 400);
  EXPECT_EQ(post(test, "/experiments/set-experiment-tag", tag), 400);
  EXPECT_EQ(post(test, "/experiments/delete-experiment-tag", tag), 400);
  EXPECT_EQ(post(test, "/experiments/update", {{"experiment_id", id}, {"new_name", "f"}}), 400);
  EXPECT_EQ(post(test, "/experiments/restore", experiment), 200);
  EXPECT_EQ(stage(), "active");
  log_everything(test, run, true);
}

}  // namespace
}  // namespace sinew::web
