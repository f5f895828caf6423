// For tests inside store/: folders, clocks, and the two databases a test runs against, one after the other.
#pragma once

#include <gtest/gtest.h>

#include <bit>
#include <functional>
#include <memory>
#include <string>
#include <thread>

#include "base/hand_clock.h"
#include "store/postgres_server.h"
#include "store/store.h"

namespace sinew::store {

// The Error that the work threw: what and hint. Empty: none.
inline std::string error_of(const std::function<void()>& work) {
  try {
    work();
  } catch (const Error& error) {
    return std::string(error.what()) + " | " + error.hint;
  }
  return "";
}

// A place for one store; gone with it.
class Place {
 public:
  explicit Place(bool postgres) : postgres_(postgres) {
    static int count = 0;
    schema_ = "store" + std::to_string(++count);
    if (postgres_) PostgresServer::one().execute("CREATE SCHEMA " + schema_);
  }
  ~Place() {
    if (postgres_) PostgresServer::one().execute("DROP SCHEMA " + schema_ + " CASCADE");
  }
  std::string where() const { return postgres_ ? PostgresServer::one().url(schema_) : folder_ / "store.db"; }
  const std::string& schema() const { return schema_; }
  bool postgres() const { return postgres_; }

 private:
  const bool postgres_;
  std::string schema_;
  Folder folder_;
};

// Tests that hold for both databases.
class OnBoth : public testing::TestWithParam<bool> {
 protected:
  std::unique_ptr<Store> open() {
    Options options;
    options.clock = &clock;
    options.boot = "test";
    return std::make_unique<Store>(place.where(), options);
  }
  HandClock clock;
  Place place{GetParam()};
};
inline std::string database_name(const testing::TestParamInfo<bool>& info) {
  return info.param ? "Postgres" : "Sqlite";
}
#define ON_BOTH(suite) INSTANTIATE_TEST_SUITE_P(All, suite, testing::Bool(), database_name)

inline Answer answer(const Outcome& outcome) {
  EXPECT_TRUE(outcome.has_value()) << outcome.error().why;
  return outcome.has_value() && !outcome->answers.empty() ? outcome->answers.back() : Answer{};
}
inline bool is_refused(const Outcome& outcome, Refusal::Reason reason) {
  EXPECT_FALSE(outcome.has_value()) << "it was done";
  if (outcome.has_value()) return false;
  EXPECT_FALSE(outcome.error().why.empty());
  EXPECT_EQ(static_cast<int>(outcome.error().reason), static_cast<int>(reason)) << outcome.error().why;
  return outcome.error().reason == reason;
}
// Also says why, when it can not be done.
inline Answer done(Store& store, Change change) {
  return answer(store.write(std::move(change)));
}
inline void make_run(Store& store, const std::string& id = "r", const std::string& experiment = "e") {
  if (!store.find({Kind::kExperiment, experiment})) done(store, Create{{Kind::kExperiment, experiment}});
  done(store, Create{{Kind::kRun, id}, experiment});
}

inline bool operator==(const Point& a, const Point& b) {
  return a.step == b.step && a.time_ms == b.time_ms &&
         std::bit_cast<uint64_t>(a.value) == std::bit_cast<uint64_t>(b.value);
}
inline std::ostream& operator<<(std::ostream& out, const Point& point) {
  return out << "(" << point.step << ", " << point.time_ms << ", " << point.value << ")";
}

}  // namespace sinew::store
