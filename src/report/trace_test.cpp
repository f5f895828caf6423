#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "report/report.h"

namespace sinew::report {
namespace {

TEST(Trace, HasARowForTheStepsAndOneForEachLane) {
  const auto trace = nlohmann::json::parse(trace_json(
      {{0, Stage::forward, 100, 100.5}, {1, Stage::data_wait, 100, 100.25}}, {{7, 100, 100.5}, {8, 100.5, 101}}));
  std::vector<std::string> found;
  for (const auto& event : trace.at("traceEvents")) {
    const std::string row = std::to_string(event.at("tid").get<int>()) + " ";
    found.push_back(event.at("ph") == "M" ? row + event.at("args").at("name").get<std::string>()
                                          : row + event.at("name").get<std::string>() + " " + event.at("ts").dump() +
                                                " " + event.at("dur").dump());
  }
  const std::vector<std::string> expected = {"0 steps",
                                             "1 lane 0",
                                             "2 lane 1",
                                             "0 step 7 0.0 500000.0",
                                             "0 step 8 500000.0 500000.0",
                                             "1 forward 0.0 500000.0",
                                             "2 data_wait 0.0 250000.0"};
  EXPECT_EQ(found, expected);
}

TEST(Trace, OfNoStepsIsStillATrace) {
  EXPECT_EQ(nlohmann::json::parse(trace_json({}, {})).at("traceEvents").size(), 1U);
}

}  // namespace
}  // namespace sinew::report
