// Defines the ten functions on which samplers are developed: ill-conditioned, multimodal, stepped, diverging,
// categorical, conditional and wide ones.
#include <algorithm>
#include <cmath>
#include <numbers>

#include "functions.h"

namespace sinew::bench {
namespace {

constexpr double kPi = std::numbers::pi;

std::string entry(const std::string& name, const std::string& rest) {
  return R"({"name":")" + name + R"(",)" + rest + "}";
}

std::string many(int count, const std::string& rest) {
  std::string space = "[";
  for (int i = 0; i < count; ++i) space += (i > 0 ? "," : "") + entry("x" + std::to_string(i), rest);
  return space + "]";
}

constexpr const char* kUnit = R"("type":"float","low":0,"high":1)";

// Returns the position of the minimum along an axis of the unit cube. It is neither in the middle nor at the boundary.
double home(const char* name, int variant, int axis) {
  RandomStream random(derive(derive(random_key({1711}), std::string_view(name)), static_cast<uint64_t>(axis)));
  return std::clamp(random.uniform(0.15, 0.85) + 0.12 * shift(name, variant, axis), 0.05, 0.95);
}

std::vector<double> off(const char* name, int variant, const std::vector<double>& x) {
  auto d = x;
  for (size_t i = 0; i < d.size(); ++i) d[i] -= home(name, variant, static_cast<int>(i));
  return d;
}

// A long valley that is not parallel to an axis, so neighbouring coordinates must move together.
double valley6(const Values& p, int variant) {
  const auto d = off("valley6", variant, p.all());
  double sum = 0;
  for (size_t i = 0; i < d.size(); ++i) {
    const double across = d[i] - d[(i + 1) % d.size()];
    sum += d[i] * d[i] + 40 * across * across;
  }
  return sum;
}

// A bowl with ripples that matter only near its bottom.
double ripples5(const Values& p, int variant) {
  const auto d = off("ripples5", variant, p.all());
  double squares = 0, waves = 1;
  for (size_t i = 0; i < d.size(); ++i) {
    squares += d[i] * d[i];
    waves *= std::cos(20 * d[i] / std::sqrt(static_cast<double>(i + 1)));
  }
  return 2 * squares + 0.15 * (1 - waves);
}

// Twelve random holes, and a narrower and deeper one with the known minimum.
double holes3(const Values& p, int variant) {
  const auto x = p.all();
  const auto d = off("holes3", variant, x);
  double value = 1 - std::exp(-(d[0] * d[0] + d[1] * d[1] + d[2] * d[2]) / 0.02);
  for (uint64_t hole = 0; hole < 12; ++hole) {
    RandomStream random(random_key({77, hole}));
    double distance = 0, from_best = 0;
    for (size_t i = 0; i < 3; ++i) {
      const double center = random.uniform();
      distance += std::pow(x[i] - center, 2);
      from_best += std::pow(center - home("holes3", variant, static_cast<int>(i)), 2);
    }
    if (from_best > 0.05) value = std::min(value, 1 - random.uniform(0.2, 0.75) * std::exp(-distance / 0.03));
  }
  return value;
}

// Whole numbers only. Each number has its own weight, and the value changes in terraces.
double terraces6(const Values& p, int variant) {
  double sum = 0;
  const auto x = p.all();
  for (size_t i = 0; i < x.size(); ++i) {
    const double goal = std::nearbyint(home("terraces6", variant, static_cast<int>(i)) * 24);
    sum += static_cast<double>(i + 1) * std::abs(x[i] - goal) + (std::abs(x[i] - goal) > 4 ? 10 : 0);
  }
  return sum;
}

// The values improve towards an edge. Beyond the edge the value is very bad.
double cliff4(const Values& p, int variant) {
  const auto d = off("cliff4", variant, {p.log10("a") / 6 + 1, p.log10("b") / 6 + 1, p("c"), p("d")});
  const double edge = d[0] + 0.5 * d[1];
  if (edge > 0.08) return 1e6;
  return 3 * d[0] * d[0] + d[1] * d[1] + 0.3 * std::abs(d[2]) + 0.5 * d[3] * d[3];
}

// Eight choices. A wrong choice costs less if the choice before it is wrong too.
double choices8(const Values& p, int variant) {
  const auto x = p.all();
  double sum = 0;
  for (size_t i = 0; i < x.size(); ++i) {
    const auto choice = static_cast<int>(x[i]);
    const int count = 2 + static_cast<int>(i) % 4;
    const auto best = [&](size_t axis) {
      return static_cast<int>(home("choices8", variant, static_cast<int>(axis)) * (2 + static_cast<int>(axis) % 4));
    };
    sum += choice == best(i) ? 0 : 1 + ((choice * 7 + best(i) * 3) % count) * 0.2;
    if (i > 0 && choice != best(i) && static_cast<int>(x[i - 1]) != best(i - 1)) sum -= 0.5;
  }
  return sum;
}

// Twenty numbers, of which five have an effect.
double wide20(const Values& p, int variant) {
  const auto d = off("wide20", variant, p.all());
  double sum = 0;
  for (size_t i = 0; i < 5; ++i)
    sum += static_cast<double>(i + 1) * d[i * 4] * d[i * 4] + 0.02 * (1 - std::cos(8 * kPi * d[i * 4]));
  return sum;
}

// Four methods. The best method has the hardest space, and an easy method is nearly as good.
double methods4(const Values& p, int variant) {
  const auto h = [&](int axis) { return home("methods4", variant, axis); };
  if (p.is("method", "ridge")) return 0.16 + 0.05 * std::pow(p.log10("alpha") / 6 - h(0) + 0.5, 2);
  if (p.is("method", "knn")) return 0.2 + 0.002 * std::abs(p("k") - 1 - std::floor(h(1) * 30));
  if (p.is("method", "forest")) {
    const double depth = (p("depth") - 2) / 18 - h(2), leaf = p.log2("leaf") / 6 - h(3);
    return 0.12 + 0.1 * depth * depth + 0.12 * leaf * leaf + 0.05 * depth * leaf +
           0.1 * std::pow(p("features") - h(4), 2);
  }
  const double rate = p.log10("rate") / 4 + 1 - h(5), decay = p.log10("decay") / 5 + 1 - h(6),
               drop = p("drop") - 0.6 * h(7);
  double value = 0.1 + 0.5 * std::pow(rate + 0.4 * decay, 2) + 0.1 * decay * decay + 0.2 * drop * drop;
  value += p.is("schedule", "cosine") ? 0
           : p.is("schedule", "step") ? 0.01 + 0.05 * std::pow(p("gamma") - 0.5, 2)
                                      : 0.02;
  return value + (p.is("norm", "batch") ? 0 : 0.015);
}

// A training with everything mixed: a plateau of failures, a ridge, and options with little or no effect.
double training9(const Values& p, int variant) {
  const auto h = [&](int axis) { return home("training9", variant, axis); };
  const double rate = p.log10("lr") / 5 + 1 - h(0), batch = p.log2("batch") / 8 - 0.5 - h(1) * 0.3,
               warm = p("warmup") / 10 - h(2);
  if (rate + 0.3 * batch > 0.25) return 1.0;
  double value = 0.05 + 1.2 * std::pow(rate - 0.4 * batch, 2) + 0.2 * batch * batch + 0.03 * warm * warm;
  value += 0.004 * std::abs(p("layers") - 2 - std::floor(h(3) * 6)) + 0.3 * std::pow(p("smooth") - 0.2 * h(4), 2);
  value += p.is("opt", "a") ? 0.02 : p.is("opt", "b") ? 0.0 : 0.05;
  value += p.is("act", "r") ? 0.005 : p.is("act", "g") ? 0.0 : p.is("act", "t") ? 0.02 : 0.01;
  return std::min(value, 1.0);
}

// A deep hole around the minimum. Further away, the value is nearly constant between the steps of terraces.
double plateau4(const Values& p, int variant) {
  const auto d = off("plateau4", variant, p.all());
  double squares = 0;
  for (const double v : d) squares += v * v;
  return 1 - std::exp(-squares / 0.12) + 0.02 * std::floor(5 * std::sqrt(squares));
}

std::string choices8_space() {
  std::string space = "[";
  for (int i = 0; i < 8; ++i) {
    std::string choices;
    for (int c = 0; c < 2 + i % 4; ++c) choices += (c > 0 ? "," : "") + std::to_string(c);
    space += (i > 0 ? "," : "") + entry("x" + std::to_string(i), R"("type":"cat","choices":[)" + choices + "]");
  }
  return space + "]";
}

constexpr const char* kCliffSpace = R"([{"name":"a","type":"float","low":1e-6,"high":1,"log":true},
  {"name":"b","type":"float","low":1e-6,"high":1,"log":true},{"name":"c","type":"float","low":0,"high":1},
  {"name":"d","type":"float","low":0,"high":1}])";
