// Defines the suite of ten functions: five classical surfaces in boxes, two narrow ones, and three that resemble tuning
// a model.
#include <cmath>
#include <numbers>

#include "functions.h"

namespace sinew::bench {
namespace {

constexpr double kPi = std::numbers::pi;

std::string box(int dimensions, const char* low, const char* high) {
  std::string space = "[";
  for (int i = 0; i < dimensions; ++i) {
    space += std::string(i > 0 ? "," : "") + R"({"name":"x)" + std::to_string(i) + R"(","type":"float","low":)" + low +
             R"(,"high":)" + high + "}";
  }
  return space + "]";
}

// Returns a function with this surface, shifted by up to `reach` along each axis.
auto moved(const char* name, double reach, double (*surface)(const std::vector<double>&)) {
  return [=](const Values& p, int variant) {
    auto x = p.all();
    for (size_t i = 0; i < x.size(); ++i) x[i] -= reach * shift(name, variant, static_cast<int>(i));
    return surface(x);
  };
}

double branin(const std::vector<double>& x) {
  const double parabola = x[1] - 5.1 / (4 * kPi * kPi) * x[0] * x[0] + 5 / kPi * x[0] - 6;
  return parabola * parabola + 10 * (1 - 1 / (8 * kPi)) * std::cos(x[0]) + 10;
}

double hartmann6(const std::vector<double>& x) {
  static constexpr double depth[] = {1.0, 1.2, 3.0, 3.2};
  static constexpr double narrow[4][6] = {
      {10, 3, 17, 3.5, 1.7, 8}, {0.05, 10, 17, 0.1, 8, 14}, {3, 3.5, 1.7, 10, 17, 8}, {17, 8, 0.05, 10, 0.1, 14}};
  static constexpr double center[4][6] = {{1312, 1696, 5569, 124, 8283, 5886},
                                          {2329, 4135, 8307, 3736, 1004, 9991},
                                          {2348, 1451, 3522, 2883, 3047, 6650},
                                          {4047, 8828, 8732, 5743, 1091, 381}};
  double sum = 0;
  for (int i = 0; i < 4; ++i) {
    double distance = 0;
    for (int j = 0; j < 6; ++j) distance += narrow[i][j] * std::pow(x[static_cast<size_t>(j)] - center[i][j] * 1e-4, 2);
    sum -= depth[i] * std::exp(-distance);
  }
  return sum;
}

double ackley(const std::vector<double>& x) {
  double squares = 0, waves = 0;
  for (const double v : x) squares += v * v, waves += std::cos(2 * kPi * v);
  const auto n = static_cast<double>(x.size());
  return 20 + std::numbers::e - 20 * std::exp(-0.2 * std::sqrt(squares / n)) - std::exp(waves / n);
}

double rosenbrock(const std::vector<double>& x) {
  double sum = 0;
  for (size_t i = 0; i + 1 < x.size(); ++i) sum += 100 * std::pow(x[i + 1] - x[i] * x[i], 2) + std::pow(1 - x[i], 2);
  return sum;
}

double levy(const std::vector<double>& x) {
  const auto w = [&](size_t i) { return 1 + (x[i] - 1) / 4; };
  double sum = std::pow(std::sin(kPi * w(0)), 2);
  for (size_t i = 0; i + 1 < x.size(); ++i)
    sum += std::pow(w(i) - 1, 2) * (1 + 10 * std::pow(std::sin(kPi * w(i) + 1), 2));
  const double last = w(x.size() - 1);
  return sum + std::pow(last - 1, 2) * (1 + std::pow(std::sin(2 * kPi * last), 2));
}

double styblinski(const std::vector<double>& x) {
  double sum = 0;
  for (const double v : x) sum += v * v * v * v - 16 * v * v + 5 * v;
  return sum / 2;
}

double rastrigin(const std::vector<double>& x) {
  double sum = 0;
  for (const double v : x) sum += v * v + 10 - 10 * std::cos(2 * kPi * v);
  return sum;
}

// The error surface of a kernel machine: chance level far from the minimum, and a slanted valley in (log C, log gamma).
double svm_surface(const Values& p, int variant) {
  const double depth = p.is("kernel", "rbf") ? 0.42 : p.is("kernel", "sigmoid") ? 0.36 : 0.39;
  const double home = (p.is("kernel", "rbf")       ? -2.0
                       : p.is("kernel", "sigmoid") ? -3.0
                                                   : -1.0) +
                      0.5 * shift("svm_surface", variant, 0);
  const double c = p.log10("C") - 1.5 - 0.5 * shift("svm_surface", variant, 1), g = p.log10("gamma") - home;
  const double across = g + 0.6 * c, along = c - 0.3 * g;
  return 0.5 - depth * std::exp(-std::pow(across / 0.9, 2) - std::pow(along / 2.2, 2)) +
         0.005 * (1 - std::cos(2 * kPi * across)) + (p.is("weight", "balanced") ? 0 : 0.015);
}

// Three learners, each with its own search space. Boosted trees are best, and the network is nearly as good.
double cond3(const Values& p, int variant) {
  const auto s = [&](int axis) { return 0.4 * shift("cond3", variant, axis); };
  if (p.is("algo", "svm")) {
    const double value = 0.12 + 0.02 * std::pow(p.log10("svm_C") - 1 - s(0), 2);
    if (p.is("svm_kernel", "linear")) return value + 0.05;
    return value + 0.015 * std::pow(p.log10("svm_gamma") + 2 - s(1), 2) + (p.is("svm_kernel", "poly") ? 0.02 : 0);
  }
  if (p.is("algo", "gbt")) {
    const double trees = p.log2("gbt_n") - 8, ridge = p.log10("gbt_lr") + 1.2 - s(2) + std::log10(2) * trees;
    return 0.08 + 0.06 * ridge * ridge + 0.002 * trees * trees + 0.0015 * std::pow(p("gbt_depth") - 6, 2) +
           0.08 * std::pow(p("gbt_sub") - 0.75 - 0.1 * s(3), 2) + 0.01 * (1 - std::cos(3 * kPi * ridge));
  }
  return 0.085 + 0.03 * std::pow(p.log10("mlp_lr") + 3 - s(4), 2) + 0.01 * std::pow(p("mlp_layers") - 2, 2) +
         0.003 * std::pow(p.log2("mlp_width") - 7, 2) + 0.1 * std::pow(p("mlp_drop") - 0.2, 2) +
         (p.is("mlp_act", "relu")   ? 0.004
          : p.is("mlp_act", "tanh") ? 0.02
                                    : 0);
}

// The error of a network. It diverges above a learning rate that depends on the optimizer, momentum and batch size.
double nn8(const Values& p, int variant) {
  const auto s = [&](int axis) { return 0.3 * shift("nn8", variant, axis); };
  const double batch = p.log2("batch") - 7, width = p.log2("width") - 8, layers = p("layers") - 3;
  double best = (p.is("opt", "sgd") ? -1.0 : p.is("opt", "adam") ? -3.0 : -3.3) + s(0) + 0.15 * batch;
  double error = 0.06 + (p.is("opt", "sgd") ? 0.0 : p.is("opt", "adam") ? 0.004 : 0.02);
  if (p.is("opt", "sgd")) {
    const double momentum = p("momentum") - 0.9;
    best -= momentum;
    error += 0.15 * momentum * momentum;
  } else if (p.is("opt", "adam")) {
    error += 0.02 * std::pow(std::log10(1 - p("beta2")) + 2.5, 2);
  }
  const double off = p.log10("lr") - best;
  if (off > 0.9) return 2.3;
  error += 0.045 * off * off + 0.05 * std::max(0.0, off - 0.5) + 0.004 * std::pow(p.log10("wd") + 4 - s(1), 2);
  error += 0.006 * layers * layers + 0.004 * width * width + 0.003 * batch * batch + 0.002 * layers * width;
  return error + (p.is("act", "relu") ? 0.002 : p.is("act", "tanh") ? 0.015 : p.is("act", "selu") ? 0.01 : 0);
}

constexpr const char* kSvmSpace = R"([{"name":"C","type":"float","low":1e-3,"high":1e4,"log":true},
  {"name":"gamma","type":"float","low":1e-6,"high":1e2,"log":true},
  {"name":"kernel","type":"cat","choices":["rbf","sigmoid","poly"]},
  {"name":"weight","type":"cat","choices":["none","balanced"]},
  {"name":"tol","type":"float","low":1e-6,"high":1e-1,"log":true}])";
