#include <algorithm>
#include <cstdio>
#include <nlohmann/json.hpp>

#include "advise/advise.h"
#include "base/json_text.h"

namespace sinew::advise {
namespace {

std::string percent(double share) {
  char text[32];
  std::snprintf(text, sizeof text, "%.0f %%", 100 * share);
  return text;
}

std::string stage_line(Stage stage, double seconds, double all) {
  char text[64];
  std::snprintf(text, sizeof text, "  %-12s %5.1f %%  %10.2f s\n", std::string(name_of(stage)).c_str(),
                100 * seconds / all, seconds);
  return text;
}

}  // namespace

std::string verdict_text(const Verdict& verdict, const StageTimes& time) {
  std::string text;
  for (const Part& part : verdict.parts) {
    if (std::ranges::find(verdict.limits, part.limit) == verdict.limits.end()) continue;
    text += std::string(name_of(part.limit)) + ", " + percent(part.share) + ": " + part.evidence + "\n";
  }
  char head[96];
  std::snprintf(head, sizeof head, "\ntime of %lld %s in %.1f s\n", static_cast<long long>(time.lanes),
                time.lanes == 1 ? "lane" : "lanes", time.total() / static_cast<double>(time.lanes));
  text += head;
  for (const Stage stage : longest_stages(time)) text += stage_line(stage, time[stage], time.total());
  if (!verdict.remedies.empty()) text += "\nwhat can help\n";
  for (const Remedy& remedy : verdict.remedies)
    text += "  " + remedy.what + ": at most " + percent(remedy.at_most) + " faster" +
            (remedy.keeps_result ? "; the model stays the same\n" : "; changes the model\n");
  return text;
}

std::string verdict_json(const Verdict& verdict) {
  nlohmann::ordered_json json = {{"limits", nlohmann::ordered_json::array()},
                                 {"parts", nlohmann::ordered_json::array()},
                                 {"remedies", nlohmann::ordered_json::array()}};
  for (const Limit limit : verdict.limits) json["limits"].push_back(name_of(limit));
  for (const Part& part : verdict.parts)
    json["parts"].push_back(
        {{"limit", name_of(part.limit)}, {"share", json_number(part.share)}, {"evidence", part.evidence}});
  for (const Remedy& remedy : verdict.remedies)
    json["remedies"].push_back({{"what", remedy.what},
                                {"faster_at_most", json_number(remedy.at_most)},
                                {"keeps_result", remedy.keeps_result}});
  return dump_json(json, 2) + "\n";
}

}  // namespace sinew::advise