constexpr const char* kMethodsSpace = R"([{"name":"method","type":"cat","choices":["ridge","knn","forest","net"]},
  {"name":"alpha","type":"float","low":1e-3,"high":1e3,"log":true,"if":{"method":["ridge"]}},
  {"name":"k","type":"int","low":1,"high":30,"if":{"method":["knn"]}},
  {"name":"depth","type":"int","low":2,"high":20,"if":{"method":["forest"]}},
  {"name":"leaf","type":"int","low":1,"high":64,"log":true,"if":{"method":["forest"]}},
  {"name":"features","type":"float","low":0,"high":1,"if":{"method":["forest"]}},
  {"name":"rate","type":"float","low":1e-4,"high":1,"log":true,"if":{"method":["net"]}},
  {"name":"decay","type":"float","low":1e-5,"high":1,"log":true,"if":{"method":["net"]}},
  {"name":"drop","type":"float","low":0,"high":0.6,"if":{"method":["net"]}},
  {"name":"schedule","type":"cat","choices":["none","step","cosine"],"if":{"method":["net"]}},
  {"name":"gamma","type":"float","low":0.1,"high":0.9,"if":{"method":["net"],"schedule":["step"]}},
  {"name":"norm","type":"cat","choices":["none","batch"],"if":{"method":["net"]}}])";
