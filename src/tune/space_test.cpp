#include <gtest/gtest.h>

#include <set>

#include "base/error.h"
#include "tune/testing.h"

namespace sinew::tune {
namespace {

TEST(Space, EveryPointOfTheCubeMapsToTheSpaceAndBack) {
  const Space space = mixed_space();
  RandomStream random(random_key({1}));
  for (int round = 0; round < 5000; ++round) {
    const Point point = random_point(space, random);
    ASSERT_EQ(space.problem_of(point), std::nullopt) << write_point(space, point);
    const Point again = space.from_unit(space.to_unit(point));
    for (size_t i = 0; i < space.size(); ++i) {
      if (std::isnan(point[i])) {
        EXPECT_TRUE(std::isnan(again[i]));
      } else if (space.cells(i) > 0) {
        EXPECT_EQ(again[i], point[i]) << space[i].name;
      } else {
        EXPECT_NEAR(again[i], point[i], 1e-12 * (1 + std::abs(point[i]))) << space[i].name;
      }
    }
    Point settled = point;
    space.snap(settled);
    EXPECT_TRUE(same_point(settled, point)) << write_point(space, point);
  }
}

TEST(Space, AllValuesAreEquallyLikely) {
  const Space space = mixed_space();
  RandomStream random(random_key({2}));
  std::vector<std::map<double, int>> counts(space.size());
  const int rounds = 20000;
  for (int round = 0; round < rounds; ++round) {
    const Point point = random_point(space, random);
    for (const size_t i : {2u, 3u, 5u, 6u, 7u}) ++counts[i][point[i]];
  }
  for (const size_t i : {2u, 3u, 5u, 6u, 7u}) {
    ASSERT_EQ(counts[i].size(), static_cast<size_t>(space.cells(i))) << space[i].name;
    const double even = rounds / static_cast<double>(space.cells(i));
    for (const auto& [value, count] : counts[i]) EXPECT_NEAR(count, even, 6 * std::sqrt(even)) << space[i].name;
  }
}

TEST(Space, LogarithmicRangesAreEvenInTheLogarithm) {
  const Space space = mixed_space();
  EXPECT_NEAR(space.value_at(0, 0.5), std::sqrt(1e-5), 1e-9);
  EXPECT_EQ(space.value_at(0, 0), 1e-5);
  EXPECT_EQ(space.value_at(0, 1), 1);
  EXPECT_EQ(space.value_at(4, 0), 16);
  EXPECT_EQ(space.value_at(4, 1), 1024);
  EXPECT_EQ(space.value_at(4, 0.5), 126);  // the range is 15.5 to 1024.5
  EXPECT_EQ(space.value_at(5, 1), 20);     // the last of 2, 4, ... below 21
}

TEST(Space, AParameterIsActiveOnlyBelowItsWholeBranch) {
  const Space space = mixed_space();
  const auto point = [&](const char* text) { return read_point(space, text); };
  const std::string rest = R"("lr":0.1,"momentum":0,"drop":0.1,"width":20,"even":4,"size":"m",)";
  EXPECT_NO_THROW(point(("{" + rest + R"("layers":2,"act":"relu","kernel":"rbf","gamma":1})").c_str()));
  EXPECT_NO_THROW(point(("{" + rest + R"("layers":4,"act":3,"kernel":"rbf"})").c_str()));
  EXPECT_NO_THROW(point(("{" + rest + R"("layers":4,"act":null})").c_str()));
  EXPECT_EQ(code_of([&] { point(("{" + rest + R"("layers":4,"act":"relu","kernel":"rbf","gamma":1})").c_str()); }),
            "TUNE_BAD_POINT");
  EXPECT_EQ(code_of([&] { point(("{" + rest + R"("layers":2,"act":"relu","kernel":"rbf"})").c_str()); }),
            "TUNE_BAD_POINT");
  EXPECT_EQ(code_of([&] { point(("{" + rest + R"("layers":2,"act":"gelu"})").c_str()); }), "TUNE_BAD_POINT");
  EXPECT_EQ(code_of([&] { point(("{" + rest + R"("layers":2,"act":"tanh","more":1})").c_str()); }), "TUNE_BAD_POINT");
  EXPECT_EQ(code_of([&] { point(("{" + rest + R"("layers":2.5,"act":"tanh"})").c_str()); }), "TUNE_BAD_POINT");
  EXPECT_EQ(code_of([&] { point(("{" + rest + R"("layers":7,"act":"tanh"})").c_str()); }), "TUNE_BAD_POINT");
}

TEST(Space, WrittenPointsReadBackTheSame) {
  const Space space = mixed_space();
  RandomStream random(random_key({3}));
  for (int round = 0; round < 2000; ++round) {
    const Point point = random_point(space, random);
    EXPECT_TRUE(same_point(read_point(space, write_point(space, point)), point)) << write_point(space, point);
  }
  const Space real = read_space(R"([{"name":"a\"b","type":"float","low":1,"high":9}])");
  EXPECT_EQ(write_point(real, {5}), R"({"a\"b":5.0})");
}

TEST(Space, EnumeratesEveryPointOfAFiniteSpaceOnce) {
  const Space tenths = read_space(R"([{"name":"x","type":"float","low":0,"high":1,"step":0.1},
    {"name":"y","type":"float","low":-0.7,"high":0.7,"step":0.1},{"name":"n","type":"int","low":1,"high":3,"log":true}])");
  ASSERT_EQ(tenths.count(), 11 * 15 * 3);
  for (const Space& space : {finite_space(), tenths}) {
    std::set<std::string> walked, drawn;
    for (std::optional<Point> point = space.first_point(); point; point = space.point_after(*point)) {
      EXPECT_EQ(space.problem_of(*point), std::nullopt) << write_point(space, *point);
      EXPECT_TRUE(walked.insert(write_point(space, *point)).second);
    }
    EXPECT_EQ(walked.size(), static_cast<size_t>(space.count().value()));
    RandomStream random(random_key({4}));
    for (int i = 0; i < 20000; ++i) drawn.insert(write_point(space, random_point(space, random)));
    EXPECT_EQ(walked, drawn);
  }
  EXPECT_EQ(finite_space().count(), 10);
  EXPECT_EQ(mixed_space().count(), std::nullopt);
}

