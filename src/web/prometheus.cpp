#include "web/prometheus.h"

#include <cmath>
#include <set>

#include "base/joined.h"
#include "base/number_text.h"
#include "web/api_routes.h"
#include "web/artifacts.h"

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
// Runs with accounts: the newest ones that run, then the newest others. Each has about 35 series and a file to read.
constexpr size_t kMaxAccounts = 100;

struct Account {
  std::string run, name, experiment, state;
  registry::RunAccounts spent;
};

std::vector<Account> accounts_of_runs(Context& context, const std::vector<store::Record>& running) {
  std::vector<Account> accounts;
  std::set<std::string> known;  // that were looked at
  const auto add = [&](const store::Record& run) {
    if (known.size() >= 2 * kMaxAccounts || accounts.size() >= kMaxAccounts) return;
    if (!known.insert(run.subject.id).second) return;
    const auto directory = open_run_directory(context, run.subject);
    auto spent = directory ? registry::accounts_in(*directory) : std::nullopt;
    if (spent)
      accounts.push_back({run.subject.id, run.name, run.parent, store::to_string(run.state), *std::move(spent)});
  };
  for (const store::Record& run : running) add(run);
  const store::Query newest{.kind = Kind::kRun, .metrics = false, .limit = kMaxAccounts};
  const store::RecordPage page = context.store.page(newest);
  for (const store::Record& run : page.records) add(run);
  return accounts;
}

// A figure of ResourceUse that only grows while a run trains.
struct Counter {
  const char* name;
  const char* help;
  double (*value)(const ResourceUse& used);
};
constexpr Counter kCounters[] = {
    {"sinew_run_cpu_seconds_total", "CPU time of all threads.",
     [](const ResourceUse& used) { return used.cpu_seconds; }},
    {"sinew_run_cpu_queued_seconds_total", "Time in which threads could have run, but had no core.",
     [](const ResourceUse& used) { return used.queued_seconds; }},
    {"sinew_run_cpu_throttled_seconds_total", "Time in which the control group had used up its CPU quota.",
     [](const ResourceUse& used) { return used.throttled_seconds; }},
    {"sinew_run_major_faults_total", "Pages that had to be read from a disk.",
     [](const ResourceUse& used) { return static_cast<double>(used.major_faults); }},
    {"sinew_run_disk_read_bytes_total", "Bytes read from disks.",
     [](const ResourceUse& used) { return static_cast<double>(used.disk_read_bytes); }},
    {"sinew_run_disk_written_bytes_total", "Bytes written to disks.",
     [](const ResourceUse& used) { return static_cast<double>(used.disk_written_bytes); }},
    {"sinew_run_network_sent_bytes_total", "Bytes sent to other workers of the run.",
     [](const ResourceUse& used) { return static_cast<double>(used.network.sent_bytes); }},
    {"sinew_run_network_received_bytes_total", "Bytes received from other workers of the run.",
     [](const ResourceUse& used) { return static_cast<double>(used.network.received_bytes); }}};

// The figures are those of the worker that leads the run, in its newest attempt; a resume begins at 0 again.
void write_accounts(const std::vector<Account>& accounts, PrometheusText& out) {
  out.family("sinew_run_info", "gauge", "Names of the runs whose accounts are shown.");
  for (const Account& one : accounts)
    out.sample({{"run", one.run}, {"name", one.name}, {"experiment", one.experiment}, {"state", one.state}}, 1);
  out.family("sinew_run_steps_total", "counter", "Steps committed.");
  for (const Account& one : accounts) out.sample({{"run", one.run}}, static_cast<double>(one.spent.steps));
  out.family("sinew_run_samples_total", "counter", "Training samples in committed steps.");
  for (const Account& one : accounts) out.sample({{"run", one.run}}, static_cast<double>(one.spent.samples));
  out.family("sinew_run_stage_seconds_total", "counter", "Time of all lanes, by what they did.");
  for (const Account& one : accounts) {
    if (!one.spent.time) continue;
    for (size_t i = 0; i < kStages; ++i) {
      const auto stage = static_cast<Stage>(i);
      out.sample({{"run", one.run}, {"stage", std::string(name_of(stage))}}, (*one.spent.time)[stage]);
    }
  }
  for (const Counter& counter : kCounters) {
    out.family(counter.name, "counter", counter.help);
    for (const Account& one : accounts) {
      if (one.spent.resources) out.sample({{"run", one.run}}, counter.value(*one.spent.resources));
    }
  }
  out.family("sinew_run_flops_total", "counter", "Floating-point operations of forward and backward passes.");
  for (const Account& one : accounts) out.sample({{"run", one.run}}, one.spent.flops);
  out.family("sinew_run_memory_bytes", "gauge", "Memory, by what it is for; peak: the most of all of it so far.");
  for (const Account& one : accounts) {
    for (const auto& [kind, bytes] : one.spent.memory_bytes)
      out.sample({{"run", one.run}, {"kind", kind}}, static_cast<double>(bytes));
  }
}

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
  write_accounts(accounts_of_runs(context, running), out);
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
