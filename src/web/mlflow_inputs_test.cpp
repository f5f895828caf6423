// Tests the data sets and models of a run: a malformed entry is refused, and never makes a list of runs unreadable.
#include <gtest/gtest.h>

#include "web/testing.h"

namespace sinew::web {
namespace {

class RunInputs : public testing::Test {
 protected:
  RunInputs() : run_(new_run(server_)) {}
  int log(const char* route, const char* list, const std::string& entries) {
    const PlainJson body{{"run_id", run_}, {list, PlainJson::parse(entries)}};
    return server_.call("POST", kMlflow + "/runs/" + route, body.dump()).status;
  }
  PlainJson found() {
    const PlainJson asked{{"experiment_ids", PlainJson::array({"0"})}};
    const Reply reply = server_.call("POST", kMlflow + "/runs/search", asked.dump());
    EXPECT_EQ(reply.status, 200) << reply.json;
    return reply.json.at("runs").at(0);
  }

  TestServer server_;
  std::string run_;
};

TEST_F(RunInputs, AMalformedEntryIsRefused) {
  for (const char* datasets :
       {R"([{}])", R"([{"dataset": "d"}])", R"([{"dataset": {}}])", R"([{"dataset": {"name": 5, "digest": "g"}}])",
        R"([{"dataset": {"name": "d", "digest": {}}}])", R"([{"dataset": {"name": "d"}}])",
        R"([{"dataset": {"name": "d", "digest": "g", "profile": []}}])",
        R"([{"dataset": {"name": "d", "digest": "g"}, "tags": "t"}])",
        R"([{"dataset": {"name": "d", "digest": "g"}, "tags": [{"key": 1, "value": "v"}]}])",
        R"([{"dataset": {"name": "d", "digest": "g"}, "tags": [{"key": "k", "value": 1}]}])",
        R"([{"dataset": {"name": "good", "digest": "g"}}, 3])"}) {
    EXPECT_EQ(log("log-inputs", "datasets", datasets), 400) << datasets;
  }
  for (const char* models : {R"([{}])", R"([{"model_id": 5}])", R"([{"model_id": ""}])", R"([{"model_id": ["m"]}])",
                             R"({"model_id": "m"})"}) {
    EXPECT_EQ(log("log-inputs", "models", models), 400) << models;
    EXPECT_EQ(log("outputs", "models", models), 400) << models;
  }
  EXPECT_EQ(log("outputs", "models", R"([{"model_id": "m", "step": "x"}])"), 400);
  EXPECT_EQ(found()["inputs"],
            (PlainJson{{"dataset_inputs", PlainJson::array()}, {"model_inputs", PlainJson::array()}}));
  EXPECT_EQ(found()["outputs"], (PlainJson{{"model_outputs", PlainJson::array()}}));
}

// To compare every entry with every other one would take minutes.
TEST_F(RunInputs, ARunTakesManyEntries) {
  const auto many = [](const std::string& before, int count) {
    std::string list;
    for (int i = 0; i < count; ++i) list += (i == 0 ? "[" : ",") + before + std::to_string(i) + "\"}";
    return list + "]";
  };
  const std::string models = many(R"({"model_id": "m)", 60'000);
  EXPECT_EQ(log("log-inputs", "models", models), 200);
  EXPECT_EQ(log("log-inputs", "models", models), 200);
  EXPECT_EQ(found()["inputs"]["model_inputs"].size(), 60'000U);
  EXPECT_EQ(log("outputs", "models", many(R"({"model_id": "m)", 200'000)), 400);
}

TEST_F(RunInputs, TheSameDataSetIsKeptOnce) {
  EXPECT_EQ(log("log-inputs", "datasets", R"([
    {"dataset": {"name": "d", "digest": "g", "source": "s", "other": 5}, "tags": [{"key": "k", "value": "1"}]},
    {"dataset": {"name": "d", "digest": "g"}, "tags": [{"key": "k", "value": "2"}]}])"),
            200);
  EXPECT_EQ(log("log-inputs", "datasets", R"([{"dataset": {"name": "d", "digest": "g", "source": "t"}},
                                              {"dataset": {"name": "d", "digest": "h"}}])"),
            200);
  EXPECT_EQ(log("outputs", "models", R"([{"model_id": "m", "step": "7"}, {"model_id": "m", "step": 7}])"), 200);
  const PlainJson run = found();
  EXPECT_EQ(run["inputs"]["dataset_inputs"], PlainJson::parse(R"([
    {"dataset": {"name": "d", "digest": "g", "source": "s"}, "tags": [{"key": "k", "value": "1"}]},
    {"dataset": {"name": "d", "digest": "h"}, "tags": []}])"));
  EXPECT_EQ(run["outputs"]["model_outputs"], PlainJson::parse(R"([{"model_id": "m", "step": 7}])"));
}

// Earlier versions stored every object without a check.
TEST_F(RunInputs, AMalformedEntryInTheStoreIsLeftOut) {
  const std::string body = R"({"dataset_inputs": [{"key": "k"}, 3, {"dataset": {"name": "d", "digest": "g"}}],
                               "model_outputs": [{"model_id": {}}], "model_inputs": {}})";
  ASSERT_TRUE(server_.store.write(store::Update{{store::Kind::kRun, run_}, {}, body}));
  const PlainJson run = found();
  EXPECT_EQ(run["inputs"]["dataset_inputs"].size(), 1u);
  EXPECT_EQ(run["inputs"]["model_inputs"], PlainJson::array());
  EXPECT_EQ(run["outputs"]["model_outputs"], PlainJson::array());
}

}  // namespace
}  // namespace sinew::web
