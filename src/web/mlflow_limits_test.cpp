// Tests the limits of mlflow_limits.h. tests/clients/mlflow_check.py compares them with MLflow's own code.
#include "web/mlflow_limits.h"

#include <gtest/gtest.h>

#include "web/testing.h"

namespace sinew::web {
namespace {

bool accepts(const std::string& key) {
  try {
    check_key(key, "key");
    return true;
  } catch (const Refused& refused) {
    EXPECT_EQ(refused.kind.status, 400);
    EXPECT_LT(std::string(refused.what()).size(), 1000u);
    return false;
  }
}

TEST(MlflowLimits, NamesHaveTheCharactersAndTheLengthOfMlflow) {
  for (const std::string& good :
       {std::string("a"), std::string("val/loss"), std::string("a b-c.d:e_f"), std::string("Größe"),
        std::string("損失"), std::string(".x"), std::string("a/..b"), std::string(250, 'x'), [] {
          std::string s;
          for (int i = 0; i < 250; ++i) s += "ü";
          return s;
        }()}) {
    EXPECT_TRUE(accepts(good)) << good;
  }
  for (const std::string& bad :
       {std::string(""), std::string("a=b"), std::string("a,b"), std::string("a\nb"), std::string("%"),
        std::string("a//b"), std::string("/a"), std::string("a/"), std::string("."), std::string(".."),
        std::string("../a"), std::string("..a"), std::string("a/./b"), std::string("a/../b"), std::string("a/.."),
        std::string("\xf0\x9f\xa7\xa0"),
        std::string("a\xe2\x80\x93"
                    "b"),
        std::string(251, 'x')}) {
    EXPECT_FALSE(accepts(bad)) << bad;
  }
}

TEST(MlflowLimits, AliasesHaveTheNamesOfMlflow) {
  TestServer test;
  EXPECT_EQ(post(test, "/registered-models/create", {{"name", "m"}}, "a"), 200);
  EXPECT_EQ(post(test, "/model-versions/create", {{"name", "m"}, {"source", "s3://b/s"}}, "a"), 200);
  const auto status = [&](const std::string& alias) {
    return post(test, "/registered-models/alias", {{"name", "m"}, {"alias", alias}, {"version", "1"}}, "a");
  };
  for (const std::string& good : {std::string("champion"), std::string("v"), std::string("v1a"), std::string("a_b-c"),
                                  std::string("Größe"), std::string(255, 'x')}) {
    EXPECT_EQ(status(good), 200) << good;
  }
  for (const std::string& bad :
       {std::string(""), std::string("latest"), std::string("Latest"), std::string("v1"), std::string("V20"),
        std::string("a b"), std::string("a.b"), std::string("a/b"), std::string("a:b"), std::string(256, 'x')}) {
    EXPECT_EQ(status(bad), 400) << bad;
  }
}

class Batches : public testing::Test {
 protected:
  Reply log(const PlainJson& fields) {
    PlainJson body{{"run_id", run_}};
    body.update(fields);
    return test_.call("POST", kMlflow + "/runs/log-batch", body.dump(), "s");
  }
  static PlainJson metrics(int count) {
    PlainJson list = PlainJson::array();
    for (int i = 0; i < count; ++i) list.push_back({{"key", "m"}, {"value", i}, {"timestamp", i}, {"step", i}});
    return list;
  }
  static PlainJson labels(int count) {
    PlainJson list = PlainJson::array();
    for (int i = 0; i < count; ++i) list.push_back({{"key", "k" + std::to_string(i)}, {"value", "v"}});
    return list;
  }
  void expect_refused(const PlainJson& fields, const std::string& mention) {
    const Reply reply = log(fields);
    EXPECT_EQ(reply.status, 400) << mention;
    EXPECT_EQ(reply.json["error_code"], "INVALID_PARAMETER_VALUE");
    EXPECT_NE(reply.json.value("message", "").find(mention), std::string::npos) << reply.response.body;
  }
  TestServer test_;
  const std::string run_ = new_run(test_, "x", "s");
};

TEST_F(Batches, HaveTheLimitsOfMlflow) {
  EXPECT_EQ(log({{"metrics", metrics(1000)}}).status, 200);
  EXPECT_EQ(log({{"params", labels(100)}, {"tags", labels(100)}, {"metrics", metrics(800)}}).status, 200);
  expect_refused({{"metrics", metrics(1001)}}, "at most 1000 metrics");
  expect_refused({{"params", labels(101)}}, "at most 100 params");
  expect_refused({{"tags", labels(101)}}, "at most 100 tags");
  expect_refused({{"params", labels(100)}, {"tags", labels(100)}, {"metrics", metrics(801)}},
                 "metrics, params, and tags");
  expect_refused({{"tags", {{{"key", "long"}, {"value", std::string(1'000'001, 'x')}}}}}, "1000000 bytes");
}

TEST_F(Batches, AreRefusedAsAWhole) {
  const PlainJson good{{"key", "good"}, {"value", 1}, {"timestamp", 1}, {"step", 1}};
  PlainJson bad = good, early = good;
  bad["key"] = "a=b";
  early["timestamp"] = -1;
  expect_refused({{"metrics", {good, bad}}}, "metrics[1].name");
  expect_refused({{"metrics", {good, early}}}, "metrics[1].timestamp");
  expect_refused({{"metrics", {good}}, {"params", {{{"key", "p"}, {"value", "1"}}, {{"key", "p"}, {"value", "2"}}}}},
                 "Duplicate");
  expect_refused({{"metrics", {good}}, {"tags", {{{"key", "a,b"}, {"value", "1"}}}}}, "a,b");
  EXPECT_TRUE(test_.call("GET", "/api/v1/runs/" + run_).json["metrics"].empty());
}

TEST_F(Batches, OfADeletedRunAreRefused) {
  ASSERT_EQ(test_.call("POST", kMlflow + "/runs/delete", PlainJson{{"run_id", run_}}.dump()).status, 200);
  expect_refused({{"metrics", metrics(1)}}, "active");
}

TEST(MlflowLimits, PagesHaveTheLimitsOfMlflow) {
  TestServer test;
  const auto search = [&](const PlainJson& more) {
    PlainJson body{{"experiment_ids", {"0"}}};
    body.update(more);
    return test.call("POST", kMlflow + "/runs/search", body.dump(), "r").status;
  };
  EXPECT_EQ(search({{"max_results", 50'000}}), 200);
  EXPECT_EQ(search({{"max_results", 50'001}}), 400);
  EXPECT_EQ(search({{"max_results", 0}}), 400);
  EXPECT_EQ(search({{"max_results", -1}}), 400);
  for (const char* token : {"x", "-1", "1.5", "99999999999999999999", "9999999999999999999"})
    EXPECT_EQ(search({{"page_token", token}}), 400) << token;
}

TEST(MlflowLimits, ExperimentsAndModelsHaveLimitsOfTheirOwn) {
  TestServer test;
  const auto call = [&](const std::string& path, const PlainJson& body) {
    return test.call("POST", kMlflow + path, body.dump()).status;
  };
  EXPECT_EQ(call("/experiments/create", {{"name", std::string(501, 'x')}}), 400);
  EXPECT_EQ(call("/experiments/create", {{"name", std::string(500, 'x')}}), 200);
  PlainJson tag{{"experiment_id", "0"}, {"key", "k"}, {"value", std::string(20'000, 'x')}};
  EXPECT_EQ(call("/experiments/set-experiment-tag", tag), 200);
  tag["value"] = std::string(20'001, 'x');
  EXPECT_EQ(call("/experiments/set-experiment-tag", tag), 400);
  EXPECT_EQ(call("/registered-models/create", {{"name", "m"}}), 200);
  tag = {{"name", "m"}, {"key", "k"}, {"value", std::string(100'001, 'x')}};
  EXPECT_EQ(call("/registered-models/set-tag", tag), 400);
}

}  // namespace
}  // namespace sinew::web
