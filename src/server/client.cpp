// Asks a server, as the client of a command does: which run this is, and which metrics the command logged.
#include <filesystem>
#include <map>
#include <nlohmann/json.hpp>
#include <utility>
#include <vector>

#include "base/json_text.h"
#include "http/http.h"
#include "registry/registry.h"
#include "server/server.h"

namespace sinew::server {
namespace {

namespace fs = std::filesystem;

constexpr double kTimeoutSeconds = 5;  // long enough, because a server indexes its directories every second
constexpr double kPauseSeconds = 0.2;
constexpr size_t kMaxDepth = 8;  // how many levels below the server's root a run directory may be

// Returns the ids that the run may have on the server. The id depends on the run's path relative to the server's root.
// The root is one of the directories above the run, but the caller does not know which.
std::vector<std::string> possible_ids(const std::string& run_directory, const std::string& resolved_yaml) {
  std::vector<std::string> ids;
  const fs::path directory = fs::absolute(run_directory).lexically_normal();
  const std::string job = run_directory + "/job.yaml";
  const std::string job_yaml = system_disk().exists(job) ? read_text(system_disk(), job) : "";
  fs::path relative;
  for (fs::path at = directory; at.has_relative_path() && ids.size() < kMaxDepth; at = at.parent_path()) {
    if (!at.has_filename()) continue;  // a path that ends with a slash, such as "runs/x/", has no last name
    relative = relative.empty() ? at.filename() : at.filename() / relative;
    ids.push_back(registry::run_id_of(relative.string(), job_yaml, resolved_yaml));
  }
  return ids;
}

// Returns whether nothing on the network can read what is sent to the server.
bool keeps_secrets(const std::string& url) {
  const std::string host = http::host_of(url);
  return host.empty() || !url.starts_with("http://") || http::is_this_machine(host);
}

// Sends requests to one server until a deadline.
class Connection {
 public:
  Connection(const std::string& url, const ClientOptions& options, double seconds, Clock& clock)
      : url_(url), client_(url, http_options(options)), clock_(clock), end_(clock.monotonic_seconds() + seconds) {
    if (!options.token.empty()) request_.headers["authorization"] = "Bearer " + options.token;
    if (!options.token.empty() && !keeps_secrets(url))
      refusal_ = "the token (MLFLOW_TRACKING_TOKEN) is not sent to " + url +
                 ", where the network could read it; use https://, or unset the variable";
  }

  double seconds_left() const { return end_ - clock_.monotonic_seconds(); }

  // Returns a response with status 200 or 404, or else a sentence.
  std::expected<http::Response, std::string> get(const std::string& target) {
    if (!refusal_.empty()) return std::unexpected(refusal_);
    const double left = seconds_left();
    if (left <= 0) return std::unexpected(url_ + " is too slow");
    request_.target = target;
    auto response = client_.send(request_, left);
    if (!response) return std::unexpected(response.error().what);
    if (response->status == 401 || response->status == 403)
      return std::unexpected(url_ + " refuses the token (MLFLOW_TRACKING_TOKEN)");
    if (response->status != 200 && response->status != 404)
      return std::unexpected(url_ + " answers with status " + std::to_string(response->status));
    return std::move(*response);
  }

 private:
  static http::ClientOptions http_options(const ClientOptions& options) {
    http::ClientOptions http;
    http.certificate_authority = options.certificate_authority;
    return http;
  }

  const std::string url_;
  http::Client client_;
  Clock& clock_;
  const double end_;
  http::Request request_;
  std::string refusal_;
};

// Returns the object at `target`, or a sentence.
std::expected<nlohmann::ordered_json, std::string> get_object(Connection& connection, const std::string& target) {
  auto response = connection.get(target);
  if (!response) return std::unexpected(response.error());
  if (response->status == 404) return std::unexpected("the server does not know the run any more");
  auto object = nlohmann::ordered_json::parse(response->body, nullptr, false);
  if (!object.is_object()) return std::unexpected("the server's answer is not a JSON object");
  return object;
}

// Returns the text of that name in a JSON object, or "" if there is none.
std::string text_in(const nlohmann::ordered_json& object, const char* name) {
  const auto found = object.is_object() ? object.find(name) : object.end();
  return found != object.end() && found->is_string() ? found->get<std::string>() : "";
}

// The points of a run, which are collected metric by metric.
class Points {
 public:
  int64_t count() const { return count_; }

