#include <algorithm>
#include <map>

#include "base/cost_limit.h"
#include "base/joined.h"
#include "base/number_text.h"
#include "cluster/cluster.h"
#include "registry/registry.h"
#include "web/api_routes.h"
#include "web/artifacts.h"

namespace sinew::web {
namespace {

using store::Kind;
using store::RunState;

constexpr int64_t kMaxListed = 10'000, kMaxPoints = 1'000'000, kMaxOverlaid = 1000;
constexpr int64_t kMaxInOverlay = 2'000'000;  // the most points of all runs of a response together

// Returns the newest `limit` runs that match, with the metrics named in `keys`. With a filter it reads larger pages of
// the store, because the filter may skip any number of runs.
std::vector<store::Record> listed_runs(Context& context, const Args& args, int64_t limit,
                                       const std::vector<std::string>& keys) {
  constexpr int64_t kFilteredPage = 1000;
  const std::string state = args.text("state", ""), name = args.text("name", "");
  store::Query query{.kind = Kind::kRun, .metrics = !keys.empty()};
  query.hidden = args.flag("hidden", false);
  query.before = args.integer("before", 0);
  query.keys = std::set(keys.begin(), keys.end());
  query.limit = state.empty() && name.empty() ? limit : std::max(limit, kFilteredPage);
  if (args.has("experiment")) query.parent = args.text("experiment");
  std::vector<store::Record> found;
  while (static_cast<int64_t>(found.size()) < limit) {
    store::RecordPage some = context.store.page(query);
    if (!some.records.empty()) query.before = some.records.back().seq;
    for (store::Record& run : some.records) {
      if (!state.empty() && state != store::to_string(run.state)) continue;
      if (!name.empty() && run.name.find(name) == std::string::npos) continue;
      if (static_cast<int64_t>(found.size()) == limit) break;
      run.body.clear();  // a list shows no body, parameters or tags, and they may be large
      run.params.clear();
      run.tags.clear();
      CostLimit::hold_current(store::bytes_of(run));
      found.push_back(std::move(run));
    }
    if (!some.more) break;
  }
  return found;
}

// Writes the points as text without building a JSON tree, because a response may have a hundred thousand of them.
void append_points(std::string& text, const std::vector<store::Point>& points) {
  text += '[';
  for (const store::Point& point : points) {
    text += &point == points.data() ? "[" : ",[";
    append_integer(text, point.step);
    text += ',';
    append_integer(text, point.time_ms);
    text += ',';
    append_json_number(text, point.value);
    text += ']';
  }
  text += ']';
}

// Appends the members of `head` and the points as one object: {..., "points": [...]}.
void append_series(std::string& text, const Json& head, const std::vector<store::Point>& points) {
  text += dump_json(head);
  text.back() = ',';
  text += "\"points\":";
  append_points(text, points);
  text += '}';
}

store::Window window_of(const Args& args, int64_t default_points) {
  store::Window window;
  window.first_step = args.integer("first_step", window.first_step);
  window.last_step = args.integer("last_step", window.last_step);
  window.max_points = args.integer("points", default_points, 4, kMaxPoints);
  return window;
}

std::vector<store::Point> points_of(const Json& list, const std::string& key) {
  const auto wrong = [&] {
    refuse_invalid("a point of '" + key + "' is not [step, time, value]", "use 64-bit integers for step and time");
  };
  if (!list.is_array()) wrong();
  std::vector<store::Point> points;
  points.reserve(list.size());
  for (const Json& entry : list) {
    if (!entry.is_array() || entry.size() != 3 || !entry[0].is_number_integer() || !entry[1].is_number_integer())
      wrong();
    const auto step = integer_of(entry[0]), time_ms = integer_of(entry[1]);
    if (!step || !time_ms) wrong();
    const double value =
        entry[2].is_number() ? entry[2].get<double>() : Args(Json{{"value", entry[2]}}).number("value");
    points.push_back({*step, *time_ms, value});
  }
  return points;
}

}  // namespace

Json run_summary(const store::Record& run) {
  Json json{{"id", run.subject.id},     {"name", run.name},
            {"experiment", run.parent}, {"state", store::to_string(run.state)},
            {"attempt", run.attempt},   {"begun_ms", run.begun_ms}};
  if (run.ended_ms != 0) json["ended_ms"] = run.ended_ms;
  if (run.hidden) json["hidden"] = true;
  json["seq"] = run.seq;
  return json;
}

Json run_details(const store::Record& run) {
  Json json = run_summary(run);
  json["params"] = run.params;
  json["tags"] = run.tags;
  std::map<std::string, Json> metrics;  // a Json object would compare each new name with all its earlier names
  for (const auto& [key, metric] : run.metrics) {
    metrics[key] = {{"last", json_number(metric.last.value)}, {"step", metric.last.step},
                    {"time_ms", metric.last.time_ms},         {"min", json_number(metric.min)},
                    {"max", json_number(metric.max)},         {"points", metric.count}};
  }
  json["metrics"] = metrics;
  const Json body = Json::parse(run.body, nullptr, false);
  if (body.is_object()) json["facts"] = body;
  return json;
}

http::Response api_experiments(Context& context, const Call& call) {
  const Args args(call);
  store::Query query{.kind = Kind::kExperiment, .metrics = false};
  query.hidden = args.flag("hidden", false);
  query.before = args.integer("before", 0);
  query.limit = args.integer("limit", 1000, 1, kMaxListed);
  Json list = Json::array();
  for (const store::Record& record : context.store.list(query)) {
    list.push_back({{"id", record.subject.id},
                    {"name", record.name.empty() ? record.subject.id : record.name},
                    {"begun_ms", record.begun_ms},
                    {"tags", record.tags},
                    {"seq", record.seq}});
  }
  return json_response({{"experiments", list}});
}

// A run in the response has only the metrics that the caller names, because the response may have many runs.
http::Response api_runs(Context& context, const Call& call) {
  const Args args(call);
  const int64_t limit = args.integer("limit", 100, 1, kMaxListed);
  const std::vector<std::string> keys = args.texts("key");
  const std::vector<store::Record> runs = listed_runs(context, args, limit, keys);
  Json list = Json::array();
  for (const store::Record& run : runs) {
    CostLimit::check_current();
    Json json = run_summary(run);
    for (const std::string& key : keys) {
      const auto metric = run.metrics.find(key);
      if (metric != run.metrics.end()) json["metrics"][key] = json_number(metric->second.last.value);
    }
    list.push_back(std::move(json));
  }
  Json answer{{"runs", list}};
  if (static_cast<int64_t>(runs.size()) == limit) answer["before"] = runs.back().seq;
  return json_response(answer);
}

http::Response api_run(Context& context, const Call& call) {
  return json_response(run_details(context.require(Kind::kRun, call.path.at("run"))));
}

http::Response api_run_metric(Context& context, const Call& call) {
  const Args args(call);
  const store::Record run = context.require(Kind::kRun, call.path.at("run"));
  const std::string& key = call.path.at("key");
  const store::Series series[] = {{run.subject.id, key}};
  const auto points = context.store.history(series, window_of(args, 2000)).front();
  http::Response response;
  append_series(response.body, {{"run", run.subject.id}, {"key", key}}, points);
  return response;
}

http::Response api_add_points(Context& context, const Call& call) {
  const Args args(call);
  store::Batch batch;
  const std::string once = args.text("once", ""), run = call.path.at("run");
  if (!once.empty()) batch.key = "points/" + run + "/" + once;  // these keys must be unique in the whole store
  const Json& series = args.json().at("series");
  if (!series.is_object()) refuse_invalid("'series' is not an object", "send {\"loss\": [[step, time, value], ...]}");
  int64_t count = 0;
  for (const auto& [key, list] : series.items()) {
    std::vector<store::Point> points = points_of(list, key);
    count += static_cast<int64_t>(points.size());
    batch.changes.push_back(store::AddPoints{run, key, std::move(points)});
  }
  batch.active = {{Kind::kRun, run}};
  if (batch.changes.empty()) {
    // otherwise nobody checks the run: the store does so only if there is something to write
    context.require(Kind::kRun, run);
  } else {
    context.write(std::move(batch));
  }
  return json_response({{"points", count}});
}

// Returns one metric of many runs. Thins out each series without changing how its line chart looks.
http::Response api_overlay(Context& context, const Call& call) {
  const Args args(call);
  const std::string key = args.text("key");
  std::vector<std::string> runs = args.texts("run");
  if (args.has("experiment")) {
    for (const store::Record& run : listed_runs(context, args, args.integer("limit", 100, 1, kMaxOverlaid), {})) {
      runs.push_back(run.subject.id);
    }
  }
  if (runs.size() > kMaxOverlaid)
    refuse_invalid("an overlay has at most " + std::to_string(kMaxOverlaid) + " runs", "request fewer runs at a time");
  std::vector<store::Series> series;
  for (const std::string& run : runs) series.push_back({run, key});
  const store::Window window = window_of(args, 500);
  if (window.max_points * static_cast<int64_t>(runs.size()) > kMaxInOverlay) {
    refuse_invalid(std::to_string(window.max_points) + " points for each of " + std::to_string(runs.size()) +
                       " runs exceed the limit of " + std::to_string(kMaxInOverlay) + " points in one answer",
                   "request fewer points, or fewer runs at a time");
  }
  const auto all = context.store.history(series, window);
  http::Response response;
  response.body = "{\"key\":" + dump_json(key) + ",\"runs\":[";
  const size_t empty = response.body.size();
  for (size_t i = 0; i < runs.size(); ++i) {
    if (all[i].empty()) continue;
    if (response.body.size() > empty) response.body += ',';
    append_series(response.body, {{"run", runs[i]}}, all[i]);
  }
  response.body += "]}";
  return response;
}

http::Response api_control(Context& context, const Call& call) {
  const Args args(call);
  const std::string action = args.text("action");
  const cluster::RequestKind* kind = cluster::request_kind(action);
  if (kind == nullptr) {
    refuse_invalid("there is no action '" + action + "'",
                   "use one of " + joined(cluster::request_kinds(), ", ", &cluster::RequestKind::name));
  }
  ControlRequest control{action, 0, ""};
  control.reason = args.text("reason", "");
  if (kind->takes_value()) {
    control.value = args.number("value");
    if (!kind->accepts(control.value)) {
      refuse_invalid("the value of " + action + " cannot be " + args.text("value"),
                     std::string("the value is ") + kind->value);
    }
  }
  const store::Record run = context.require(Kind::kRun, call.path.at("run"));
  const auto directory = open_run_directory(context, run.subject);
  if (!directory || !context.options.control) {
    throw Refused(kUnreachableRun, "this server cannot reach the run '" + run.subject.id + "'",
                  "it can reach only runs inside its --root directory");
  }
  control.reason += (control.reason.empty() ? "requested by " : ", requested by ") + context.caller.name;
  try {
    context.options.control(directory->path(), control);
  } catch (const Error& error) {
    std::string what = error.what();  // the message may contain the path of the directory's descriptor
    if (const size_t at = what.find(directory->path()); at != std::string::npos)
      what.replace(at, directory->path().size(), registry::directory_of(run, context.options.runs_root));
    throw Refused({409, error.code, "INVALID_STATE"}, what, error.hint);
  }
  return json_response({{"run", run.subject.id}, {"action", action}});
}

http::Response api_run_files(Context& context, const Call& call) {
  const store::Record run = context.require(Kind::kRun, call.path.at("run"));
  const std::string path = Args(call).text("path", "");
  Json list = Json::array();
  for (const FileEntry& entry : list_files(context, run.subject, path)) {
    list.push_back({{"name", entry.name}, {"directory", entry.directory}, {"bytes", entry.bytes}});
  }
  return json_response({{"files", list}});
}

http::Response api_run_file(Context& context, const Call& call) {
  const store::Record run = context.require(Kind::kRun, call.path.at("run"));
  return download(context, call.request, run.subject, call.path.at("path"));
}

http::Response api_put_run_file(Context& context, const Call& call) {
  const std::string &run = call.path.at("run"), &path = call.path.at("path");
  const store::Attachment file = attach_upload(context, call.request, {Kind::kRun, run, 0}, path);
  return json_response({{"path", file.path}, {"sha256", file.digest}, {"bytes", file.bytes}}, 201);
}

}  // namespace sinew::web
