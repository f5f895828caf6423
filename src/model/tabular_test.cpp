// Tests the network for tables: its inputs, its initial values, and the range of its predictions.
// tests/reference/tabular_test.py compares its training with a PyTorch script.
#include <gtest/gtest.h>

#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <map>

#include "base/error.h"
#include "model/model.h"
#include "model/tabular_parts.h"

namespace sinew::model {
namespace {

constexpr int64_t kRows = 200;

// A table with numbers, a category of 12 values, one of 3 and one of 2.
class Tabular : public testing::Test {
 protected:
  Tabular() {
    install_keyed_random();
    use_one_thread();
    std::string pattern = (std::filesystem::temp_directory_path() / "sinew-tabular-XXXXXX").string();
    folder_ = mkdtemp(pattern.data());
  }
  ~Tabular() override { std::filesystem::remove_all(folder_); }

  std::unique_ptr<data::Dataset> table(bool regression) const {
    const std::string path = folder_ + "/t.csv";
    std::ofstream file(path);
    file << "size,weight,town,colour,side,y\n";
    for (int i = 0; i < kRows; ++i)
      file << i * 7 % 31 + 0.5 << ',' << i * i % 97 << ",t" << i % 12 << ',' << "rgb"[i % 3] << ','
           << (i % 5 < 3 ? "left" : "right") << ','
           << (regression  ? std::to_string(i % 23 * 0.7 - 3)
               : i % 4 < 2 ? "a"
                           : "b")
           << '\n';
    file.close();
    spec::DataOptions options;
    options.train.path = path;
    options.columns.target = "y";
    return data::open_dataset(options, 1);
  }
  static torch::Tensor inputs(const data::Dataset& dataset) {
    std::vector<int64_t> all(static_cast<size_t>(dataset.size(data::Split::train)));
    for (size_t i = 0; i < all.size(); ++i) all[i] = static_cast<int64_t>(i);
    const data::Batch batch = dataset.load(data::Split::train, all, {});
    return torch::from_blob(const_cast<std::byte*>(batch.input.bytes.data()), at::IntArrayRef(batch.input.shape))
        .clone();
  }
  static std::unique_ptr<Model> fitted(const spec::ModelOptions& options, const data::Dataset& dataset) {
    const int64_t outputs = dataset.info().task == data::Task::regression ? 1 : 2;
    auto model = make_model(options, dataset.info(), outputs, 5);
    const RandomScope random(random_key({5}));
    if (model->fits_data()) model->fit(inputs(dataset));
    return model;
  }
  static torch::Tensor named(Model& model, const std::string& name) {
    for (const auto& list : {model.parameters(), model.buffers()}) {
      for (const NamedTensor& item : list) {
        if (item.name == name) return item.tensor;
      }
    }
    throw Error("TEST_NO_TENSOR", "no " + name, "");
  }

