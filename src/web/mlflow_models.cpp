#include "web/mlflow_models.h"

#include <algorithm>
#include <set>
#include <tuple>

#include "base/cost_limit.h"
#include "base/json_text.h"
#include "web/artifacts.h"
#include "web/mlflow_registry.h"
#include "web/permissions.h"

namespace sinew::web {
namespace {

using store::Kind;

const Grammar kLoggedModelGrammar{
    true,
    true,
    false,
    {"name", "model_id", "model_type", "status", "source_run_id", "experiment_id"},
    {"creation_timestamp", "creation_time", "last_updated_timestamp", "last_updated_time"}};

store::Record require_logged_model(Context& context, const std::string& id, bool allow_deleted = false) {
  store::Record model = context.require(Kind::kModel, id);
  const bool deleted = body_of(model).value("deleted", false);
  if (!model.tags.contains(kLoggedModelTag) || (deleted && !allow_deleted)) {
    refuse_missing("Logged model with ID '" + id + "' not found.");
  }
  return model;
}

Json model_json(Context& context, const store::Record& model) {
  const Json body = body_of(model);
  store::Labels tags = model.tags;
  tags.erase(kLoggedModelTag);
  const std::string location = logged_model_location(context, model);
  const int64_t updated_ms = body.value("updated_ms", model.begun_ms);
  Json info{{"model_id", model.subject.id},
            {"experiment_id", model.tags.at(kLoggedModelTag)},
            {"name", text_or_empty(body, "name")},
            {"creation_timestamp_ms", model.begun_ms},
            {"last_updated_timestamp_ms", updated_ms},
            {"artifact_uri", location},
            {"status", text_or_empty(body, "status")},
            {"model_type", text_or_empty(body, "model_type")},
            {"source_run_id", text_or_empty(body, "source_run_id")},
            {"tags", labels_json(tags)}};
  return {{"info", info},
          {"data", {{"params", labels_json(model.params)}, {"metrics", body.value("metrics", Json::array())}}}};
}

struct Dataset {
  std::string name, digest;  // empty matches any
};
bool is_on(const Json& metric, const Dataset& dataset) {
  return (dataset.name.empty() || text_or_empty(metric, "dataset_name") == dataset.name) &&
         (dataset.digest.empty() || text_or_empty(metric, "dataset_digest") == dataset.digest);
}

// Returns a key that sorts the values of a metric by age. MLflow uses the newest of several values.
std::pair<int64_t, int64_t> age_of(const Json& metric) {
  return {metric.value("timestamp", int64_t{0}), metric.value("step", int64_t{0})};
}

// Returns the model's metrics on any of these data sets. Returns all its metrics if `datasets` is empty.
std::vector<Json> metrics_on(const store::Record& model, const std::vector<Dataset>& datasets) {
  std::vector<Json> found;
  for (const Json& metric : body_of(model).value("metrics", Json::array())) {
    CostLimit::check_current();
    const bool wanted =
        std::any_of(datasets.begin(), datasets.end(), [&](const Dataset& dataset) { return is_on(metric, dataset); });
    if (datasets.empty() || wanted) found.push_back(metric);
  }
  return found;
}

Fact newest_of(const store::Record& model, const Column& column) {
  std::optional<Json> newest;
  for (const Json& metric : metrics_on(model, {{column.dataset, column.digest}})) {
    if (text_or_empty(metric, "key") != column.key || (newest && age_of(metric) < age_of(*newest))) continue;
    newest = metric;
  }
  return newest ? Fact(Args(*newest).number("value")) : Fact();
}

Fact logged_model_fact(const store::Record& model, const Column& column) {
  const Json body = body_of(model);
  switch (column.field) {
    case Column::Field::kMetric: return newest_of(model, column);
    case Column::Field::kParam: {
      const auto param = model.params.find(column.key);
      return param == model.params.end() ? Fact() : Fact(param->second);
    }
    case Column::Field::kTag: {
      const auto tag = model.tags.find(column.key);
      return tag == model.tags.end() ? Fact() : Fact(tag->second);
    }
    default: break;
  }
  if (column.key == "model_id") return model.subject.id;
  if (column.key == "experiment_id") return model.tags.at(kLoggedModelTag);
  if (column.key.starts_with("last_updated")) return static_cast<double>(body.value("updated_ms", model.begun_ms));
  if (column.key.starts_with("creation")) return static_cast<double>(model.begun_ms);
  return text_or_empty(body, column.key.c_str());
}

// Accepts a word or a number, because an enum in JSON may be either.
std::string status_of(const std::string& word) {
  if (word == "1" || word == "LOGGED_MODEL_PENDING") return "LOGGED_MODEL_PENDING";
  if (word == "2" || word == "LOGGED_MODEL_READY") return "LOGGED_MODEL_READY";
  if (word == "3" || word == "LOGGED_MODEL_UPLOAD_FAILED") return "LOGGED_MODEL_UPLOAD_FAILED";
  refuse_invalid("Invalid model status: " + word, "use LOGGED_MODEL_READY or LOGGED_MODEL_UPLOAD_FAILED");
}

// Reads the order of a search for logged models. The client sends it as an object, not as a text.
Order order_of(const Args& given) {
  Order order =
      parse_order(given.text("field_name") + (given.flag("ascending", true) ? " ASC" : " DESC"), kLoggedModelGrammar);
  order.column.dataset = given.text("dataset_name", "");
  order.column.digest = given.text("dataset_digest", "");
  return order;
}

std::vector<Dataset> datasets_of(const Args& args) {
  std::vector<Dataset> datasets;
  for (const Args& dataset : args.objects("datasets")) {
    const std::string name = dataset.text("dataset_name"), digest = dataset.text("dataset_digest", "");
    if (name.empty()) refuse_invalid("an entry of 'datasets' has an empty name", "send its dataset_name");
    datasets.push_back({name, digest});
  }
  return datasets;
}

// Returns whether the model matches. A comparison with a metric holds if it holds for any value of the metric on one of
// the data sets. If `datasets` are given and no clause names a metric, only models with some metric on them match.
bool matches(const store::Record& model, const std::vector<Clause>& clauses, const std::vector<Dataset>& datasets) {
  const std::vector<Json> metrics = metrics_on(model, datasets);
  const bool of_metrics = std::any_of(clauses.begin(), clauses.end(), [](const Clause& clause) {
    return clause.column.field == Column::Field::kMetric;
  });
  if (!datasets.empty() && !of_metrics && metrics.empty()) return false;
  return matches(clauses, [&](const Column& column) -> std::vector<Fact> {
    if (column.field != Column::Field::kMetric) return {logged_model_fact(model, column)};
    std::vector<Fact> facts;
    for (const Json& metric : metrics) {
      if (text_or_empty(metric, "key") == column.key) facts.emplace_back(Args(metric).number("value"));
    }
    return facts.empty() ? std::vector<Fact>{Fact()} : facts;
  });
}

}  // namespace

std::string logged_model_location(Context& context, const store::Record& model) {
  const std::string experiment = model.tags.at(kLoggedModelTag);
  const auto record = context.store.find({Kind::kExperiment, experiment, 0});
  return (record ? artifact_location(*record) : "mlflow-artifacts:/" + experiment) + "/models/" + model.subject.id +
         "/artifacts";
}

std::string version_location(const store::Subject& version) {
  return "mlflow-artifacts:/versions/" + version.id + "/" + std::to_string(version.number) + "/artifacts";
}

ModelMetrics parse_model_metrics(Context& context, const std::vector<Args>& metrics) {
  ModelMetrics taken;
  for (const Args& metric : metrics) {
    const std::string model = metric.text("model_id", "");
    if (model.empty()) continue;
    Json entry = Json::object();
    entry["key"] = metric.text("key");
    entry["value"] = json_number(metric.number("value"));
    entry["timestamp"] = metric.integer("timestamp", 0);
    entry["step"] = metric.integer("step", 0);
    entry["model_id"] = model;
    for (const char* key : {"dataset_name", "dataset_digest", "run_id"}) {
      if (metric.has(key)) entry[key] = metric.text(key);
    }
    taken[model].push_back(std::move(entry));
  }
  for (const auto& [model, entries] : taken) check_change(context, require_logged_model(context, model));
  return taken;
}

// Keeps the newest value for each key and data set, whatever the order of arrival.
void write_model_metrics(Context& context, const ModelMetrics& metrics) {
  using Identity = std::tuple<std::string, std::string, std::string>;
  const auto identity_of = [](const Json& entry) {
    return Identity(text_or_empty(entry, "key"), text_or_empty(entry, "dataset_name"),
                    text_or_empty(entry, "dataset_digest"));
  };
  for (const auto& [model, entries] : metrics) {
    change_body(context, {Kind::kModel, model}, [&](Json& body) {
      Json& list = body["metrics"];
      if (!list.is_array()) list = Json::array();
      std::map<Identity, size_t> indices;
      for (size_t i = 0; i < list.size(); ++i) indices.emplace(identity_of(list[i]), i);
      for (const Json& entry : entries) {
        const auto [at, fresh] = indices.emplace(identity_of(entry), list.size());
        if (fresh) {
          list.push_back(entry);
        } else if (age_of(entry) >= age_of(list[at->second])) {
          list[at->second] = entry;
        }
      }
    });
  }
}

Response logged_models_create(Context& context, const Call& call) {
  const Args args(call);
  const store::Record experiment = context.require(Kind::kExperiment, args.text("experiment_id"));
  const std::string id = "m-" + new_id();
  Json body = Json::object();
  body["name"] = args.text("name", id);
  body["status"] = "LOGGED_MODEL_PENDING";
  body["model_type"] = args.text("model_type", "");
  body["source_run_id"] = args.text("source_run_id", "");
  body["updated_ms"] = context.now_ms();
  const std::string body_text = dump_json(body);
  store::Create create{{Kind::kModel, id}, "", "", body_text};
  create.params = params_of(args);
  create.tags = tags_of(args);
  create.tags[kLoggedModelTag] = experiment.subject.id;
  store::Batch batch{{std::move(create), store::Update{{Kind::kModel, id}, {}, {}, true}}};
  batch.active = {experiment.subject};
  context.write(std::move(batch));
  return json_response({{"model", model_json(context, require_logged_model(context, id))}});
}

Response logged_models_get(Context& context, const Call& call) {
  const Args args(call);
  const bool allow_deleted = args.flag("allow_deleted", false);
  return json_response(
      {{"model", model_json(context, require_logged_model(context, args.text("model_id"), allow_deleted))}});
}

Response logged_models_finalize(Context& context, const Call& call) {
  const Args args(call);
  const std::string status = status_of(args.text("status"));
  const store::Record model = require_logged_model(context, args.text("model_id"));
  change_body(context, model.subject, [&](Json& body) {
    body["status"] = status;
    body["updated_ms"] = context.now_ms();
  });
  return json_response({{"model", model_json(context, require_logged_model(context, model.subject.id))}});
}

Response logged_models_delete(Context& context, const Call& call) {
  const store::Record model = require_logged_model(context, Args(call).text("model_id"));
  change_body(context, model.subject, [&](Json& body) { body["deleted"] = true; });
  return json_response(Json::object());
}

Response logged_models_search(Context& context, const Call& call) {
  const Args args(call);
  const std::vector<std::string> named = args.texts("experiment_ids");
  const std::set<std::string> experiments(named.begin(), named.end());
  const auto clauses = parse_filter(args.text("filter", ""), kLoggedModelGrammar);
  const std::vector<Dataset> datasets = datasets_of(args);
  const std::vector<Args> columns = args.objects("order_by");
  check_number_of_orders(columns.size());
  std::vector<Order> orders;
  for (const Args& column : columns) add_order(orders, order_of(column));
  std::vector<store::Record> found = all_records(context, Kind::kModel);
  std::erase_if(found, [&](const store::Record& model) {
    const auto experiment = model.tags.find(kLoggedModelTag);
    return experiment == model.tags.end() || body_of(model).value("deleted", false) ||
           !experiments.contains(experiment->second) || !matches(model, clauses, datasets);
  });
  const auto sorted = sorted_order(found.size(), orders, [&](size_t index, const Column& column) {
    return logged_model_fact(found[index], column);
  });
  const Page page = page_of(args, found.size(), 100, 1000);
  Json answer{{"models", Json::array()}};
  for (size_t i = page.first; i < page.last; ++i) answer["models"].push_back(model_json(context, found[sorted[i]]));
  if (!page.next.empty()) answer["next_page_token"] = page.next;
  return json_response(answer);
}

Response logged_models_set_tags(Context& context, const Call& call) {
  const Args args(call);
  const store::Record model = require_logged_model(context, args.text("model_id"));
  const store::Labels tags = tags_of(args);
  if (!tags.empty()) context.write(store::SetTags{model.subject, {tags.begin(), tags.end()}});
  return json_response({{"model", model_json(context, require_logged_model(context, model.subject.id))}});
}

Response logged_models_delete_tag(Context& context, const Call& call) {
  const Args args(call);
  const store::Record model = require_logged_model(context, args.text("model_id"));
  const std::string key = args.text("tag_key");
  check_tag(key);
  if (!model.tags.contains(key)) {
    refuse_missing("No tag with key '" + key + "' found for model with ID '" + model.subject.id + "'.");
  }
  context.write(store::SetTags{model.subject, {{key, std::nullopt}}});
  return json_response(Json::object());
}

Response logged_models_log_params(Context& context, const Call& call) {
  const Args args(call);
  const store::Record model = require_logged_model(context, args.text("model_id"));
  auto params = params_of(args);
  if (!params.empty()) context.write(store::SetParams{model.subject, std::move(params)});
  return json_response(Json::object());
}

Response logged_models_list_artifacts(Context& context, const Call& call) {
  const Args args(call);
  const store::Record model = require_logged_model(context, args.text("model_id"));
  Json answer{{"root_uri", logged_model_location(context, model)}, {"files", Json::array()}};
  const std::string folder = args.text("artifact_directory_path", "");
  for (const FileEntry& entry : list_files(context, model.subject, folder))
    answer["files"].push_back(file_json(entry, folder));
  return json_response(answer);
}

}  // namespace sinew::web