constexpr const char* kTrainingSpace = R"([{"name":"lr","type":"float","low":1e-5,"high":1,"log":true},
  {"name":"batch","type":"int","low":8,"high":512,"log":true},{"name":"warmup","type":"int","low":0,"high":10},
  {"name":"layers","type":"int","low":2,"high":8},{"name":"smooth","type":"float","low":0,"high":0.2},
  {"name":"opt","type":"cat","choices":["a","b","c"]},{"name":"act","type":"cat","choices":["r","g","t","s"]},
  {"name":"eps","type":"float","low":1e-9,"high":1e-4,"log":true},{"name":"ema","type":"cat","choices":[true,false]}])";

}  // namespace

const std::vector<Function>& own_functions() {
  static const std::vector<Function> functions = {
      {"valley6", many(6, kUnit), 0, valley6},
      {"ripples5", many(5, kUnit), 0, ripples5},
      {"holes3", many(3, kUnit), 0, holes3},
      {"terraces6", many(6, R"("type":"int","low":0,"high":24)"), 0, terraces6},
      {"cliff4", kCliffSpace, 0, cliff4},
      {"choices8", choices8_space(), 0, choices8},
      {"wide20", many(20, kUnit), 0, wide20},
      {"methods4", kMethodsSpace, 0.1, methods4},
      {"training9", kTrainingSpace, 0.05, training9},
      {"plateau4", many(4, kUnit), 0, plateau4},
  };
  return functions;
}

}  // namespace sinew::bench
