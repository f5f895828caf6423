// Decides whether a version may become champion, and says why. Pure.
#include <cmath>

#include "base/number_text.h"
#include "registry/registry.h"
#include "report/report.h"

namespace sinew::registry {
namespace {

std::string name_of(const VersionFacts& facts) {
  return "version " + std::to_string(facts.version);
}

// Returns "val" for "val/accuracy".
std::string split_of(const std::string& metric) {
  return metric.substr(0, metric.find('/'));
}

// Returns why metrics of the two versions on this split cannot be compared, or "" if both used the same data.
std::string data_problem(const VersionFacts& candidate, const VersionFacts& champion, const std::string& split) {
  const auto of = [&](const VersionFacts& facts) {
    const auto it = facts.data.find(split);
    return it == facts.data.end() ? std::string() : it->second;
  };
  const std::string mine = of(candidate), other = of(champion);
  if (mine.empty() || other.empty())
    return "the " + split + " data of " + name_of(mine.empty() ? candidate : champion) + " is not recorded";
  if (mine != other)
    return name_of(candidate) + " and " + name_of(champion) + " were measured on different " + split + " data (" +
           mine.substr(0, 12) + ", " + other.substr(0, 12) + ")";
  return "";
}

Decision refuse(Decision decision, const std::string& why) {
  decision.allowed = false;
  decision.why = why;
  return decision;
}

Decision allow(Decision decision, const std::string& why) {
  decision.allowed = true;
  decision.why = why;
  return decision;
}

Decision compare_metric(Decision decision, const VersionFacts& candidate, const VersionFacts& champion,
                        const std::string& metric, double margin) {
  const bool lower = report::lower_is_better(metric);
  const double mine = candidate.metrics.at(metric), other = champion.metrics.at(metric);
  const std::string of_mine = metric + " of " + name_of(candidate) + " is " + rounded_text(mine);
  const std::string of_other = "the champion's (" + name_of(champion) + ") is " + rounded_text(other);
  decision.facts.push_back(of_mine + ", " + of_other + (lower ? "; lower is better" : "; higher is better"));
  if (!std::isfinite(mine)) return refuse(std::move(decision), of_mine);
  const bool enough = std::isnan(other) || (lower ? mine <= other - margin : mine >= other + margin);
  const std::string asked = margin == 0 ? "" : "; the required margin is " + rounded_text(margin);
  if (!enough) return refuse(std::move(decision), of_mine + ", " + of_other + asked);
  return allow(std::move(decision), of_mine + ", " + of_other + asked);
}

}  // namespace

std::string pick_metric(const VersionFacts& candidate, const std::string& wanted) {
  if (wanted != "auto") return wanted;
  std::vector<std::string> choices;
  if (const size_t slash = candidate.monitor.find('/'); slash != std::string::npos)
    choices = {"test" + candidate.monitor.substr(slash), candidate.monitor};
  for (const char* usual : {"test/accuracy", "test/loss", "val/accuracy", "val/loss"}) choices.emplace_back(usual);
  for (const std::string& choice : choices) {
    if (candidate.metrics.contains(choice)) return choice;
  }
  return candidate.monitor.empty() ? "test/accuracy" : candidate.monitor;
}

Decision may_promote(const VersionFacts& candidate, const std::optional<VersionFacts>& champion,
                     const PromotionRules& rules) {
  Decision decision;
  std::string failed;
  for (const auto& [name, result] : candidate.checks) {
    decision.facts.push_back("check " + name + ": " + result);
    if (result != "passed" && failed.empty()) failed = "check " + name + " of " + name_of(candidate) + ": " + result;
  }
  if (rules.need_checks && !failed.empty()) return refuse(std::move(decision), failed);
  if (rules.need_checks && candidate.checks.empty())
    return refuse(std::move(decision), name_of(candidate) + " was not checked");
  if (champion && champion->version == candidate.version)
    return allow(std::move(decision), name_of(candidate) + " is already the champion");
  const std::string metric = pick_metric(candidate, rules.metric);
  if (!candidate.metrics.contains(metric))
    return refuse(std::move(decision), name_of(candidate) + " has no metric " + metric);
  if (!champion) {
    const double mine = candidate.metrics.at(metric);
    if (!std::isfinite(mine))
      return refuse(std::move(decision), metric + " of " + name_of(candidate) + " is " + rounded_text(mine));
    return allow(std::move(decision), "there is no champion yet; " + metric + " is " + rounded_text(mine));
  }
  if (!champion->metrics.contains(metric))
    return refuse(std::move(decision), "the champion, " + name_of(*champion) + ", has no metric " + metric);
  const std::string problem = data_problem(candidate, *champion, split_of(metric));
  if (!problem.empty()) decision.facts.push_back(problem);
  if (rules.need_same_data && !problem.empty())
    return refuse(std::move(decision), metric + " cannot be compared: " + problem);
  return compare_metric(std::move(decision), candidate, *champion, metric, rules.margin);
}

}  // namespace sinew::registry
