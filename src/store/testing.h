// For tests inside store/: makes temporary stores, clocks and concurrent writes, and runs each test on both databases.
#pragma once

#include <gtest/gtest.h>

#include <bit>
#include <exception>
#include <functional>
#include <latch>
#include <memory>
#include <string>
#include <thread>

#include "base/expected_error.h"
#include "base/hand_clock.h"
#include "store/postgres_server.h"
#include "store/store.h"

namespace sinew::store {

// A location for one store. The destructor removes it.
class Location {
 public:
  explicit Location(bool postgres) : postgres_(postgres) {
    static int count = 0;
    schema_ = "store" + std::to_string(++count);
    if (postgres_) PostgresServer::one().execute("CREATE SCHEMA " + schema_);
  }
  ~Location() {
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

// The fixture of tests that run on both databases.
class OnBoth : public testing::TestWithParam<bool> {
 protected:
  std::unique_ptr<Store> open() {
    Options options;
    options.clock = &clock;
    options.boot_id = "test";
    return std::make_unique<Store>(location.where(), options);
  }
  HandClock clock;
  Location location{GetParam()};
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
  EXPECT_FALSE(outcome.has_value()) << "the store accepted it";
  if (outcome.has_value()) return false;
  EXPECT_FALSE(outcome.error().why.empty());
  EXPECT_EQ(static_cast<int>(outcome.error().reason), static_cast<int>(reason)) << outcome.error().why;
  return outcome.error().reason == reason;
}
// Writes the change and expects that the store accepts it.
inline Answer done(Store& store, Change change) {
  return answer(store.write(std::move(change)));
}
inline void make_run(Store& store, const std::string& id = "r", const std::string& experiment = "e") {
  if (!store.find({Kind::kExperiment, experiment})) done(store, Create{{Kind::kExperiment, experiment}});
  done(store, Create{{Kind::kRun, id}, experiment});
}

// Writes all batches at the same time, each on its own thread, so that the store commits several of them together.
// `finished` runs on those threads. The destructor waits for all threads.
class ConcurrentWrites {
 public:
  using Finished = std::function<void(const Outcome& outcome, std::exception_ptr error)>;
  ConcurrentWrites(Store& store, std::vector<Batch> batches, Finished finished)
      : batches_(std::move(batches)), finished_(std::move(finished)), start_(static_cast<ptrdiff_t>(batches_.size())) {
    for (const Batch& batch : batches_) {
      threads_.emplace_back([this, &store, &batch] {
        start_.arrive_and_wait();
        Outcome outcome;
        std::exception_ptr error;
        try {
          outcome = store.write(batch);
        } catch (...) {
          error = std::current_exception();
        }
        finished_(outcome, error);
      });
    }
  }
  ~ConcurrentWrites() {
    for (std::thread& thread : threads_) thread.join();
  }

 private:
  const std::vector<Batch> batches_;
  const Finished finished_;
  std::latch start_;
  std::vector<std::thread> threads_;
};
inline void write_at_once(Store& store, std::vector<Batch> batches) {
  ConcurrentWrites(store, std::move(batches),
                   [](const Outcome&, const std::exception_ptr& error) { EXPECT_FALSE(error) << "a write threw"; });
}

inline bool operator==(const Point& a, const Point& b) {
  return a.step == b.step && a.time_ms == b.time_ms &&
         std::bit_cast<uint64_t>(a.value) == std::bit_cast<uint64_t>(b.value);
}
inline std::ostream& operator<<(std::ostream& out, const Point& point) {
  return out << "(" << point.step << ", " << point.time_ms << ", " << point.value << ")";
}

}  // namespace sinew::store
