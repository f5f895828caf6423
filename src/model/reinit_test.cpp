// Tests the values of reinitialised parameters, and what these values depend on.
#include <gtest/gtest.h>

#include <cmath>

#include "base/error.h"
#include "model/model.h"

namespace sinew::model {
namespace {

struct Tensors {
  std::vector<NamedTensor> parameters = {
      {"body.weight", torch::full({8, 4}, 9.0F)}, {"body.bias", torch::full({8}, 9.0F)},
      {"norm.weight", torch::full({8}, 9.0F)},    {"norm.bias", torch::full({8}, 9.0F)},
      {"head.weight", torch::full({3, 8}, 9.0F)}, {"head.bias", torch::full({3}, 9.0F)},
      {"scale", torch::full({}, 9.0F)},
  };
  std::vector<NamedTensor> buffers = {{"norm.running_mean", torch::full({8}, 9.0F)},
                                      {"norm.running_var", torch::full({8}, 9.0F)},
                                      {"norm.num_batches_tracked", torch::full({}, 9, torch::kInt64)},
                                      {"places", torch::full({8}, 9.0F)}};
  const torch::Tensor& operator[](const std::string& name) const {
    for (const auto* list : {&parameters, &buffers}) {
      for (const NamedTensor& item : *list) {
        if (item.name == name) return item.tensor;
      }
    }
    throw Error("TEST_NO_TENSOR", "no " + name, "");
  }
};

Tensors reinitialised(const std::vector<std::string>& patterns, uint64_t seed = 1) {
  install_keyed_random();
  Tensors tensors;
  reinitialise(patterns, tensors.parameters, tensors.buffers, seed);
  return tensors;
}

TEST(Reinit, ChangesOnlyWhatThePatternMatches) {
  const Tensors made = reinitialised({"head.*"});
  const Tensors before;
  for (const NamedTensor& item : before.parameters)
    EXPECT_EQ(torch::equal(made[item.name], item.tensor), !item.name.starts_with("head.")) << item.name;
  for (const NamedTensor& item : before.buffers) EXPECT_TRUE(torch::equal(made[item.name], item.tensor)) << item.name;
}

TEST(Reinit, IsWithinOneOverTheRootOfFanIn) {
  const Tensors made = reinitialised({"*"});
  const auto largest = [&](const char* name) { return made[name].abs().max().item<double>(); };
  EXPECT_LE(largest("head.weight"), 1 / std::sqrt(8.0));
  EXPECT_GT(largest("head.weight"), 0.5 / std::sqrt(8.0));
  EXPECT_LE(largest("head.bias"), 1 / std::sqrt(8.0));
  EXPECT_GT(largest("head.bias"), 0);
  EXPECT_LE(largest("body.weight"), 0.5);
  EXPECT_TRUE(torch::equal(made["norm.weight"], torch::ones({8})));
  EXPECT_TRUE(torch::equal(made["norm.bias"], torch::zeros({8})));
  EXPECT_EQ(made["scale"].item<float>(), 0);
  EXPECT_TRUE(torch::equal(made["norm.running_mean"], torch::zeros({8})));
  EXPECT_TRUE(torch::equal(made["norm.running_var"], torch::ones({8})));
  EXPECT_EQ(made["norm.num_batches_tracked"].item<int64_t>(), 0);
  EXPECT_EQ(made["places"][0].item<float>(), 9);
}

TEST(Reinit, IsAFunctionOfSeedAndName) {
  EXPECT_TRUE(
      torch::equal(reinitialised({"head.*"})["head.weight"], reinitialised({"body.*", "head.weight"})["head.weight"]));
  EXPECT_FALSE(torch::equal(reinitialised({"head.*"}, 1)["head.weight"], reinitialised({"head.*"}, 2)["head.weight"]));
}

TEST(Reinit, APatternWithoutAMatchIsAnError) {
  EXPECT_THROW(reinitialised({"haed.*"}), Error);
}

}  // namespace
}  // namespace sinew::model
