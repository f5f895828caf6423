// Tests that `sinew check` names bugs that a test plants, and passes jobs without bugs.
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <nlohmann/json.hpp>

#include "train/sanity_planted.h"

namespace sinew::train {
namespace {

std::vector<Planted> planted_data_bugs() {
  const auto table = [] { return synthetic(Task::classification, {10}, 4); };
  const auto images = [] { return synthetic(Task::classification, {1, 8, 8}, 4); };
  const auto each = [](auto change) {
    return [change](Split split, data::Batch& batch) {
      for (size_t row = 0; row < batch.samples.size(); ++row) change(split, batch, row);
    };
  };
  const spec::Job mlp = job_for("mlp"), cnn = job_for("cnn");
  std::vector<Planted> bugs;
  bugs.push_back({"shuffled labels", "labels", "labels_unrelated", mlp,
                  altered(table(), each([](Split, data::Batch& b, size_t r) { label(b, r) = static_cast<int64_t>(dice(b, r).below(4)); }))});
  bugs.push_back({"shuffled labels of images", "labels", "labels_unrelated", cnn,
                  altered(images(), each([](Split, data::Batch& b, size_t r) { label(b, r) = static_cast<int64_t>(dice(b, r).below(4)); }))});
  bugs.push_back({"shuffled numbers", "labels", "labels_unrelated", mlp,
                  altered(numbers({10}), each([](Split, data::Batch& b, size_t r) { b.target.as<float>()[r] = static_cast<float>(3 * dice(b, r).normal()); }))});
  bugs.push_back({"a column that is the class", "leak", "target_leak", mlp,
                  altered(table(), each([](Split, data::Batch& b, size_t r) { input(b, r)[3] = 0.5F * static_cast<float>(label(b, r)); }))});
  bugs.push_back({"a column that is the number in another unit", "leak", "target_leak", mlp,
                  altered(numbers({10}), each([](Split, data::Batch& b, size_t r) { input(b, r)[3] = 2 - b.target.as<float>()[r] / 3; }))});
  bugs.push_back({"inputs times 1000", "data", "inputs_unnormalised", mlp, altered(table(), each([](Split, data::Batch& b, size_t r) {
                    for (int64_t i = 0; i < width(b); ++i) input(b, r)[i] *= 1000;
                  }))});
  bugs.push_back({"pixels of 0 to 255", "initial_loss", "inputs_unnormalised", cnn, altered(images(), each([](Split, data::Batch& b, size_t r) {
                    for (int64_t i = 0; i < width(b); ++i) input(b, r)[i] = 40 * input(b, r)[i] / 2 + 20;
                  }))});
  bugs.push_back({"one NaN pixel", "data", "input_not_finite", cnn, altered(images(), each([](Split split, data::Batch& b, size_t r) {
                    if (split == Split::train && b.samples[r] == 333) input(b, r)[5] = std::nanf("");
                  }))});
  bugs.push_back({"an infinite value in val", "data", "input_not_finite", mlp, altered(table(), each([](Split split, data::Batch& b, size_t r) {
                    if (split == Split::val && b.samples[r] == 7) input(b, r)[0] = std::numeric_limits<float>::infinity();
                  }))});
  bugs.push_back({"constant inputs", "data", "inputs_constant", mlp, altered(table(), each([](Split, data::Batch& b, size_t r) {
                    for (int64_t i = 0; i < width(b); ++i) input(b, r)[i] = 0.5F;
                  }))});
  bugs.push_back({"a column never filled in", "data", "feature_constant", mlp, altered(table(), each([](Split, data::Batch& b, size_t r) { input(b, r)[3] = 0; }))});
  bugs.push_back({"a label out of range", "data", "target_out_of_range", mlp, altered(table(), each([](Split, data::Batch& b, size_t r) {
                    if (b.samples[r] == 100) label(b, r) = 4;
                  }))});
  bugs.push_back({"a constant target", "data", "target_constant", mlp, altered(numbers({10}), each([](Split, data::Batch& b, size_t r) { b.target.as<float>()[r] = 3; }))});
  bugs.push_back({"a missing target", "data", "target_out_of_range", mlp, altered(numbers({10}), each([](Split, data::Batch& b, size_t r) {
                    if (b.samples[r] == 50) b.target.as<float>()[r] = std::nanf("");
                  }))});
  bugs.push_back({"all of one class", "classes", "one_class", mlp, altered(table(), each([](Split, data::Batch& b, size_t r) { label(b, r) = 2; }))});
  bugs.push_back({"a class only in val", "classes", "class_missing_in_train", mlp, altered(table(), each([](Split split, data::Batch& b, size_t r) {
                    if (split == Split::train && label(b, r) == 3) label(b, r) = 1;
                  }))});
  bugs.push_back({"99 % of one class", "classes", "imbalance", mlp, altered(table(), each([](Split, data::Batch& b, size_t r) { label(b, r) = b.samples[r] % 100 == 0 ? 1 : 0; }))});
  const auto source = table();
  bugs.push_back({"val is a copy of train", "duplicates", "duplicates", mlp, altered(table(), [source](Split split, data::Batch& b) {
                    if (split == Split::val) b = source->load(Split::train, b.samples, {});
                  })});
  bugs.push_back({"a tenth of val is in train", "duplicates", "duplicates", mlp, altered(table(), [source](Split split, data::Batch& b) {
                    for (size_t row = 0; row < b.samples.size() && split == Split::val; ++row) {
                      if (b.samples[row] % 10 != 0) continue;
                      const data::Batch one = source->load(Split::train, std::span(&b.samples[row], 1), {});
                      std::copy_n(one.input.as<float>(), width(b), input(b, row));
                      label(b, row) = one.target.as<int64_t>()[0];
                    }
                  })});
  bugs.push_back({"two classes swapped in val", "labels", "val_labels_differ", mlp, altered(table(), each([](Split split, data::Batch& b, size_t r) {
                    if (split == Split::val && label(b, r) < 2) label(b, r) = 1 - label(b, r);
                  }))});
  bugs.push_back({"classes of val numbered from elsewhere", "labels", "val_labels_differ", cnn, altered(images(), each([](Split split, data::Batch& b, size_t r) {
                    if (split == Split::val) label(b, r) = (label(b, r) + 1) % 4;
                  }))});
  bugs.push_back({"labels of val shuffled", "labels", "val_labels_differ", mlp, altered(numbers({10}), each([](Split split, data::Batch& b, size_t r) {
                    if (split == Split::val) b.target.as<float>()[r] = static_cast<float>(3 * dice(b, r).normal());
                  }))});
  return bugs;
}

std::vector<Planted> planted_training_bugs() {
  const auto table = [] { return synthetic(Task::classification, {10}, 4); };
  const auto job_at = [](const char* optimizer, double lr) {
    spec::Job job = job_for("mlp");
    job.optimizer.name = optimizer;
    job.optimizer.lr = lr;
    return job;
  };
  const spec::Job mlp = job_for("mlp");
  std::vector<Planted> bugs;
  bugs.push_back({"adamw at 100", "first_steps", "learning_rate_too_large", job_at("adamw", 100), table()});
  bugs.push_back({"sgd at 1000", "one_batch", "learning_rate_too_large", job_at("sgd", 1000), table()});
  bugs.push_back({"adamw at 1e-9", "one_batch", "learning_rate_too_small", job_at("adamw", 1e-9), table()});
  bugs.push_back({"sgd at 1e-7", "one_batch", "learning_rate_too_small", job_at("sgd", 1e-7), table()});
  bugs.push_back({"a detached layer", "gradients", "no_gradient", mlp, table(), custom([](Custom& m, const torch::Tensor& x) {
                    return m.layer(2, torch::relu(torch::linear(x, m[0].detach(), m[1].detach())));
                  })});
  bugs.push_back({"an unused parameter", "gradients", "no_gradient", mlp, table(), custom([](Custom& m, const torch::Tensor& x) {
                    return m.layer(2, torch::relu(m.layer(0, x)));
                  }, {10, 24, 4, 3})});
  bugs.push_back({"frozen parameters", "gradients", "no_gradient", mlp, table(), [] {
                    auto weights = layers({10, 24, 4});
                    weights[0].tensor.requires_grad_(false);
                    return std::make_unique<Custom>(weights, [](Custom& m, const torch::Tensor& x) { return m.layer(2, torch::relu(m.layer(0, x))); });
                  }});
  bugs.push_back({"dead units", "function", "output_constant", mlp, table(), custom([](Custom& m, const torch::Tensor& x) {
                    return m.layer(2, torch::relu(m.layer(0, x) - 100));
                  })});
  bugs.push_back({"dead units in one of two branches", "gradients", "dead_activation", mlp, table(), [] {
                    auto weights = layers({10, 24, 4});
                    for (auto& weight : layers({10, 4})) weights.push_back({"direct." + weight.name, weight.tensor});
                    return std::make_unique<Custom>(weights, [](Custom& m, const torch::Tensor& x) {
                      return m.layer(2, torch::relu(m.layer(0, x) - 100)) + m.layer(4, torch::tanh(x));
                    });
                  }});
  bugs.push_back({"no activation", "function", "no_activation", mlp, table(), custom([](Custom& m, const torch::Tensor& x) { return m.layer(2, m.layer(0, x)); })});
  bugs.push_back({"an unused input", "function", "output_constant", mlp, table(), custom([](Custom& m, const torch::Tensor& x) {
                    return m.layer(2, torch::relu(m.layer(0, torch::ones_like(x))));
                  })});
  bugs.push_back({"initial weights times 100", "initial_loss", "initialisation", mlp, table(), custom([](Custom& m, const torch::Tensor& x) {
                    return m.layer(2, torch::relu(m.layer(0, x)));
                  }, {10, 24, 4}, 20)});
  bugs.push_back({"statistics over the batch", "batch_leak", "batch_leak", mlp, table(), custom([](Custom& m, const torch::Tensor& x) {
                    return m.layer(2, torch::relu(m.layer(0, x - x.mean(0, true))));
                  })});
  bugs.push_back({"softmax over the batch", "batch_leak", "batch_leak", mlp, table(), custom([](Custom& m, const torch::Tensor& x) {
                    return m.layer(2, m.layer(0, x).softmax(0) * 20);
                  })});
  bugs.push_back({"statistics over the batch while training", "batch_leak", "batch_leak", mlp, table(), custom([](Custom& m, const torch::Tensor& x) {
                    return m.layer(2, torch::relu(m.layer(0, m.training ? x - x.mean(0, true) : x)));
                  })});
  bugs.push_back({"dropout in evaluation", "eval_mode", "random_in_eval", mlp, table(), custom([](Custom& m, const torch::Tensor& x) {
                    return m.layer(2, torch::dropout(torch::relu(m.layer(0, x)), 0.3, true));
                  })});
  bugs.push_back({"a state of its own", "repeatable", "not_repeatable", mlp, table(), [] {
                    static int made = 0;
                    const double own = ++made * 0.1;
                    return std::make_unique<Custom>(layers({10, 24, 4}), [own](Custom& m, const torch::Tensor& x) { return m.layer(2, torch::relu(m.layer(0, x))) + own * x.slice(1, 0, 4); });
                  }});
  bugs.push_back({"twenty layers of small weights", "gradients", "vanishing_gradient", mlp, table(), custom([](Custom& m, const torch::Tensor& x) {
                    torch::Tensor h = x;
                    for (size_t i = 0; i < 18; i += 2) h = torch::sigmoid(m.layer(i, h));
                    return m.layer(18, h);
                  }, {10, 12, 12, 12, 12, 12, 12, 12, 12, 12, 4})});
  spec::Job text = job_for("lstm");
  bugs.push_back({"a model that sees the future", "batch_leak", "future_leak", text, synthetic(Task::next_token, {8}, 11), [] {
                    auto weights = layers({11, 24, 11});
                    return std::make_unique<Custom>(weights, [](Custom& m, const torch::Tensor& x) {
                      const torch::Tensor h = torch::one_hot(x, 11).to(torch::kFloat32);
                      return m.layer(2, torch::relu(m.layer(0, h + h.mean(1, true))));
                    });
                  }});
  spec::Job twice = mlp;
  bugs.push_back({"a model that cannot learn", "one_batch", "cannot_learn", twice, table(), custom([](Custom& m, const torch::Tensor& x) {
                    return 1e-4 * torch::tanh(m.layer(2, torch::relu(m.layer(0, x))));
                  })});
  return bugs;
}

TEST(Sanity, BugsInTheDataAreNamed) { expect_named(planted_data_bugs()); }
TEST(Sanity, BugsInModelAndTrainingAreNamed) { expect_named(planted_training_bugs()); }

struct Clean {
  std::string name;
  spec::Job job;
  std::shared_ptr<const data::Dataset> data;
};

std::vector<Clean> clean_jobs() {
  std::vector<Clean> jobs;
  const auto add = [&](const std::string& name, const std::string& model, std::shared_ptr<const data::Dataset> data, auto change) {
    spec::Job job = job_for(model);
    change(job);
    jobs.push_back({name, job, std::move(data)});
  };
  const auto as_is = [](spec::Job&) {};
  const auto table = [](int64_t classes = 4) { return synthetic(Task::classification, {10}, classes); };
  const auto images = [](int64_t channels = 1) { return synthetic(Task::classification, {channels, 8, 8}, 5); };
  add("mlp", "mlp", table(), as_is);
  add("mlp with all defaults", "mlp", table(), [](spec::Job& job) { job.optimizer = {}; job.model = {}; });
  add("mlp with batch norm, dropout and averaging", "mlp", table(), [](spec::Job& job) { job.model.norm = "batch"; job.model.dropout = 0.5; job.trainer.ema_decay = 0.99; });
  add("deep mlp with gelu", "mlp", table(), [](spec::Job& job) { job.model.hidden = {24, 24, 24}; job.model.activation = "gelu"; });
  add("mlp of two classes with one logit", "mlp", table(2), [](spec::Job& job) { job.loss.name = "bce"; });
  add("mlp with sgd and momentum", "mlp", table(), [](spec::Job& job) { job.optimizer = {.name = "sgd", .lr = 0.05, .momentum = 0.9}; });
  add("mlp with plain slow sgd", "mlp", table(), [](spec::Job& job) { job.optimizer = {.name = "sgd", .lr = 0.01}; });
  add("mlp with rmsprop", "mlp", table(), [](spec::Job& job) { job.optimizer.name = "rmsprop"; job.optimizer.lr = 1e-3; });
  add("mlp with warm-up and cosine, class weights, smoothing", "mlp", table(), [](spec::Job& job) {
    job.scheduler = {.name = "cosine", .warmup = {20, spec::Duration::Unit::steps}};
    job.loss.class_weights = {1, 2, 1, 0.5};
    job.loss.label_smoothing = 0.1;
  });
  add("noisy labels", "mlp", synthetic(Task::classification, {10}, 4, 900, 200, 3.0), as_is);
  add("softmax regression", "linear", table(), as_is);
  add("softmax regression with adam's default", "linear", table(), [](spec::Job& job) { job.optimizer.lr = 1e-3; });
  add("svm", "svm", table(), as_is);
  add("svm with sgd", "svm", table(3), [](spec::Job& job) { job.optimizer = {.name = "sgd", .lr = 0.01}; });
  add("cnn", "cnn", images(), as_is);
  add("cnn with batch norm, augmented, colours", "cnn", images(3), [](spec::Job& job) { job.model.norm = "batch"; job.model.dropout = 0.25; job.data.augment.flip = 0.5; });
  add("narrow resnet", "resnet18", synthetic(Task::classification, {3, 8, 8}, 3, 200, 60), [](spec::Job& job) { job.model.width = 4; job.model.stem = "cifar"; });
  add("resnet in bfloat16", "resnet18", synthetic(Task::classification, {3, 8, 8}, 3, 200, 60), [](spec::Job& job) { job.model.width = 4; job.model.stem = "cifar"; job.trainer.precision = "bf16"; });
  add("lstm over text", "lstm", synthetic(Task::next_token, {8}, 11, 300, 60), [](spec::Job& job) { job.optimizer.lr = 1e-2; });
  add("lstm over rows of images", "lstm", images(), as_is);
  add("numbers, mlp", "mlp", numbers({10}), as_is);
  add("numbers, linear with l1", "linear", numbers({10}), [](spec::Job& job) { job.loss.name = "l1"; });
  add("numbers, sgd", "linear", numbers({6}), [](spec::Job& job) { job.optimizer = {.name = "sgd", .lr = 0.02}; });
  add("few samples, no validation", "mlp", synthetic(Task::classification, {10}, 3, 60, 0), as_is);
  return jobs;
}

TEST(Sanity, CleanJobsHaveNoFindings) {
  for (const Clean& clean : clean_jobs()) {
    const auto findings = check(clean.job, *clean.data);
    if (std::getenv("SINEW_SHOW") != nullptr) std::printf("--- %s\n%s", clean.name.c_str(), all_text(findings).c_str());
    for (const auto& finding : findings) EXPECT_TRUE(finding.cause.empty()) << clean.name << "\n" << all_text(findings);
  }
}

TEST(Sanity, SkipsChecksWhenThereIsNoTime) {
  const auto data = synthetic(Task::classification, {10}, 4);
  const auto findings = check_sanity({job_for("mlp"), data.get(), nullptr, 1e-9, nullptr}, system_clock());
  EXPECT_EQ(findings.size(), sanity_checks().size());
  for (const auto& finding : findings) EXPECT_EQ(finding.verdict, SanityFinding::Verdict::skip) << finding_text(finding);
  EXPECT_TRUE(all_sane(findings));
}

TEST(Sanity, JsonHasTheSameFindings) {
  const auto data = synthetic(Task::classification, {10}, 4, 200, 60);
  spec::Job job = job_for("mlp");
  job.optimizer.lr = 100;
  const auto findings = check(job, *data);
  const auto document = nlohmann::json::parse(findings_json("a \"job\"", findings));
  EXPECT_EQ(document.at("sane"), false);
  EXPECT_EQ(document.at("checks").size(), findings.size());
  for (size_t i = 0; i < findings.size(); ++i) EXPECT_EQ(document.at("checks")[i].at("cause"), findings[i].cause);
}

// Tests the statistic of the labels check. For unrelated scores it has mean 0 and variance 1, so about 1 in 20 values
// is above two standard deviations.
TEST(Sanity, PairingOfUnrelatedScoresIsNormal) {
  model::install_keyed_random();
  const model::RandomScope random(random_key({1}));
  int beyond_two = 0;
  double sum = 0, squares = 0;
  for (int i = 0; i < 400; ++i) {
    const double z = sanity::pairing_z(torch::randn({120, 3}).exp(), torch::rand({120}).mul(3).to(torch::kInt64));
    sum += z;
    squares += z * z;
    beyond_two += std::abs(z) > 2 ? 1 : 0;
  }
  EXPECT_NEAR(sum / 400, 0, 0.2);
  EXPECT_NEAR(squares / 400, 1, 0.25);
  EXPECT_LT(beyond_two, 40);
  const torch::Tensor labels = torch::rand({120}).mul(3).to(torch::kInt64);
  EXPECT_GT(sanity::pairing_z(torch::one_hot(labels, 3).to(torch::kFloat32), labels), 8);
  EXPECT_NEAR(sanity::ranking_z(torch::arange(101).to(torch::kFloat32), -torch::arange(101).to(torch::kFloat32)), -10, 1e-3);
}

}  // namespace
}  // namespace sinew::train
