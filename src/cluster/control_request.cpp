#include "cluster/control_request.h"

#include <algorithm>
#include <cmath>

namespace sinew::cluster {
namespace {

constexpr RequestKind kRequestKinds[] = {
    {.name = "stop"},
    {.name = "checkpoint"},
    {.name = "evaluate"},
    {.name = "learning_rate", .value = "a factor from 1e-9 to 1e6", .least = 1e-9, .most = 1e6},
    {.name = "batch_size", .value = "a whole number of samples from 1 to 1e9", .least = 1, .most = 1e9, .whole = true},
    {.name = "experiment"},
    {.name = "checkpoint_interval", .value = "seconds from 0.1 to 1e8", .least = 0.1, .most = 1e8},
    {.name = "checkpoint_steps",
     .value = "a whole number of steps from 1 to 1e9",
     .least = 1,
     .most = 1e9,
     .whole = true},
    {.name = "loader_threads",
     .value = "a whole number of threads from 1 to 1024",
     .least = 1,
     .most = 1024,
     .whole = true},
    {.name = "scale",
     .value = "a whole number of workers from 1 to 4096",
     .least = 1,
     .most = static_cast<double>(kMostWorkers),
     .whole = true,
     .logged = false}};

}  // namespace

bool RequestKind::accepts(double number) const {
  if (!takes_value()) return true;
  return number >= least && number <= most && (!whole || number == std::floor(number));  // NaN fails the comparisons
}

std::span<const RequestKind> request_kinds() {
  return kRequestKinds;
}

const RequestKind* request_kind(std::string_view name) {
  const auto* found = std::ranges::find(kRequestKinds, name, [](const RequestKind& kind) { return kind.name; });
  return found == std::end(kRequestKinds) ? nullptr : found;
}

}  // namespace sinew::cluster
