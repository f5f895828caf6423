// Searches runs, and returns the points of their metrics.
#include <algorithm>

#include "base/cost_limit.h"
#include "base/json_text.h"
#include "web/mlflow.h"

namespace sinew::web {
namespace {

using store::Kind;

const Grammar kRunGrammar{true,
                          true,
                          true,
                          {"run_id", "run_name", "status", "artifact_uri", "user_id", "experiment_id"},
                          {"start_time", "end_time"},
                          {{"created", "start_time"},
                           {"Created", "start_time"},
                           {"run name", "run_name"},
                           {"Run name", "run_name"},
                           {"Run Name", "run_name"},
                           {"run_uuid", "run_id"}}};

Fact label(const store::Labels& labels, const std::string& key) {
  const auto found = labels.find(key);
  return found == labels.end() ? Fact() : Fact(found->second);
}

Fact attribute(const store::Record& run, const std::string& location, const std::string& key) {
  if (key == "run_id") return run.subject.id;
  if (key == "run_name") return run.name;
  if (key == "status") return std::string(status_word(run.state));
  if (key == "experiment_id") return run.parent;
  if (key == "start_time") return static_cast<double>(run.begun_ms);
  if (key == "end_time") return run.ended_ms == 0 ? Fact() : Fact(static_cast<double>(run.ended_ms));
  if (key == "artifact_uri") return location + "/" + run.subject.id + "/artifacts";
  return text_or_empty(body_of(run), "user_id");
}

// Returns the names or the digests of a run's data sets. For the key "context", returns the values of the tag that
// tells how the run used each data set.
std::vector<Fact> dataset_facts(const store::Record& run, const std::string& key) {
  std::vector<Fact> facts;
  const Json body = body_of(run);
  if (!body.contains("dataset_inputs") || !body["dataset_inputs"].is_array()) return facts;
  for (const Json& input : body["dataset_inputs"]) {
    try {
      if (key != "context") {
        facts.emplace_back(input.at("dataset").at(key).get<std::string>());
        continue;
      }
      for (const Json& tag : input.at("tags")) {
        if (tag.at("key") == "mlflow.data.context") facts.emplace_back(tag.at("value").get<std::string>());
      }
    } catch (const nlohmann::json::exception&) {
      // This data set has no such field.
    }
  }
  return facts;
}

struct FoundRun {
  store::Record run;
  const std::string& location;
};

Fact run_fact(const FoundRun& found, const Column& column) {
  switch (column.field) {
    case Column::Field::kMetric: {
      const auto metric = found.run.metrics.find(column.key);
      return metric == found.run.metrics.end() ? Fact() : Fact(metric->second.last.value);
    }
    case Column::Field::kParam: return label(found.run.params, column.key);
    case Column::Field::kTag: return label(found.run.tags, column.key);
    case Column::Field::kAttribute: return attribute(found.run, found.location, column.key);
    case Column::Field::kDataset: break;
  }
  return {};
}

// Returns the keys of the metrics that the filter and the order use.
std::set<std::string> metrics_needed(const std::vector<Clause>& clauses, const std::vector<Order>& orders) {
  std::set<std::string> keys;
  const auto add = [&](const Column& column) {
    if (column.field == Column::Field::kMetric) keys.insert(column.key);
  };
  for (const Clause& clause : clauses) add(clause.column);
  for (const Order& order : orders) add(order.column);
  return keys;
}

// A response {"<name>": [...], "next_page_token": "..."} that is written as text, because it may have very many items.
class ListResponse {
 public:
  explicit ListResponse(const char* name) { text_ = std::string("{\"") + name + "\":["; }

  // Begins an item. The caller appends the item's JSON text to what this returns.
  std::string& next_item() {
    if (!text_.ends_with('[')) text_ += ',';
    return text_;
  }
  size_t bytes() const { return text_.size(); }
  // If the token is empty, there is no next page.
  Response end(const std::string& next_page_token) && {
    text_ += ']';
    if (!next_page_token.empty()) text_ += ",\"next_page_token\":\"" + next_page_token + "\"";
    text_ += "}\n";
    Response response;
    response.body = std::move(text_);
    return response;
  }

