// Tests that random operators draw from the scope of their thread or throw, and never draw from the default generator.
#include <ATen/CPUGeneratorImpl.h>
#include <ATen/Context.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>
#include <map>

#include "model/model.h"

namespace sinew::model {
namespace {

using torch::Tensor;
using Draw = std::function<Tensor()>;

const at::Generator& process_generator() {
  return at::globalContext().defaultGenerator(at::kCPU);
}

Tensor in_scope(uint64_t seed, const Draw& draw) {
  const RandomScope scope(random_key({seed, 1, 2}));
  return draw();
}

const Tensor kHalves = torch::full({50, 40}, 0.5);

const std::map<std::string, Draw>& keyed() {
  static const std::map<std::string, Draw> draws = {
      {"dropout", [] { return torch::dropout(kHalves, 0.3, true); }},
      {"native_dropout", [] { return std::get<0>(torch::native_dropout(kHalves, 0.3, true)); }},
      {"alpha_dropout", [] { return torch::alpha_dropout(kHalves, 0.3, true); }},
      {"feature_dropout",
       [] {
         return torch::feature_dropout(kHalves.view({50, 40, 1}), 0.3, true);
       }},
      {"bernoulli", [] { return torch::bernoulli(kHalves); }},
      {"bernoulli.p", [] { return torch::bernoulli(kHalves, 0.2); }},
      {"rand", [] { return torch::rand({2000}); }},
      {"rand_like", [] { return torch::rand_like(kHalves); }},
      {"randn", [] { return torch::randn({2000}); }},
      {"normal", [] { return torch::normal(1.0, 2.0, {2000}); }},
      {"randint", [] { return torch::randint(1000, {2000}); }},
      {"randperm", [] { return torch::randperm(2000); }},
      {"exponential_", [] { return torch::empty({2000}).exponential_(); }},
      {"gumbel_softmax", [] { return -(-torch::rand({2000}).log()).log(); }},
      {"attention",
       [] {
         return at::scaled_dot_product_attention(kHalves.view({1, 1, 50, 40}), kHalves.view({1, 1, 50, 40}),
                                                 kHalves.view({1, 1, 50, 40}), {}, 0.3);
       }},
  };
  return draws;
}

TEST(KeyedRandom, EveryDrawIsAFunctionOfItsScopeAlone) {
  install_keyed_random();
  for (const auto& [name, draw] : keyed()) {
    const Tensor before = process_generator().get_state();
    const Tensor first = in_scope(7, draw);
    in_scope(8, [&] { return torch::rand({11}); });
    EXPECT_TRUE(torch::equal(first, in_scope(7, draw))) << name;
    EXPECT_FALSE(torch::equal(first, in_scope(8, draw))) << name << " does not draw at all";
    EXPECT_TRUE(torch::equal(before, process_generator().get_state())) << name << " drew from the process's generator";
  }
}

TEST(KeyedRandom, ADrawOutsideAScopeIsRefused) {
  install_keyed_random();
  for (const auto& [name, draw] : keyed()) EXPECT_THROW(draw(), c10::Error) << name;
}

TEST(KeyedRandom, OperatorsWithoutAReplacedKernelAreRefusedByName) {
  install_keyed_random();
  const std::map<std::string, Draw> draws = {
      {"poisson", [] { return torch::poisson(kHalves); }},
      {"binomial", [] { return torch::binomial(kHalves, kHalves); }},
      {"multinomial", [] { return torch::multinomial(kHalves, 3, true); }},
      {"cauchy_", [] { return torch::empty({9}).cauchy_(); }},
      {"geometric_", [] { return torch::empty({9}).geometric_(0.5); }},
      {"log_normal_", [] { return torch::empty({9}).log_normal_(); }},
      {"normal", [] { return at::normal(kHalves, kHalves); }},
      {"_standard_gamma", [] { return torch::_standard_gamma(kHalves); }},
      {"_sample_dirichlet", [] { return torch::_sample_dirichlet(kHalves); }},
      {"rrelu", [] { return torch::rrelu(-kHalves, 0.1, 0.3, true); }},
  };
  for (const auto& [name, draw] : draws) {
    const Tensor before = process_generator().get_state();
    try {
      in_scope(7, draw);
      ADD_FAILURE() << name << " was not refused";
    } catch (const c10::Error& error) {
      EXPECT_THAT(error.what_without_backtrace(), testing::HasSubstr(name));
      EXPECT_THAT(error.what_without_backtrace(), testing::HasSubstr("rand, randn, bernoulli"));
    }
    EXPECT_TRUE(torch::equal(before, process_generator().get_state())) << name;
  }
}

}  // namespace
}  // namespace sinew::model