  std::string folder_;
};

TEST_F(Tabular, EncodesNumbersSmallAndLargeCategories) {
  const auto dataset = table(false);
  auto model = fitted(spec::default_model("tabular"), *dataset);
  // Two numbers of 4 each, a category of 3 inputs, one of 2 inputs as one number, and an embedding of 8.
  EXPECT_EQ(named(*model, "hidden.0.weight").sizes(), (at::IntArrayRef{2 * 4 + 3 + 1 + 8, 256}));
  EXPECT_EQ(named(*model, "embedding_0").sizes(), (at::IntArrayRef{12, 8}));
  EXPECT_EQ(named(*model, "numbers.weight").sizes(), (at::IntArrayRef{2, 16, 3}));
  EXPECT_EQ(named(*model, "scale").sizes(), (at::IntArrayRef{20}));
  EXPECT_EQ(named(*model, "hidden.2.weight").sizes(), (at::IntArrayRef{256, 256}));
  EXPECT_EQ(named(*model, "output.weight").sizes(), (at::IntArrayRef{256, 2}));
  model->set_training(false);
  EXPECT_EQ(model->forward(inputs(*dataset)).sizes(), (at::IntArrayRef{kRows, 2}));
}

TEST_F(Tabular, EveryPartCanBeLeftOut) {
  spec::ModelOptions options = spec::default_model("tabular");
  options.hidden = {8};
  options.tabular.input_scaling = "none";
  options.tabular.numeric_embedding = "none";
  options.tabular.max_one_hot = 100;
  options.tabular.scaling_layer = options.tabular.parametric_activation = false;
  options.tabular.initialization = "random";
  options.tabular.parametrization = "standard";
  const auto dataset = table(false);
  auto model = fitted(options, *dataset);
  EXPECT_FALSE(model->fits_data());
  std::vector<std::string> names;
  for (const NamedTensor& parameter : model->parameters()) names.push_back(parameter.name);
  EXPECT_EQ(names, (std::vector<std::string>{"hidden.0.weight", "hidden.0.bias", "output.weight", "output.bias"}));
  EXPECT_TRUE(model->buffers().empty());
  EXPECT_EQ(named(*model, "hidden.0.weight").size(0), 2 + 12 + 3 + 1);
  model->set_training(false);
  EXPECT_EQ(model->forward(inputs(*dataset)).sizes(), (at::IntArrayRef{kRows, 2}));
}

TEST_F(Tabular, ScalesByQuartilesAndClipsSmoothly) {
  RobustScaling scaling(3);
  torch::Tensor x = torch::zeros({9, 3});
  for (int64_t i = 0; i < 9; ++i) x[i][0] = 2.0F * static_cast<float>(i);  // quartiles 4 and 12, median 8
  x[8][1] = 5;                                                             // equal quartiles, range 5
  scaling.fit(x);
  const torch::Tensor y = scaling.forward(x);
  const auto clipped = [](double value) { return value / std::sqrt(1 + value * value / 9); };
  EXPECT_NEAR(y[0][0].item<double>(), clipped(-1), 1e-6);
  EXPECT_NEAR(y[6][0].item<double>(), clipped(0.5), 1e-6);
  EXPECT_NEAR(y[8][1].item<double>(), clipped(2), 1e-6);
  EXPECT_EQ(y[0][1].item<double>(), 0);
  EXPECT_TRUE(torch::equal(y.select(1, 2), torch::zeros({9}))) << "a constant column becomes 0";
  x[8][0] = 1e9F;
  EXPECT_LE(scaling.forward(x).max().item<double>(), 3.0001);
}

TEST_F(Tabular, InitialUnitsHaveDeviationOneAndKinksAmongTheSamples) {
  const RandomScope random(random_key({8}));
  const torch::Tensor x = torch::randn({500, 12}) * torch::linspace(0.1, 4, 12) + 2;
  spec::ModelOptions options = spec::default_model("tabular");
  options.activation = "selu";
  TabularLayer layer(12, 64, options, true);
  {
    const torch::NoGradGuard no_grad;
    layer.fit(x);
  }
  const torch::Tensor y = torch::addmm(layer.bias, x, layer.weight, 1, layer.gain);
  EXPECT_LT((y.std(0) - 1).abs().max().item<double>(), 0.01);
  EXPECT_TRUE((y.amin(0) < 0).logical_and(y.amax(0) > 0).all().item<bool>());
  EXPECT_GT(layer.bias.std().item<double>(), 0.05) << "the biases differ";
}

TEST_F(Tabular, InitialValuesDependOnDataAndSeedAlone) {
  const auto dataset = table(true);
  auto one = fitted(spec::default_model("tabular"), *dataset), two = fitted(spec::default_model("tabular"), *dataset);
  for (size_t p = 0; p < one->parameters().size(); ++p)
    EXPECT_TRUE(torch::equal(one->parameters()[p].tensor, two->parameters()[p].tensor)) << one->parameters()[p].name;
  EXPECT_GT(named(*one, "hidden.0.bias").abs().max().item<double>(), 0);
}

TEST_F(Tabular, PredictionsStayInTheRangeOfTheTargets) {
  const auto dataset = table(true);
  const data::DataInfo& info = dataset->info();
  ASSERT_EQ(info.task, data::Task::regression);
  auto model = fitted(spec::default_model("tabular"), *dataset);
  {
    const torch::NoGradGuard no_grad;
    named(*model, "output.weight").mul_(1000);
  }
  const auto outputs = [&](bool training) {
    model->set_training(training);
    const RandomScope random(random_key({1}));
    const torch::Tensor x = model->forward(inputs(*dataset)).detach() * info.target_std[0] + info.target_mean[0];
    return std::pair(x.min().item<double>(), x.max().item<double>());
  };
  EXPECT_NEAR(outputs(false).first, info.target_low[0], 1e-4);
  EXPECT_NEAR(outputs(false).second, info.target_high[0], 1e-4);
  EXPECT_LT(outputs(true).first, info.target_low[0] - 1) << "training needs the gradient of every output";
}

TEST_F(Tabular, FactorsOfTheUpdatesFollowTheOptions) {
  spec::ModelOptions options = spec::default_model("tabular");
  options.tabular.bias_decay_factor = 0.25;
  auto model = fitted(options, *table(false));
  std::map<std::string, std::pair<double, double>> factors;
  for (size_t p = 0; p < model->parameters().size(); ++p) {
    const auto [lr, decay] = model->update_factors(p);
    factors[model->parameters()[p].name] = {lr, decay};
  }
  using Pair = std::pair<double, double>;
  EXPECT_EQ(factors["scale"], Pair(6, 1));
  EXPECT_EQ(factors["numbers.bias"], Pair(0.1, 1));
  EXPECT_EQ(factors["hidden.1.bias"], Pair(0.1, 0.25));
  EXPECT_EQ(factors["output.bias"], Pair(0.1, 0.25));
  EXPECT_EQ(factors["hidden.2.strength"], Pair(0.1, 1));
  EXPECT_EQ(factors["hidden.0.weight"], Pair(1, 1));
  EXPECT_EQ(factors["embedding_0"], Pair(1, 1));
}

TEST_F(Tabular, TheFactorOfTheDropoutChangesTrainingOnly) {
  spec::ModelOptions options = spec::default_model("tabular");
  options.dropout = 0.5;
  const auto dataset = table(false);
  auto model = fitted(options, *dataset);
  const torch::Tensor x = inputs(*dataset);
  const auto run = [&](bool training, double factor) {
    model->set_training(training);
    model->set_dropout_factor(factor);
    const RandomScope random(random_key({3}));
    return model->forward(x).detach();
  };
  EXPECT_TRUE(torch::equal(run(false, 1), run(false, 0)));
  EXPECT_TRUE(torch::equal(run(true, 0), run(false, 1)));
  EXPECT_FALSE(torch::equal(run(true, 1), run(false, 1)));
  EXPECT_TRUE(torch::equal(run(true, 1), run(true, 1)));
}

}  // namespace
}  // namespace sinew::model