 private:
  std::string text_;
};

// Appends {"key", "value", "timestamp", "step", "run_id"}. `key` and `run` are JSON texts already; an empty `run` is
// left out.
void append_metric(std::string& text, const std::string& key, const store::Point& point, const std::string& run) {
  text += "{\"key\":";
  text += key;
  text += ",\"value\":";
  append_json_number(text, point.value);
  text += ",\"timestamp\":" + std::to_string(point.time_ms) + ",\"step\":" + std::to_string(point.step);
  if (!run.empty()) text += ",\"run_id\":" + run;
  text += '}';
}

// A response ends once it has this many bytes; the next page continues.
constexpr size_t kMaxAnswerBytes = 32 << 20;

// Finds the runs that match. Returns the ids of the first `count` of them in the given order, and in `all` the number
// of matching runs. Keeps in memory only the keys that decide the order of these runs.
std::vector<std::string> first_runs(Context& context, const std::vector<std::string>& experiments, const View view,
                                    const std::vector<Clause>& clauses, const std::vector<Order>& orders, size_t count,
                                    size_t& all) {
  store::Query query{.kind = Kind::kRun, .hidden = true, .limit = 5000, .keys = metrics_needed(clauses, orders)};
  query.metrics = !query.keys->empty();
  FirstRecords first(orders, count);
  for (const std::string& id : std::set(experiments.begin(), experiments.end())) {
    const auto experiment = context.store.find({Kind::kExperiment, id, 0});
    if (!experiment) continue;
    const std::string location = artifact_location(*experiment);
    query.parent = id;
    context.store.each(query, [&](store::Record run) {
      const FoundRun candidate{std::move(run), location};
      const auto facts = [&](const Column& column) {
        return column.field == Column::Field::kDataset ? dataset_facts(candidate.run, column.key)
                                                       : std::vector<Fact>{run_fact(candidate, column)};
      };
      CostLimit::check_current();
      if (!is_in(view, candidate.run.hidden) || !matches(clauses, facts)) return;
      std::vector<Fact> keys;
      for (const Order& order : orders) keys.push_back(run_fact(candidate, order.column));
      first.offer(candidate.run.subject.id, std::move(keys));
    });
  }
  all = first.offered();
  return first.ids();
}

}  // namespace

Response runs_search(Context& context, const Call& call) {
  const Args args(call);
  const View view = view_of(args, "run_view_type");
  const auto clauses = parse_filter(args.text("filter", ""), kRunGrammar);
  std::vector<Order> orders = parse_orders(args.texts("order_by"), kRunGrammar);
  orders.push_back({{Column::Field::kAttribute, "start_time"}, false});
  orders.push_back({{Column::Field::kAttribute, "run_id"}, true});
  const Page wanted = page_of(args, kMaxOffset, 1000, 50'000);
  size_t all = 0;
  const auto ids = first_runs(context, args.texts("experiment_ids"), view, clauses, orders, wanted.last, all);
  std::vector<store::Subject> subjects;
  for (size_t i = wanted.first; i < ids.size(); ++i) subjects.push_back({Kind::kRun, ids[i]});
  std::map<std::string, std::string> locations;
  ListResponse response("runs");
  size_t shown = 0;
  while (shown < subjects.size() && response.bytes() < kMaxAnswerBytes) {
    constexpr int64_t kBytesAtOnce = int64_t{4} << 20U;
    for (const auto& run : context.store.find_some(std::span(subjects).subspan(shown), kBytesAtOnce)) {
      if (response.bytes() >= kMaxAnswerBytes) break;
      ++shown;
      if (!run) continue;
      const auto [location, is_new] = locations.try_emplace(run->parent);
      if (is_new) location->second = artifact_location_of_run(context, *run);
      response.next_item() += dump_json(run_json(*run, location->second));
    }
  }
  const size_t next = wanted.first + shown;
  return std::move(response).end(next < all && shown > 0 ? std::to_string(next) : "");
}

// Each request takes its page from the series as it is at that moment, so pages may overlap or skip points of a series
// that changes.
Response metrics_history(Context& context, const Call& call) {
  const Args args(call);
  const std::string id = run_of(args), key = args.text("metric_key");
  context.require(Kind::kRun, id);
  const store::Series series[] = {{id, key}};
  const std::vector<store::Point> points = context.store.history(series).front();
  const Page page = page_of(args, points.size(), 25'000, 100'000);
  const std::string name = dump_json(key);
  ListResponse response("metrics");
  for (size_t i = page.first; i < page.last; ++i) append_metric(response.next_item(), name, points[i], "");
  return std::move(response).end(page.next);
}

namespace {

constexpr size_t kMaxRunsAtOnce = 100;

std::vector<std::string> checked_runs(std::vector<std::string> runs) {
  if (runs.empty() || runs.size() > kMaxRunsAtOnce) {
    refuse_invalid("GetMetricHistoryBulk takes 1 to 100 run ids, not " + std::to_string(runs.size()));
  }
  return runs;
}

// Reads one series after another, so that only one complete series is in memory.
Response bulk(Context& context, const std::vector<std::string>& runs, const std::string& key,
              const store::Window& window, size_t max_points) {
  const std::string name = dump_json(key);
  ListResponse response("metrics");
  size_t count = 0;
  for (const std::string& run : runs) {
    if (count == max_points) break;
    const CostLimit::Temporary series_in_memory;
    const store::Series series[] = {{run, key}};
    const std::vector<store::Point> points = context.store.history(series, window).front();
    const std::string id = dump_json(run);
    for (size_t i = 0; i < points.size() && count < max_points; ++i, ++count)
      append_metric(response.next_item(), name, points[i], id);
  }
  return std::move(response).end("");
}

}  // namespace

// Returns at most 25,000 points, even if the client asks for more, as MLflow's own server does.
Response metrics_history_bulk(Context& context, const Call& call) {
  constexpr int64_t kMax = 25'000;
  const Args args(call);
  const auto max_points = static_cast<size_t>(std::min(args.integer("max_results", kMax, 1, INT64_MAX), kMax));
  const std::vector<std::string> runs = checked_runs(args.texts("run_id"));
  const std::string key = args.text("metric_key");
  return bulk(context, runs, key, {}, max_points);
}

Response metrics_history_bulk_interval(Context& context, const Call& call) {
  constexpr int64_t kMaxPointsOfRun = 2500;
  const Args args(call);
  store::Window window;
  window.first_step = args.integer("start_step", window.first_step);
  window.last_step = args.integer("end_step", window.last_step);
  window.max_points = std::max<int64_t>(4, args.integer("max_results", kMaxPointsOfRun, 1, kMaxPointsOfRun));
  const std::vector<std::string> runs = checked_runs(args.texts("run_ids"));
  const std::string key = args.text("metric_key");
  return bulk(context, runs, key, window, SIZE_MAX);
}

// Tells the client that this server offers none of these optional features. So clients upload and download each
// artifact in one request.
Response server_info(Context&, const Call&) {
  return json_response({{"store_type", "sinew"},
                        {"workspaces_enabled", false},
                        {"trace_archival_enabled", false},
                        {"multipart_uploads_enabled", false},
                        {"multipart_downloads_enabled", false}});
}

Response not_offered(Context&, const Call& call) {
  throw Refused(kNotOffered, "this server does not offer " + call.request.path,
                "it offers runs, metrics, parameters, tags, artifacts, logged models and the model registry");
}

}  // namespace sinew::web
