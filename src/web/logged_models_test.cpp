// Tests searches for logged models by their metrics on data sets: which models match, and in which order.
#include <gtest/gtest.h>

#include <algorithm>

#include "web/testing.h"

namespace sinew::web {
namespace {

class LoggedModels : public testing::Test {
 protected:
  LoggedModels() { run_ = new_run(server_); }
  std::string make(const std::string& name) {
    const PlainJson body{{"experiment_id", "0"}, {"name", name}};
    return server_.call("POST", kMlflow + "/logged-models", body.dump()).json["model"]["info"]["model_id"];
  }
  void log(const std::string& model, const std::string& dataset, const std::string& digest, double value,
           int64_t step = 0) {
    PlainJson metric{{"run_id", run_}, {"model_id", model}, {"key", "accuracy"}, {"value", value}, {"step", step}};
    metric["timestamp"] = 1000 + step;
    if (!dataset.empty()) metric["dataset_name"] = dataset;
    if (!digest.empty()) metric["dataset_digest"] = digest;
    EXPECT_EQ(server_.call("POST", kMlflow + "/runs/log-metric", metric.dump()).status, 200);
  }
  std::string search(PlainJson body) {
    body["experiment_ids"] = PlainJson::array({"0"});
    const Reply reply = server_.call("POST", kMlflow + "/logged-models/search", body.dump());
    EXPECT_EQ(reply.status, 200) << reply.json;
    std::string names;
    for (const PlainJson& model : reply.json["models"]) names += model["info"]["name"].get<std::string>() + " ";
    return names;
  }
  std::string filtered(const std::string& filter, const PlainJson& datasets = PlainJson::array()) {
    const PlainJson by_name = PlainJson::array({PlainJson{{"field_name", "name"}}});
    return search(PlainJson{{"filter", filter}, {"datasets", datasets}, {"order_by", by_name}});
  }

