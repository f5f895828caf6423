#include "web/prometheus.h"

#include <cmath>

#include "base/joined.h"
#include "base/number_text.h"
#include "web/api_routes.h"

namespace sinew::web {
namespace {

using store::Kind;

std::string escaped(const std::string& text, bool quotes) {
  std::string out;
  for (const char c : text) {
    if (c == '\\') {
      out += "\\\\";
    } else if (c == '\n') {
      out += "\\n";
    } else if (c == '"' && quotes) {
      out += "\\\"";
    } else {
      out += c;
    }
  }
  return out;
}

std::string sample_text(double value) {
  if (std::isnan(value)) return "NaN";
  if (std::isinf(value)) return value > 0 ? "+Inf" : "-Inf";
  return number_text(value);
}

// These limits keep the page readable and fast to scrape. Sinew's own API has the rest.
constexpr int64_t kMaxRuns = 500, kMaxSeries = 20'000;

void write_runs(Context& context, PrometheusText& out) {
  std::map<store::RunState, int64_t> states;
  context.store.each({Kind::kRun, {}, {}, false, false, 0, 5000},
                     [&](const store::Record& run) { ++states[run.state]; });
  std::vector<store::Record> running;
  int64_t series_read = 0;
  store::Query query{.kind = Kind::kRun, .limit = kMaxRuns, .state = store::RunState::kRunning};
  for (bool more = true; more && series_read < kMaxSeries && query.limit > 0;) {
    store::RecordPage page = context.store.page(query);
    more = page.more;
    query.limit -= static_cast<int64_t>(page.records.size());
    if (!page.records.empty()) query.before = page.records.back().seq;
    for (store::Record& run : page.records) {
      if (series_read >= kMaxSeries) break;
      series_read += static_cast<int64_t>(run.metrics.size());
      running.push_back(std::move(run));
    }
  }
  out.family("sinew_runs", "gauge", "Runs by state.");
  for (const auto state : {store::RunState::kQueued, store::RunState::kRunning, store::RunState::kPaused,
                           store::RunState::kFinished, store::RunState::kFailed, store::RunState::kStopped}) {
    out.sample({{"state", store::to_string(state)}}, static_cast<double>(states[state]));
  }
  const auto for_each = [&](const auto& take) {
    int64_t series = 0;
    for (const store::Record& run : running) {
      for (const auto& [key, metric] : run.metrics) {
        if (++series > kMaxSeries) return;
        take({{"run", run.subject.id}, {"name", run.name}, {"experiment", run.parent}, {"metric", key}}, metric);
      }
    }
  };
  out.family("sinew_run_metric", "gauge", "Newest value of each metric of each running run.");
  for_each([&](const PrometheusText::Labels& labels, const store::Metric& metric) {
    out.sample(labels, metric.last.value);
  });
  out.family("sinew_run_metric_step", "gauge", "Step of the newest value of each metric of each running run.");
  for_each([&](const PrometheusText::Labels& labels, const store::Metric& metric) {
    out.sample(labels, static_cast<double>(metric.last.step));
  });
}

}  // namespace

void PrometheusText::family(const std::string& name, const std::string& type, const std::string& help) {
  name_ = name;
  text_ += "# HELP " + name + " " + escaped(help, false) + "\n# TYPE " + name + " " + type + "\n";
}

void PrometheusText::sample(const Labels& labels, double value) {
  text_ += name_;
  const std::string list =
      joined(labels, ",", [](const auto& label) { return label.first + "=\"" + escaped(label.second, true) + "\""; });
  if (!list.empty()) text_ += "{" + list + "}";
  text_ += " " + sample_text(value) + "\n";
}

http::Response prometheus(Context& context, const Call&) {
  PrometheusText out;
  write_runs(context, out);
  const auto counter = [&](const char* name, const char* help, const std::atomic<uint64_t>& value) {
    out.family(name, "counter", help);
    out.sample({}, static_cast<double>(value.load()));
  };
  counter("sinew_http_requests_total", "Requests received.", context.counters.requests);
  counter("sinew_http_refused_total", "Requests refused.", context.counters.refused);
  counter("sinew_http_limited_total", "Requests refused by the rate limit.", context.counters.limited);
  counter("sinew_http_failed_total", "Requests that failed because of an error of the server.",
          context.counters.failed);
  out.family("sinew_event_streams", "gauge", "Clients that wait for events.");
  out.sample({}, static_cast<double>(context.watcher.waiting()));
  return {200, out.text(), "text/plain; version=0.0.4; charset=utf-8"};
}

}  // namespace sinew::web
