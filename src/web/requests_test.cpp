// Sends requests to all routes, made from seeds. The long tier runs them for an hour, and `./dev long fuzz` searches
// with libFuzzer.
#include <gtest/gtest.h>

#include <chrono>
#include <cstdlib>
#include <map>

#include "base/random.h"
#include "web/request_fuzz.h"

namespace sinew::web {
namespace {

std::map<int, int> run_seeds(uint64_t first, uint64_t count, RequestFuzzer& fuzzer) {
  std::map<int, int> statuses;
  for (uint64_t seed = first; seed < first + count; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    RandomStream random(random_key({seed}));
    ++statuses[fuzzer.step([&](uint32_t below) { return random.bits32() % below; })];
  }
  return statuses;
}

TEST(Requests, AnyRequestGetsADocumentedAnswer) {
  RequestFuzzer fuzzer;
  std::map<int, int> statuses = run_seeds(1, 1500, fuzzer);
  for (const int common : {200, 400, 404}) EXPECT_GT(statuses[common], 50) << common;
}

TEST(LongRequests, AnyRequestGetsADocumentedAnswer) {
  if (std::getenv("SINEW_LONG") == nullptr) GTEST_SKIP();
  RequestFuzzer fuzzer;
  const auto until = std::chrono::steady_clock::now() + std::chrono::hours(1);
  for (uint64_t seed = 1'000'000; std::chrono::steady_clock::now() < until; seed += 1000) run_seeds(seed, 1000, fuzzer);
}

}  // namespace
}  // namespace sinew::web
