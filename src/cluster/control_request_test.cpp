// Tests that the coordinator accepts exactly the values that the table of requests allows.
#include "cluster/control_request.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "cluster/messages.h"
#include "cluster/view_json.h"
#include "spec/spec.h"

namespace sinew::cluster {
namespace {

TEST(ControlRequest, TheCoordinatorChecksByTheTable) {
  for (const RequestKind& kind : request_kinds()) {
    ASSERT_EQ(request_kind(kind.name), &kind);
    for (const double value : {kind.least, kind.most}) {
      EXPECT_TRUE(kind.accepts(value)) << kind.name << " " << value;
      EXPECT_EQ(problem_of(ControlRequest{1, kind.name, value, ""}).empty(), kind.logged) << kind.name;
    }
    if (!kind.takes_value()) continue;
    for (const double value : {kind.least / 2, kind.most * 1.5, 0.0, -1.0, std::nan(""),
                               std::numeric_limits<double>::infinity(), kind.whole ? 1.5 : -1.5}) {
      EXPECT_FALSE(kind.accepts(value)) << kind.name << " " << value;
      EXPECT_NE(problem_of(ControlRequest{1, kind.name, value, ""}), "") << kind.name << " " << value;
    }
  }
  EXPECT_EQ(request_kind("pause"), nullptr);
  EXPECT_NE(problem_of(ControlRequest{1, "pause", 0, ""}), "");
}

TEST(ControlRequest, TheJobFileAllowsAsManyWorkers) {
  EXPECT_EQ(kMostMembers, static_cast<size_t>(kMostWorkers));
  const auto is_valid = [](int64_t workers) {
    return spec::read_job("data: {train: x}\nworkers: " + std::to_string(workers) + "\n", "job").problems.empty();
  };
  EXPECT_TRUE(is_valid(kMostWorkers));
  EXPECT_FALSE(is_valid(kMostWorkers + 1));
}

}  // namespace
}  // namespace sinew::cluster