constexpr const char* kCondSpace = R"([{"name":"algo","type":"cat","choices":["svm","gbt","mlp"]},
  {"name":"svm_C","type":"float","low":1e-3,"high":1e3,"log":true,"if":{"algo":["svm"]}},
  {"name":"svm_kernel","type":"cat","choices":["linear","rbf","poly"],"if":{"algo":["svm"]}},
  {"name":"svm_gamma","type":"float","low":1e-4,"high":10,"log":true,"if":{"algo":["svm"],"svm_kernel":["rbf","poly"]}},
  {"name":"gbt_lr","type":"float","low":1e-3,"high":1,"log":true,"if":{"algo":["gbt"]}},
  {"name":"gbt_n","type":"int","low":16,"high":1024,"log":true,"if":{"algo":["gbt"]}},
  {"name":"gbt_depth","type":"int","low":1,"high":12,"if":{"algo":["gbt"]}},
  {"name":"gbt_sub","type":"float","low":0.3,"high":1,"if":{"algo":["gbt"]}},
  {"name":"mlp_lr","type":"float","low":1e-5,"high":1e-1,"log":true,"if":{"algo":["mlp"]}},
  {"name":"mlp_layers","type":"int","low":1,"high":4,"if":{"algo":["mlp"]}},
  {"name":"mlp_width","type":"int","low":16,"high":512,"log":true,"if":{"algo":["mlp"]}},
  {"name":"mlp_drop","type":"float","low":0,"high":0.6,"if":{"algo":["mlp"]}},
  {"name":"mlp_act","type":"cat","choices":["relu","tanh","gelu"],"if":{"algo":["mlp"]}}])";