  // Adds the points of one page of a history. Leaves out what is not a point.
  void add(const std::string& metric, const nlohmann::ordered_json& page) {
    static const std::set<std::string> kFields{"step", "samples", "time"};
    const std::string name = kFields.contains(metric) ? "mlflow/" + metric : metric;
    for (const auto& point : page) {
      if (!point.is_object()) continue;
      const auto value = number_in_json(point.value("value", nlohmann::ordered_json()));
      const auto milliseconds = number_in_json(point.value("timestamp", nlohmann::ordered_json(0)));
      const auto step = point.value("step", nlohmann::ordered_json(0));
      if (!value || !milliseconds || !step.is_number_integer()) continue;
      records_[{step.get<int64_t>(), *milliseconds / 1000}][name] = *value;
      ++count_;
    }
  }

  std::vector<report::MetricRecord> records() && {
    std::vector<report::MetricRecord> all;
    for (auto& [at, values] : records_) all.push_back({at.first, 0, at.second, std::move(values)});
    return all;
  }

 private:
  std::map<std::pair<int64_t, double>, report::Metrics> records_;  // by step and time
  int64_t count_ = 0;
};

// Adds the points of one metric. Returns a sentence if some are missing.
std::string add_history(Connection& connection, const std::string& run_id, const std::string& metric, Points& points) {
  std::string token;
  do {
    if (points.count() >= kMostLoggedPoints)
      return "the run has more than " + std::to_string(kMostLoggedPoints) + " points; the rest stays on the server";
    const auto page =
        get_object(connection, "/api/2.0/mlflow/metrics/get-history?run_id=" + http::percent_encode(run_id) +
                                   "&metric_key=" + http::percent_encode(metric) + "&max_results=25000" +
                                   (token.empty() ? "" : "&page_token=" + http::percent_encode(token)));
    if (!page) return page.error();
    if (const auto found = page->find("metrics"); found != page->end() && found->is_array()) points.add(metric, *found);
    token = text_in(*page, "next_page_token");
  } while (!token.empty());
  return "";
}

}  // namespace

std::expected<std::string, std::string> run_id_at(const std::string& url, const ClientOptions& options,
                                                  const std::string& run_directory, const std::string& resolved_yaml,
                                                  Clock& clock) {
  const std::vector<std::string> ids = possible_ids(run_directory, resolved_yaml);
  Connection connection(url, options, kTimeoutSeconds, clock);
  while (true) {
    for (const std::string& id : ids) {
      if (connection.seconds_left() <= 0) break;
      const auto response = connection.get("/api/v1/runs/" + id);
      if (!response) return std::unexpected(response.error());
      if (response->status == 200) return id;
    }
    if (connection.seconds_left() < kPauseSeconds)
      return std::unexpected(url + " does not know the run; it must be inside that server's --root");
    clock.sleep_seconds(kPauseSeconds);
  }
}

std::expected<report::LoggedMetrics, std::string> logged_metrics(const std::string& url, const ClientOptions& options,
                                                                 const std::string& run_id,
                                                                 const std::set<std::string>& except, Clock& clock) {
  Connection connection(url, options, kLoggedMetricsSeconds, clock);
  const auto run = get_object(connection, "/api/2.0/mlflow/runs/get?run_id=" + http::percent_encode(run_id));
  if (!run) return std::unexpected(run.error());
  const nlohmann::ordered_json::json_pointer place("/run/data/metrics");
  if (!run->contains(place)) return report::LoggedMetrics{};  // a run without metrics
  report::LoggedMetrics logged;
  Points points;
  for (const auto& metric : run->at(place)) {
    const std::string key = text_in(metric, "key");
    if (key.empty() || except.contains(key)) continue;
    logged.left_out = add_history(connection, run_id, key, points);
    if (!logged.left_out.empty()) break;
  }
  if (points.count() == 0 && !logged.left_out.empty()) return std::unexpected(logged.left_out);
  logged.records = std::move(points).records();
  return logged;
}

}  // namespace sinew::server