TEST(Space, EqualPointsHaveEqualHashes) {
  RandomStream random(random_key({5}));
  const Space space = finite_space();
  std::map<std::string, uint64_t> hashes;
  for (int i = 0; i < 500; ++i) {
    const Point point = random_point(space, random);
    const auto [found, fresh] = hashes.emplace(write_point(space, point), hash_of(point));
    EXPECT_EQ(found->second, hash_of(point));
  }
  std::set<uint64_t> different;
  for (const auto& [text, hash] : hashes) different.insert(hash);
  EXPECT_EQ(different.size(), hashes.size());
  EXPECT_EQ(hash_of({0.0, kInactive}), hash_of({-0.0, -kInactive}));
}

TEST(Space, MistakesAreNamed) {
  struct Case {
    const char *text, *code, *place;
  };
  const Case cases[] = {
      {R"([])", "TUNE_EMPTY_SPACE", "space"},
      {R"({})", "TUNE_BAD_SPACE", "list"},
      {R"([{"type":"float","low":0,"high":1}])", "TUNE_BAD_PARAMETER", "parameter 1"},
      {R"([{"name":"x","type":"double","low":0,"high":1}])", "TUNE_BAD_PARAMETER", "type"},
      {R"([{"name":"x","type":"float","low":0}])", "TUNE_BAD_PARAMETER", "high"},
      {R"([{"name":"x","type":"float","low":2,"high":1}])", "TUNE_BAD_PARAMETER", "'x'"},
      {R"([{"name":"x","type":"float","low":0,"high":1,"log":true}])", "TUNE_BAD_PARAMETER", "'x'"},
      {R"([{"name":"x","type":"float","low":0,"high":1,"log":3}])", "TUNE_BAD_PARAMETER", "log"},
      {R"([{"name":"x","type":"float","low":"a","high":1}])", "TUNE_BAD_PARAMETER", "low"},
      {R"([{"name":"x","type":"float","low":0,"high":1,"step":-1}])", "TUNE_BAD_PARAMETER", "step"},
      {R"([{"name":"x","type":"float","low":0,"high":1,"step":1e-300}])", "TUNE_BAD_PARAMETER", "step"},
      {R"([{"name":"x","type":"float","low":-1e308,"high":1e308}])", "TUNE_BAD_PARAMETER", "'x'"},
      {R"([{"name":"x","type":"int","low":0.5,"high":2}])", "TUNE_BAD_PARAMETER", "'x'"},
      {R"([{"name":"x","type":"int","low":0,"high":1e300}])", "TUNE_BAD_PARAMETER", "'x'"},
      {R"([{"name":"x","type":"int","low":1,"high":64,"log":true,"step":2}])", "TUNE_BAD_PARAMETER", "step"},
      {R"([{"name":"x","type":"cat","choices":[]}])", "TUNE_BAD_PARAMETER", "choices"},
      {R"([{"name":"x","type":"cat"}])", "TUNE_BAD_PARAMETER", "choices"},
      {R"([{"name":"x","type":"cat","choices":["a","a"]}])", "TUNE_BAD_PARAMETER", "'x'"},
      {R"([{"name":"x","type":"cat","choices":[[1]]}])", "TUNE_BAD_PARAMETER", "choice"},
      {R"([{"name":"x","type":"cat","choices":[1]},{"name":"x","type":"cat","choices":[1]}])", "TUNE_BAD_PARAMETER",
       "'x'"},
      {R"([{"name":"x","type":"cat","choices":[1],"if":{"y":[1]}}])", "TUNE_BAD_PARAMETER", "'y'"},
      {R"([{"name":"y","type":"cat","choices":[1]},{"name":"x","type":"cat","choices":[1],"if":{"y":[2]}}])",
       "TUNE_BAD_PARAMETER", "'y'"},
      {R"([{"name":"y","type":"int","low":1,"high":3},{"name":"x","type":"cat","choices":[1],"if":{"y":[1.5]}}])",
       "TUNE_BAD_PARAMETER", "'y'"},
      {R"([{"name":"y","type":"float","low":1,"high":3},{"name":"x","type":"cat","choices":[1],"if":{"y":[2]}}])",
       "TUNE_BAD_PARAMETER", "'y'"},
      {R"([{"name":"y","type":"cat","choices":[1]},{"name":"x","type":"cat","choices":[1],"if":{"y":[]}}])",
       "TUNE_BAD_PARAMETER", "'x'"},
      {R"([{"name":"x","type":"cat","choices":[1],"if":[1]}])", "TUNE_BAD_PARAMETER", "if"},
      {R"([1])", "TUNE_BAD_PARAMETER", "object"},
      {R"(nonsense)", "TUNE_BAD_SPACE", "JSON"},
  };
  for (const auto& [text, code, place] : cases) {
    try {
      read_space(text);
      ADD_FAILURE() << text << " was taken";
    } catch (const Error& error) {
      EXPECT_EQ(error.code.text(), code) << text << ": " << error.what();
      EXPECT_NE(std::string(error.what()).find(place), std::string::npos) << text << ": " << error.what();
    }
  }
}

}  // namespace
}  // namespace sinew::tune