constexpr const char* kNetSpace = R"([{"name":"lr","type":"float","low":1e-5,"high":1,"log":true},
  {"name":"wd","type":"float","low":1e-7,"high":1e-1,"log":true},
  {"name":"batch","type":"int","low":16,"high":1024,"log":true},{"name":"layers","type":"int","low":1,"high":6},
  {"name":"width","type":"int","low":16,"high":1024,"log":true},
  {"name":"act","type":"cat","choices":["relu","gelu","tanh","selu"]},
  {"name":"opt","type":"cat","choices":["sgd","adam","rmsprop"]},
  {"name":"momentum","type":"float","low":0,"high":0.99,"if":{"opt":["sgd"]}},
  {"name":"beta2","type":"float","low":0.9,"high":0.9999,"if":{"opt":["adam"]}}])";

}  // namespace

const std::vector<Function>& suite_functions() {
  static const std::vector<Function> functions = {
      {"branin", R"([{"name":"x0","type":"float","low":-5,"high":10},{"name":"x1","type":"float","low":0,"high":15}])",
       0.397887357729739, moved("branin", 1, branin)},
      {"hartmann6", box(6, "0", "1"), -3.32236801141551, moved("hartmann6", 0.08, hartmann6)},
      {"ackley5", box(5, "-5", "10"), 0, moved("ackley5", 1.8, ackley)},
      {"rosenbrock5", box(5, "-5", "10"), 0, moved("rosenbrock5", 1.8, rosenbrock)},
      {"levy8", box(8, "-5", "10"), 0, moved("levy8", 1.8, levy)},
      {"styblinski5", box(5, "-5", "5"), -39.16616570377142 * 5, moved("styblinski5", 1.2, styblinski)},
      {"rastrigin4", box(4, "-3", "4"), 0, moved("rastrigin4", 0.84, rastrigin)},
      {"svm_surface", kSvmSpace, 0.08, svm_surface},
      {"cond3", kCondSpace, 0.08, cond3},
      {"nn8", kNetSpace, 0.06, nn8},
  };
  return functions;
}

}  // namespace sinew::bench
