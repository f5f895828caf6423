// Sends requests to all routes, made from seeds. The long tier runs them for an hour, or for SINEW_FUZZ_SECONDS, and
// `./dev long fuzz` searches with libFuzzer.
#include <gtest/gtest.h>

#include <charconv>
#include <chrono>
#include <cstdlib>
#include <iostream>
#include <map>
#include <set>
#include <string>
#include <string_view>

#include "base/random.h"
#include "web/request_fuzz.h"

namespace sinew::web {
namespace {

std::map<int, int> run_seeds(uint64_t first, uint64_t count, RequestFuzzer& fuzzer) {
  std::map<int, int> statuses;
  for (uint64_t seed = first; seed < first + count; ++seed) {
    RandomStream random(random_key({seed}));
    ++statuses[fuzzer.step([&](uint32_t below) { return random.bits32() % below; })];
  }
  return statuses;
}

// Expects that every operation of openapi.json was asked, and prints those for which no request succeeded.
void expect_all_asked(const RequestFuzzer::Answers& answers) {
  const std::set<std::string> operations = Documented().operations();
  uint64_t requests = 0;
  std::string without_success;
  for (const std::string& operation : operations) {
    const auto asked = answers.find(operation);
    if (asked == answers.end()) {
      ADD_FAILURE() << "no request asked " << operation;
      continue;
    }
    for (const auto& [status, count] : asked->second) requests += count;
    const int least = asked->second.begin()->first;
    if (least >= 400 && least != 501) without_success += "\n  " + operation;
  }
  std::cout << requests << " requests to " << operations.size()
            << " operations. No request succeeded of:" << (without_success.empty() ? " none" : without_success) << "\n";
}

int64_t seconds_of_long_test() {
  const char* given = std::getenv("SINEW_FUZZ_SECONDS");
  if (given == nullptr) return 3600;
  const std::string_view text = given;
  int64_t seconds = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), seconds);
  if (error == std::errc() && end == text.data() + text.size() && seconds >= 1 && seconds <= 9'999'999) return seconds;
  ADD_FAILURE() << "SINEW_FUZZ_SECONDS is '" << text << "', but must be a number of seconds from 1";
  return 0;
}

TEST(Requests, AnyRequestGetsADocumentedAnswer) {
  RequestFuzzer fuzzer;
  std::map<int, int> statuses = run_seeds(1, 2000, fuzzer);
  for (const int common : {200, 400, 404}) EXPECT_GT(statuses[common], 50) << common;
  expect_all_asked(fuzzer.answers());
}

// Begins with a new store from time to time, because scans of a large one take most of the time.
TEST(LongRequests, AnyRequestGetsADocumentedAnswer) {
  if (std::getenv("SINEW_LONG") == nullptr) GTEST_SKIP();
  constexpr uint64_t kAtOnce = 2000, kOfAStore = 20'000;
  const auto until = std::chrono::steady_clock::now() + std::chrono::seconds(seconds_of_long_test());
  const auto is_over = [&] { return std::chrono::steady_clock::now() >= until; };
  RequestFuzzer::Answers answers;
  for (uint64_t first = 1'000'000; answers.empty() || !is_over(); first += kOfAStore) {
    std::cout << "a new store, seeds from " << first << std::endl;  // tells after a crash how to repeat it
    RequestFuzzer fuzzer;
    for (uint64_t seed = first; seed == first || (seed < first + kOfAStore && !is_over()); seed += kAtOnce)
      run_seeds(seed, kAtOnce, fuzzer);
    for (const auto& [operation, statuses] : fuzzer.answers()) {
      for (const auto& [status, count] : statuses) answers[operation][status] += count;
    }
  }
  expect_all_asked(answers);
}

}  // namespace
}  // namespace sinew::web
