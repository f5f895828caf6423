// Tests that every route refuses a missing field and a field of a wrong type, and never fails because of one.
#include <gtest/gtest.h>

#include <cctype>
#include <cstdio>
#include <fstream>
#include <iterator>
#include <map>
#include <sstream>

#include "web/documented.h"
#include "web/fields.h"
#include "web/mlflow.h"
#include "web/testing.h"

namespace sinew::web {
namespace {

// Uses nlohmann's sorted JSON, because the fields of a request have no order.
using Fields = nlohmann::json;

const Fields kSearch{{"filter", ""}, {"max_results", 5}, {"page_token", ""}, {"order_by", "name ASC"}};
const Fields kLabels = Fields::array({{{"key", "k"}, {"value", "v"}}});
const Fields kTag{{"key", "k"}, {"value", "v"}}, kKey{{"key", "k"}};

Fields with(Fields fields, const Fields& more) {
  fields.update(more);
  return fields;
}

// Valid fields of MLflow's routes of experiments, runs and files, for each route that takes any. routes.cpp declares
// the fields of Sinew's own routes.
std::map<std::string, Fields> run_fields(const std::string& run) {
  const Fields metric{{"key", "loss"}, {"value", 1}, {"timestamp", 1}, {"step", 1}};
  const Fields of_run{{"run_id", run}}, view{{"view_type", "ALL"}};
  return {
      {"POST /experiments/create", {{"name", "new"}, {"artifact_location", "s3://l"}, {"tags", kLabels}}},
      {"GET /experiments/get", {{"experiment_id", "0"}}},
      {"GET /experiments/get-by-name", {{"experiment_name", "Default"}}},
      {"GET /experiments/search", with(kSearch, view)},
      {"POST /experiments/search", with(kSearch, view)},
      {"POST /experiments/delete", {{"experiment_id", "0"}}},
      {"POST /experiments/restore", {{"experiment_id", "0"}}},
      {"POST /experiments/update", {{"experiment_id", "0"}, {"new_name", "Default"}}},
      {"POST /experiments/set-experiment-tag", with(kTag, {{"experiment_id", "0"}})},
      {"POST /experiments/delete-experiment-tag", with(kKey, {{"experiment_id", "0"}})},
      {"POST /runs/create",
       {{"experiment_id", "0"}, {"run_name", "r"}, {"user_id", "u"}, {"start_time", 1}, {"tags", kLabels}}},
      {"GET /runs/get", of_run},
      {"POST /runs/update", with(of_run, {{"run_name", "r"}, {"status", "RUNNING"}, {"end_time", 1}})},
      {"POST /runs/delete", of_run},
      {"POST /runs/restore", of_run},
      {"POST /runs/set-tag", with(kTag, of_run)},
      {"POST /runs/delete-tag", with(kKey, of_run)},
      {"POST /runs/log-parameter", with(kTag, of_run)},
      {"POST /runs/log-metric", with(metric, of_run)},
      {"POST /runs/log-batch",
       with(of_run, {{"metrics", Fields::array({metric})}, {"params", kLabels}, {"tags", kLabels}})},
      {"POST /runs/log-model", with(of_run, {{"model_json", "{}"}})},
      {"POST /runs/log-inputs",
       with(of_run, {{"datasets", Fields::array({{{"dataset", {{"name", "d"}, {"digest", "g"}}}, {"tags", kLabels}}})},
                     {"models", Fields::array({{{"model_id", "m"}}})}})},
      {"POST /runs/outputs", with(of_run, {{"models", Fields::array({{{"model_id", "m"}, {"step", 1}}})}})},
      {"POST /runs/search",
       with(kSearch, {{"experiment_ids", {"0"}}, {"run_view_type", "ALL"}, {"order_by", {"start_time ASC"}}})},
      {"GET /metrics/get-history", with(of_run, {{"metric_key", "loss"}, {"max_results", 5}, {"page_token", ""}})},
      {"GET /metrics/get-history-bulk", with(of_run, {{"metric_key", "loss"}, {"max_results", 5}})},
      {"GET /metrics/get-history-bulk-interval",
       {{"run_ids", run}, {"metric_key", "loss"}, {"start_step", 0}, {"end_step", 9}, {"max_results", 5}}},
      {"GET /artifacts/list", with(of_run, {{"path", "a"}})},
      {"GET -artifacts/artifacts", {{"path", "0/" + run + "/artifacts"}}},
  };
}

// Valid fields of MLflow's routes of logged models and of the model registry.
std::map<std::string, Fields> model_fields(const std::string& run) {
  const Fields model{{"name", "m"}}, version{{"name", "m"}, {"version", "1"}};
  return {
      {"POST /logged-models",
       {{"experiment_id", "0"},
        {"name", "n"},
        {"model_type", "t"},
        {"source_run_id", run},
        {"params", kLabels},
        {"tags", kLabels}}},
      {"POST /logged-models/search",
       {{"experiment_ids", {"0"}},
        {"filter", ""},
        {"datasets", Fields::array({{{"dataset_name", "d"}, {"dataset_digest", "g"}}})},
        {"order_by", Fields::array({{{"field_name", "name"}, {"ascending", true}, {"dataset_name", "d"}}})},
        {"max_results", 5},
        {"page_token", ""}}},
      {"GET /logged-models/{model_id}", {{"allow_deleted", true}}},
      {"PATCH /logged-models/{model_id}", {{"status", "LOGGED_MODEL_READY"}}},
      {"PATCH /logged-models/{model_id}/tags", {{"tags", kLabels}}},
      {"POST /logged-models/{model_id}/params", {{"params", kLabels}}},
      {"GET /logged-models/{model_id}/artifacts/directories", {{"artifact_directory_path", "a"}}},
      {"POST /registered-models/create", {{"name", "new"}, {"description", "d"}, {"tags", kLabels}}},
      {"GET /registered-models/get", model},
      {"PATCH /registered-models/update", with(model, {{"description", "d"}})},
      {"POST /registered-models/rename", with(model, {{"new_name", "n"}})},
      {"DELETE /registered-models/delete", model},
      {"GET /registered-models/search", kSearch},
      {"GET /registered-models/get-latest-versions", with(model, {{"stages", "None"}})},
      {"POST /registered-models/get-latest-versions", with(model, {{"stages", {"None"}}})},
      {"POST /registered-models/set-tag", with(model, kTag)},
      {"DELETE /registered-models/delete-tag", with(model, kKey)},
      {"POST /registered-models/alias", with(version, {{"alias", "a"}})},
      {"GET /registered-models/alias", with(model, {{"alias", "a"}})},
      {"DELETE /registered-models/alias", with(model, {{"alias", "a"}})},
      {"POST /model-versions/create",
       {{"name", "m"},
        {"source", "s3://b/s"},
        {"run_id", run},
        {"description", "d"},
        {"run_link", "l"},
        {"model_id", "i"},
        {"user_id", "u"},
        {"tags", kLabels}}},
      {"GET /model-versions/get", version},
      {"PATCH /model-versions/update", with(version, {{"description", "d"}})},
      {"DELETE /model-versions/delete", version},
      {"GET /model-versions/search", kSearch},
      {"POST /model-versions/transition-stage",
       with(version, {{"stage", "Staging"}, {"archive_existing_versions", true}})},
      {"POST /model-versions/set-tag", with(version, kTag)},
      {"DELETE /model-versions/delete-tag", with(version, kKey)},
      {"GET /model-versions/get-download-uri", version},
  };
}

std::map<std::string, Fields> mlflow_fields(const std::string& run) {
  std::map<std::string, Fields> fields = run_fields(run);
  fields.merge(model_fields(run));
  return fields;
}

// Values of which every field accepts only some or none.
std::vector<Fields> odd_values() {
  const std::string nested = R"([[], {}, [[]], [{}], [3], true, -1, 0, 1e300, "", "x", "[]", null, {"a": []},
      [{"key": []}], [{"value": 1}], [{"key": "k", "value": []}], [{"key": "k", "value": {}}],
      [{"key": "k", "value": 1, "timestamp": []}], [{"key": "k", "value": 1, "model_id": 5}],
      [{"key": "k", "value": 1, "step": {}}], [{"dataset_name": "d", "dataset_digest": []}],
      [{"field_name": "name", "ascending": []}], [{"field_name": []}]])";
  std::vector<Fields> values = Fields::parse(nested);
  values.emplace_back(std::string(600, 'x'));
  return values;
}