  TestServer server_;
  std::string run_;
};

TEST_F(LoggedModels, AreFilteredByAMetricOnADataSet) {
  const std::string a = make("a"), b = make("b");
  make("none");
  log(a, "train", "1", 0.8);
  log(a, "test", "2", 0.95);
  log(b, "test", "2", 0.7);
  log(b, "train", "1", 0.99);
  const PlainJson test{{"dataset_name", "test"}}, train{{"dataset_name", "train"}};
  const PlainJson other{{"dataset_name", "test"}, {"dataset_digest", "other"}};
  EXPECT_EQ(filtered("metrics.accuracy > 0.9"), "a b ");  // on any data set
  EXPECT_EQ(filtered("metrics.accuracy > 0.9", PlainJson::array({test})), "a ");
  EXPECT_EQ(filtered("metrics.accuracy > 0.9", PlainJson::array({train})), "b ");
  EXPECT_EQ(filtered("metrics.accuracy > 0.9", PlainJson::array({test, train})), "a b ");
  EXPECT_EQ(filtered("metrics.accuracy > 0.9", PlainJson::array({other})), "");
  EXPECT_EQ(filtered("name = 'a'", PlainJson::array({train})), "a ");
  EXPECT_EQ(filtered("", PlainJson::array({test})), "a b ");  // models that have any metric on this data set
  EXPECT_EQ(filtered(""), "a b none ");
  const PlainJson nameless{{"experiment_ids", "0"},
                           {"datasets", PlainJson::array({PlainJson{{"dataset_digest", "1"}}})}};
  EXPECT_EQ(server_.call("POST", kMlflow + "/logged-models/search", nameless.dump()).status, 400);
}

TEST_F(LoggedModels, AreOrderedByABoundedNumberOfColumns) {
  const auto status = [&](int columns) {
    const PlainJson orders(std::vector<PlainJson>(static_cast<size_t>(columns), PlainJson{{"field_name", "name"}}));
    const PlainJson body{{"experiment_ids", {"0"}}, {"order_by", orders}};
    return server_.call("POST", kMlflow + "/logged-models/search", body.dump()).status;
  };
  EXPECT_EQ(status(50), 200);
  EXPECT_EQ(status(51), 400);
}

TEST_F(LoggedModels, AreOrderedByAMetricOnADataSet) {
  const std::string a = make("a"), b = make("b"), c = make("c");
  log(a, "train", "", 0.8);
  log(a, "test", "", 0.9);
  log(b, "test", "", 0.7);
  log(b, "train", "", 0.6);
  log(c, "other", "", 1);
  const auto ordered = [&](const std::string& dataset, bool ascending) {
    PlainJson order{{"field_name", "metrics.accuracy"}, {"ascending", ascending}};
    if (!dataset.empty()) order["dataset_name"] = dataset;
    return search(PlainJson{{"order_by", PlainJson::array({order})}}).substr(0, 4);
  };
  EXPECT_EQ(ordered("test", true), "b a ");
  EXPECT_EQ(ordered("test", false), "a b ");
  EXPECT_EQ(ordered("train", true), "b a ");
  EXPECT_EQ(ordered("", false), "c a ");
}

TEST_F(LoggedModels, KeepTheNewestValueOfEachDataSet) {
  const std::string a = make("a");
  log(a, "test", "1", 0.5, 2);
  log(a, "test", "1", 0.9, 1);  // older than the stored value
  log(a, "test", "2", 0.6, 1);
  log(a, "", "", 0.7, 5);
  const PlainJson model = server_.call("GET", kMlflow + "/logged-models/" + a).json["model"];
  PlainJson values = PlainJson::array();
  for (const PlainJson& metric : model["data"]["metrics"]) values.push_back(metric["value"]);
  std::sort(values.begin(), values.end());
  EXPECT_EQ(values, PlainJson::array({0.5, 0.6, 0.7}));
}

TEST_F(LoggedModels, AndRunsTakeOneValueForEachParameter) {
  const std::string model = make("a"), of_model = "/logged-models/" + model + "/params";
  const PlainJson one{{"key", "d"}, {"value", "1"}}, other{{"key", "d"}, {"value", "2"}},
      third{{"key", "e"}, {"value", "2"}};
  const auto send = [&](const std::string& route, const PlainJson& params) {
    const PlainJson body{{"run_id", run_}, {"experiment_id", "0"}, {"params", params}};
    return server_.call("POST", kMlflow + route, body.dump());
  };
  for (const std::string& route : {std::string("/runs/log-batch"), std::string("/logged-models"), of_model}) {
    for (const PlainJson& params : {PlainJson::array({one, other}), PlainJson::array({one, third, one})}) {
      const Reply reply = send(route, params);
      EXPECT_EQ(reply.status, 400) << route << " " << params;
      EXPECT_EQ(reply.json.value("error_code", ""), "INVALID_PARAMETER_VALUE") << route;
    }
  }
  EXPECT_TRUE(server_.store.find({store::Kind::kRun, run_})->params.empty());
  EXPECT_EQ(send("/runs/log-batch", PlainJson::array({one, third})).status, 200);
  EXPECT_EQ(send(of_model, PlainJson::array({one, third})).status, 200);
}

TEST_F(LoggedModels, GiveTheirRunToAVersion) {
  const PlainJson body{{"experiment_id", "0"}, {"name", "a"}, {"source_run_id", run_}};
  const std::string model =
      server_.call("POST", kMlflow + "/logged-models", body.dump()).json["model"]["info"]["model_id"];
  ASSERT_EQ(server_.call("POST", kMlflow + "/registered-models/create", R"({"name": "m"})").status, 200);
  const auto run_of_version = [&](PlainJson fields) {
    fields["name"] = "m";
    const Reply reply = server_.call("POST", kMlflow + "/model-versions/create", fields.dump());
    EXPECT_EQ(reply.status, 200) << reply.response.body;
    return reply.json["model_version"]["run_id"];
  };
  EXPECT_EQ(run_of_version({{"source", "models:/" + model}}), run_);
  EXPECT_EQ(run_of_version({{"source", "models:/" + model + "/weights"}}), run_);
  EXPECT_EQ(run_of_version({{"source", "s3://there"}, {"model_id", model}}), run_);
  EXPECT_EQ(run_of_version({{"source", "s3://there"}, {"model_id", "m-none"}}), "");
  EXPECT_EQ(run_of_version({{"source", "s3://there"}}), "");
  EXPECT_EQ(run_of_version({{"source", "models:/" + model}, {"run_id", "of-another-server"}}), "of-another-server");
  const std::string search = kMlflow + "/model-versions/search?filter=run_id%3D%27of-another-server%27";
  EXPECT_EQ(server_.call("GET", search).json["model_versions"].size(), 1u);
}

}  // namespace
}  // namespace sinew::web