std::string encoded(const std::string& text) {
  std::string out;
  for (const unsigned char c : text) {
    if (std::isalnum(c) != 0) {
      out += static_cast<char>(c);
    } else {
      char code[8];
      std::snprintf(code, sizeof code, "%%%02X", c);
      out += code;
    }
  }
  return out;
}

class Routes : public testing::Test {
 protected:
  Routes() : run_(new_run(test_)) {
    const std::string made = R"({"experiment_id": "0", "name": "n"})", name = R"({"name": "m"})";
    logged_model_ = test_.call("POST", kMlflow + "/logged-models", made).json["model"]["info"]["model_id"];
    EXPECT_EQ(test_.call("POST", kMlflow + "/registered-models/create", name).status, 200);
    EXPECT_EQ(test_.call("POST", kMlflow + "/model-versions/create", R"({"name": "m", "source": "s3://b/s"})").status,
              200);
  }

  std::string path_of(const Route& route) const {
    const bool mlflow = std::string(route.path).find("mlflow-artifacts") != std::string::npos;
    const std::map<std::string, std::string> values{{"{run}", run_},
                                                    {"{key*}", "loss"},
                                                    {"{path*}", mlflow ? "0/" + run_ + "/artifacts/f" : "f"},
                                                    {"{model}", "m"},
                                                    {"{version}", "1"},
                                                    {"{alias}", "champion"},
                                                    {"{model_id}", logged_model_},
                                                    {"{tag_key}", "k"}};
    std::string path = route.path;
    for (size_t at; (at = path.find('{')) != std::string::npos;) {
      const size_t size = path.find('}', at) - at + 1;
      path.replace(at, size, values.at(path.substr(at, size)));
    }
    return path;
  }
  // Sends the fields where the route takes them, in the query or in the body. Returns the status.
  int status(const Route& route, const Fields& fields) {
    std::string target = path_of(route), body;
    if (std::string(route.method) == "GET") {
      for (const auto& [name, value] : fields.items()) {
        target += (target.find('?') == std::string::npos ? '?' : '&') + name + "=" +
                  encoded(value.is_string() ? value.get<std::string>() : value.dump());
      }
    } else {
      body = std::string(route.body) == kFile ? "bytes" : fields.dump();
    }
    const Reply reply = test_.call(route.method, target, body);
    EXPECT_GE(reply.status, 200) << route.method << " " << target << " " << body;
    EXPECT_LT(reply.status, 500) << route.method << " " << target << " " << body << " " << reply.response.body;
    static const Documented document;
    EXPECT_EQ(document.objection(route, reply.response), "")
        << route.method << " " << target << " " << body << " " << reply.response.body;
    return reply.status;
  }
  TestServer test_;
  std::string run_, logged_model_;
};

TEST_F(Routes, AnswerMissingAndOddFieldsWithoutAnErrorOfTheServer) {
  const std::map<std::string, Fields> of_mlflow = mlflow_fields(run_);
  const Fields own{{"series", {{"loss", {{1, 1, 1}}}}}, {"action", "checkpoint"}, {"key", "loss"}, {"version", 1}};
  const std::vector<Fields> odd = odd_values();
  size_t found = 0;
  for (const Route& route : routes()) {
    if (route.handle == not_offered) continue;
    Fields good = Fields::object();
    std::vector<std::string> names;
    for (const char* declared : {route.query, route.body}) {
      if (std::string(declared) == kFile) continue;
      for (const Field& field : parse_fields(declared)) {
        names.push_back(field.name);
        if (field.required) good[field.name] = own.at(field.name);
      }
    }
    const std::string path = route.path;
    const size_t mlflow = path.find("/mlflow");
    const auto known =
        of_mlflow.find(std::string(route.method) + " " + (mlflow == std::string::npos ? "" : path.substr(mlflow + 7)));
    if (known != of_mlflow.end()) {
      ++found;
      good = known->second;
      for (const auto& [name, value] : good.items()) names.push_back(name);
    }
    // A valid request shows that the fields are right. Requests that delete or rename are left out, because later ones
    // need the records.
    const bool deletes = route.method == std::string("DELETE") || path.ends_with("/delete");
    if (!deletes && !path.ends_with("/rename")) {
      EXPECT_NE(status(route, good), 400) << route.method << " " << path;
    }
    for (const std::string& name : names) {
      Fields fields = good;
      fields.erase(name);
      status(route, fields);
      for (const Fields& value : odd) {
        fields[name] = value;
        status(route, fields);
      }
    }
    if (!deletes) status(route, Fields::object());
  }
  EXPECT_EQ(found, of_mlflow.size()) << "a route of the table has another name";
  EXPECT_EQ(test_.call("GET", "/health").status, 200);
}

// Every route of MLflow's API that takes fields must be in the table above.
TEST_F(Routes, OfMlflowAreAllInTheTable) {
  const std::map<std::string, Fields> of_mlflow = mlflow_fields(run_);
  for (const Route& route : routes()) {
    const std::string path = route.path;
    const size_t mlflow = path.find("/mlflow");
    if (mlflow == std::string::npos || route.handle == not_offered || path.ends_with("/server-info")) continue;
    const bool names_all_in_its_path = path.ends_with("{path*}") || path.ends_with("{tag_key}") ||
                                       (path.ends_with("{model_id}") && route.method == std::string("DELETE"));
    EXPECT_EQ(of_mlflow.contains(std::string(route.method) + " " + path.substr(mlflow + 7)), !names_all_in_its_path)
        << route.method << " " << path;
  }
}

// Every reference in openapi.json leads to a definition, and docs/reference/errors.md lists every code that it names.
TEST(OpenApi, NamesOnlyWhatExists) {
  const Fields document = Fields::parse(openapi_text());
  std::ifstream page(std::string(SINEW_SOURCE_DIR) + "/docs/reference/errors.md");
  const std::string codes{std::istreambuf_iterator<char>(page), {}};
  ASSERT_FALSE(codes.empty());
  for (const auto& [status, response] : document["components"]["responses"].items()) {
    std::istringstream words(response["description"].get<std::string>());
    for (std::string word; words >> word;) {
      while (!word.empty() && std::isupper(static_cast<unsigned char>(word.back())) == 0) word.pop_back();
      if (word.find('_') == std::string::npos) continue;
      EXPECT_NE(codes.find("`" + word + "`"), std::string::npos) << word;
    }
  }
  for (const auto& [path, methods] : document["paths"].items()) {
    for (const auto& [method, operation] : methods.items()) {
      for (const auto& [status, response] : operation["responses"].items()) {
        if (!response.contains("$ref")) continue;
        EXPECT_EQ(response["$ref"], "#/components/responses/" + status);
        EXPECT_TRUE(document["components"]["responses"].contains(status)) << path << " " << status;
      }
    }
  }
}

TEST_F(Routes, BulkHistoriesHaveEveryPoint) {
  Fields points = Fields::array();
  for (int step = 0; step < 3000; ++step) points.push_back({step, step, 0.5 * step});
  const std::string body = Fields{{"series", {{"loss", points}}}}.dump();
  ASSERT_EQ(test_.call("POST", "/api/v1/runs/" + run_ + "/points", body).status, 200);
  const std::string bulk = kMlflow + "/metrics/get-history-bulk";
  const Fields all = test_.call("GET", bulk + "?metric_key=loss&run_id=" + run_).json["metrics"];
  ASSERT_EQ(all.size(), 3000u);
  for (int step = 0; step < 3000; ++step) ASSERT_EQ(all[step]["value"], 0.5 * step);
  const std::string interval = bulk + "-interval?metric_key=loss&start_step=10&end_step=19&run_ids=" + run_;
  EXPECT_EQ(test_.call("GET", interval).json["metrics"].size(), 10u);
}

}  // namespace
}  // namespace sinew::web
