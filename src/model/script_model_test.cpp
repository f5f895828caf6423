// Tests TorchScript modules that the tests compile from source: training, evaluation, saving, and refusals.
#include "model/script_model.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>

#include "base/expected_error.h"
#include "model/makers.h"

namespace sinew::model {
namespace {

using testing::AllOf;
using testing::HasSubstr;

class Scratch {
 public:
  Scratch() : path_("/tmp/sinew-script-test-" + std::to_string(::getpid())) {
    std::filesystem::create_directories(path_);
  }
  ~Scratch() { std::filesystem::remove_all(path_); }
  std::string file(const std::string& name) const { return path_ + "/" + name; }

 private:
  std::string path_;
};

spec::ModelOptions script(const std::string& file) {
  spec::ModelOptions options;
  options.name = "torchscript";
  options.file = file;
  return options;
}

data::DataInfo table(int64_t columns = 6, int64_t classes = 3) {
  data::DataInfo info;
  info.input_shape = {columns};
  info.classes = classes;
  return info;
}

// Makes a module with the given forward function, the parameters w and b of a linear layer, and the buffer m.
torch::jit::Module made(const std::string& forward) {
  torch::jit::Module module("Net");
  const torch::NoGradGuard no_grad;
  torch::manual_seed(1);
  const RandomScope scope(random_key({3}));
  module.register_parameter("w", torch::linspace(-1, 1, 18).reshape({3, 6}).set_requires_grad(true), false);
  module.register_parameter("b", torch::linspace(0, 1, 3).set_requires_grad(true), false);
  module.register_buffer("m", torch::zeros({6}));
  module.register_attribute("calls", c10::IntType::get(), 0);
  module.register_attribute("training", c10::BoolType::get(), true);
  module.define(forward);
  return module;
}

constexpr const char* kPlain = "def forward(self, x):\n  return torch.linear(x, self.w, self.b)\n";
constexpr const char* kDropout =
    "def forward(self, x):\n  return torch.linear(torch.dropout(x, 0.5, self.training), self.w, self.b)\n";
constexpr const char* kMean =
    "def forward(self, x):\n"
    "  if self.training:\n"
    "    self.m.copy_(self.m * 0.9 + x.mean(0) * 0.1)\n"
    "  return torch.linear(x - self.m, self.w, self.b)\n";

class Script : public testing::Test {
 protected:
  Script() { install_keyed_random(); }

  std::string save(const std::string& forward) {
    const std::string path = scratch_.file("net.pt");
    made(forward).save(path);
    return path;
  }
  std::unique_ptr<Model> make(const std::string& forward, int64_t outputs = 3, const data::DataInfo& data = table()) {
    spec::ModelOptions options;
    options.name = "torchscript";
    options.file = save(forward);
    return make_model(options, data, outputs, 1);
  }
  std::string refusal(const std::string& forward, int64_t outputs = 3) {
    try {
      make(forward, outputs);
    } catch (const Error& error) {
      return to_string(error);
    }
    return "accepted";
  }
  Scratch scratch_;
};

TEST_F(Script, ComputesWhatTheModuleComputes) {
  const auto model = make(kPlain);
  const torch::Tensor x = synthetic_input(table(), 5);
  auto parameters = model->parameters();
  ASSERT_EQ(parameters.size(), 2U);
  EXPECT_EQ(parameters[0].name, "w");
  EXPECT_EQ(model->buffers().size(), 1U);
  const torch::Tensor out = model->forward(x), expected = torch::linear(x, parameters[0].tensor, parameters[1].tensor);
  EXPECT_TRUE(torch::equal(out, expected));
  const auto gradients = torch::autograd::grad({out.square().sum()}, {parameters[0].tensor, parameters[1].tensor});
  const auto wanted = torch::autograd::grad({expected.square().sum()}, {parameters[0].tensor, parameters[1].tensor});
  for (size_t i = 0; i < 2; ++i) EXPECT_TRUE(torch::equal(gradients[i], wanted[i]));
}

// The tenth pass must give the same bits as the first. So the runtime must not profile and then change its plan.
TEST_F(Script, EveryPassGivesTheSameBits) {
  const auto model = make(kDropout);
  model->set_training(true);
  const torch::Tensor x = synthetic_input(table(), 7);
  std::vector<torch::Tensor> first;
  for (int pass = 0; pass < 10; ++pass) {
    const RandomScope scope(random_key({9}));
    const torch::Tensor out = model->forward(x);
    const torch::Tensor gradient = torch::autograd::grad({out.square().sum()}, {model->parameters()[0].tensor})[0];
    if (first.empty()) first = {out, gradient};
    ASSERT_TRUE(torch::equal(out, first[0]) && torch::equal(gradient, first[1])) << pass;
  }
  const RandomScope other(random_key({10}));
  EXPECT_FALSE(torch::equal(model->forward(x), first[0]));
  model->set_training(false);
  EXPECT_TRUE(torch::equal(model->forward(x), model->forward(x)));
}

TEST_F(Script, ReplicasShareParametersAndNotBuffers) {
  const auto a = make(kMean), b = make(kMean);
  const torch::Tensor memory = torch::ones({3, 6});
  a->share(0, memory);
  b->share(0, memory);
  memory.fill_(2);
  EXPECT_EQ(a->parameters()[0].tensor[0][0].item<float>(), 2);
  a->set_training(true);
  a->forward(synthetic_input(table(), 4));
  EXPECT_FALSE(torch::equal(a->buffers()[0].tensor, torch::zeros({6})));
  EXPECT_TRUE(torch::equal(b->buffers()[0].tensor, torch::zeros({6})));
}

TEST_F(Script, TheProbeLeavesTheModelUnchanged) {
  const auto model = make(kMean);
  EXPECT_TRUE(torch::equal(model->buffers()[0].tensor, torch::zeros({6})));
}

TEST_F(Script, SavesNewWeights) {
  const auto model = make(kMean);
  std::vector<NamedTensor> values = {{"w", torch::arange(18, torch::kFloat32).view({3, 6}).mul(0.1)},
                                     {"b", torch::ones({3})},
                                     {"m", torch::full({6}, 0.5F)}};
  const std::string to = scratch_.file("trained.pt");
  save_model_file(script(scratch_.file("net.pt")), values, to);
  torch::jit::Module back = torch::jit::load(to);
  back.eval();
  const torch::Tensor x = synthetic_input(table(), 5);
  EXPECT_TRUE(torch::equal(back.forward({x}).toTensor(), torch::linear(x - 0.5, values[0].tensor, values[1].tensor)));
  EXPECT_NE(make(kPlain)->identity(), model->identity());
}

// While this model is trained, the user saves another model over its file.
TEST_F(Script, SavesTheFileThatWasOpened) {
  const auto model = make(kMean);
  const std::string file = scratch_.file("net.pt"), to = scratch_.file("trained.pt");
  const std::vector<NamedTensor> values = {
      {"w", torch::ones({3, 6})}, {"b", torch::ones({3})}, {"m", torch::full({6}, 0.5F)}};
  const torch::Tensor x = synthetic_input(table(), 5);
  for (const bool there : {true, false}) {
    made(kPlain).save(file);
    if (!there) std::filesystem::remove(file);
    EXPECT_EQ(save_model_file(script(file), values, to), "");
    torch::jit::Module back = torch::jit::load(to);
    back.eval();
    EXPECT_TRUE(torch::equal(back.forward({x}).toTensor(), torch::linear(x - 0.5, values[0].tensor, values[1].tensor)));
  }
  EXPECT_EQ(std::distance(std::filesystem::directory_iterator(scratch_.file("")), {}), 1) << "nothing else is left";
  // After the next model is opened from the same path, save_model_file writes that one.
  const auto next = make(kPlain);
  save_model_file(script(file), {values[0], values[1], {"m", torch::ones({6})}}, to);
  EXPECT_TRUE(
      torch::equal(torch::jit::load(to).forward({x}).toTensor(), torch::linear(x, values[0].tensor, values[1].tensor)));
}

TEST_F(Script, ALargeFileThatChangedIsNotSaved) {
  torch::jit::Module module = made(kPlain);
  module.register_attribute("table", c10::TensorType::get(), torch::ones({17, 1 << 20}));
  const std::string file = scratch_.file("large.pt"), to = scratch_.file("trained.pt");
  module.save(file);
  make_model(script(file), table(), 3, 1);
  EXPECT_EQ(save_model_file(script(file), {}, to), "");
  EXPECT_TRUE(std::filesystem::exists(to));
  module.setattr("table", torch::zeros({17, 1 << 20}));
  module.save(file);
  EXPECT_THAT(save_model_file(script(file), {}, to), HasSubstr("large.pt changed while it was trained"));
  EXPECT_FALSE(std::filesystem::exists(to));
  std::filesystem::remove(file);
  EXPECT_THAT(save_model_file(script(file), {}, to), HasSubstr("large.pt changed while it was trained"));
}

TEST_F(Script, ValuesOfAnotherShapeAreNotBroadcast) {
  make(kPlain);
  EXPECT_THROW(save_model_file(script(scratch_.file("net.pt")), {{"b", torch::ones({1})}}, scratch_.file("trained.pt")),
               Error);
}

TEST_F(Script, TiedWeightsAreOneParameter) {
  torch::jit::Module module("Tied");
  const torch::Tensor weight = torch::ones({6, 6}).set_requires_grad(true);
  module.register_parameter("a", weight, false);
  module.register_parameter("b", weight, false);
  module.register_attribute("training", c10::BoolType::get(), true);
  module.define("def forward(self, x):\n  return torch.linear(torch.linear(x, self.a, None), self.b, None)\n");
  const std::string path = scratch_.file("tied.pt");
  module.save(path);
  const auto model = make_model(script(path), table(6, 6), 6, 1);
  ASSERT_EQ(model->parameters().size(), 1U);
  const torch::Tensor x = synthetic_input(table(), 2), w = model->parameters()[0].tensor;
  const torch::Tensor gradient = torch::autograd::grad({model->forward(x).sum()}, {w})[0];
  EXPECT_TRUE(torch::allclose(gradient, torch::autograd::grad({x.matmul(w.t()).matmul(w.t()).sum()}, {w})[0]));
}

TEST_F(Script, ViewsOfOneMemoryAreRefused) {
  for (const bool buffer : {false, true}) {
    torch::jit::Module module("Transposed");
    const torch::Tensor weight = torch::ones({6, 6});
    module.register_parameter("a", weight.detach().set_requires_grad(true), false);
    if (buffer) module.register_buffer("b", weight);
    if (!buffer) module.register_parameter("b", weight.t().detach().set_requires_grad(true), false);
    module.register_attribute("training", c10::BoolType::get(), true);
    module.define("def forward(self, x):\n  return torch.linear(torch.linear(x, self.a, None), self.b, None)\n");
    const std::string path = scratch_.file("transposed.pt");
    module.save(path);
    try {
      make_model(script(path), table(6, 6), 6, 1);
      FAIL() << buffer;
    } catch (const Error& error) {
      EXPECT_EQ(error.code, ErrorCode("MODEL_SHARED_MEMORY"));
    }
  }
}

// Training would run to its end, and the trained values would then fit into no file.
TEST_F(Script, TensorsThatCannotBeStoredAreRefused) {
  const auto refused = [&](const std::function<void(torch::jit::Module&)>& add) {
    torch::jit::Module module = made(kPlain);
    add(module);
    const std::string path = scratch_.file("odd.pt");
    module.save(path);
    const FileReport report = inspect_file(path);
    EXPECT_EQ(report.problems.size(), 1U) << "inspect promises what training refuses";
    return error_of([&] { make_model(script(path), table(), 3, 1); });
  };
  EXPECT_ERROR(refused([](auto& module) {
                 module.register_parameter("p", torch::ones({1}).expand({3}).set_requires_grad(true), false);
               }),
               "MODEL_SHARED_MEMORY", "elements of parameter p");
  EXPECT_ERROR(refused([](auto& module) {
                 module.register_parameter("__metadata__", torch::ones({3}).set_requires_grad(true), false);
               }),
               "MODEL_NAME_RESERVED", "__metadata__");
  EXPECT_ERROR(refused([](auto& module) { module.register_buffer("c", torch::ones({3}, torch::kComplexFloat)); }),
               "MODEL_BUFFER_TYPE", "buffer c is ComplexFloat");
  EXPECT_ERROR(refused([](auto& module) { module.register_buffer("c", torch::ones({3}, torch::kUInt16)); }),
               "MODEL_BUFFER_TYPE", "buffer c is UInt16");
}

TEST_F(Script, InspectRefusesWhatTrainingRefuses) {
  const auto problem = [&](const torch::jit::Module& module) {
    const std::string path = scratch_.file("refused.pt");
    module.save(path);
    const FileReport report = inspect_file(path);
    return report.problems.empty() ? "" : report.problems[0];
  };
  EXPECT_EQ(problem(made(kPlain)), "");
  torch::jit::Module half = made(kPlain);
  half.to(torch::kHalf);
  EXPECT_THAT(problem(half), HasSubstr("parameter w is Half"));
  EXPECT_THAT(problem(made("def forward(self, x):\n  return {'y': torch.linear(x, self.w, self.b)}\n")),
              HasSubstr("forward returns Dict[str, Tensor], not a tensor"));
  EXPECT_THAT(problem(made("def forward(self, x):\n  return (3, torch.linear(x, self.w, self.b))\n")),
              HasSubstr("not a tensor"));
  EXPECT_EQ(problem(made("def forward(self, x):\n  return (torch.linear(x, self.w, self.b), 3)\n")), "");
  EXPECT_EQ(problem(made("def forward(self, x):\n  return [torch.linear(x, self.w, self.b)]\n")), "");
}

TEST_F(Script, AllParametersFrozenAreRefused) {
  spec::ModelOptions options = script(save(kPlain));
  options.freeze = {"w"};
  make_model(options, table(), 3, 1);
  options.freeze = {"*"};
  EXPECT_ERROR(error_of([&] { make_model(options, table(), 3, 1); }), "MODEL_NO_PARAMETERS", "is trained");
  torch::jit::Module module = made(kPlain);
  for (const auto& parameter : module.parameters()) parameter.set_requires_grad(false);
  module.save(scratch_.file("frozen.pt"));
  EXPECT_THAT(inspect_file(scratch_.file("frozen.pt")).problems, testing::ElementsAre(HasSubstr("is trained")));
}

TEST_F(Script, WritesToAnArgumentStayInTheModule) {
  spec::ModelOptions options =
      script(save("def forward(self, left, right, target):\n"
                  "  left.zero_()\n"
                  "  target.zero_()\n"
                  "  return torch.linear(left + right, self.w, self.b)\n"));
  options.inputs = {"left=input", "right=input", "target=target"};
  const auto model = make_model(options, table(), 3, 1);
  const torch::Tensor x = synthetic_input(table(), 4), given = x.clone(), target = torch::ones({4}, torch::kLong);
  EXPECT_TRUE(torch::equal(model->forward(x, target),
                           torch::linear(given, model->parameters()[0].tensor, model->parameters()[1].tensor)));
  EXPECT_TRUE(torch::equal(x, given));
  EXPECT_TRUE(torch::equal(target, torch::ones({4}, torch::kLong)));
}

TEST_F(Script, BindsInputsByName) {
  spec::ModelOptions options;
  options.name = "torchscript";
  options.file =
      save("def forward(self, left, right):\n  return torch.linear(torch.cat([left, right], 1), self.w, self.b)\n");
  options.inputs = {"right=0:2", "left=2:6"};
  const auto model = make_model(options, table(), 3, 1);
  const torch::Tensor x = synthetic_input(table(), 4);
  const torch::Tensor turned = torch::cat({x.slice(1, 2, 6), x.slice(1, 0, 2)}, 1);
  EXPECT_TRUE(torch::equal(model->forward(x),
                           torch::linear(turned, model->parameters()[0].tensor, model->parameters()[1].tensor)));
  options.inputs = {"rigth=0:2"};
  EXPECT_THROW(make_model(options, table(), 3, 1), Error);
}

TEST_F(Script, AModelThatReturnsItsLossGivesOneNumber) {
  const char* loss =
      "def forward(self, x, target):\n"
      "  return torch.cross_entropy_loss(torch.linear(x, self.w, self.b), target, None, 1, -100, 0.0)\n";
  EXPECT_EQ(refusal(loss, 0), "accepted");
  EXPECT_THAT(refusal(kPlain, 0), HasSubstr("[MODEL_OUTPUT_MISMATCH]"));
}

TEST_F(Script, RefusesBehaviourThatEvalDoesNotTurnOff) {
  EXPECT_THAT(refusal("def forward(self, x):\n  return torch.linear(torch.dropout(x, 0.5, True), self.w, self.b)\n"),
              AllOf(HasSubstr("aten::dropout"), HasSubstr("[MODEL_NOT_TRAINABLE]")));
  // No argument in the graph shows this behaviour; only running the module does.
  EXPECT_THAT(refusal("def forward(self, x):\n  return torch.linear(x + torch.rand_like(x), self.w, self.b)\n"),
              HasSubstr("[MODEL_NOT_REPRODUCIBLE]"));
  EXPECT_THAT(refusal("def forward(self, x):\n  self.m.add_(1)\n  return torch.linear(x, self.w, self.b)\n"),
              HasSubstr("buffer m [MODEL_NOT_REPRODUCIBLE]"));
}

TEST_F(Script, RefusesStateOutsideBuffers) {
  EXPECT_THAT(refusal("def forward(self, x):\n"
                      "  if self.training:\n"
                      "    self.calls = self.calls + 1\n"
                      "  return torch.linear(x, self.w, self.b) * (1 + self.calls)\n"),
              AllOf(HasSubstr("changes calls"), HasSubstr("[MODEL_NOT_REPRODUCIBLE]")));
}

TEST_F(Script, RefusesWritesToAParameter) {
  EXPECT_THAT(refusal("def forward(self, x):\n"
                      "  self.w.clamp_(-9, 9)\n"
                      "  return torch.linear(x, self.w, self.b)\n"),
              HasSubstr("parameter w [MODEL_WRITES_SHARED_MEMORY]"));
}

TEST_F(Script, RefusesRandomNumbersThatAreNotKeyed) {
  EXPECT_THAT(
      refusal(
          "def forward(self, x):\n  return torch.linear(torch.rrelu(x, 0.1, 0.3, self.training), self.w, self.b)\n"),
      testing::AnyOf(HasSubstr("rrelu"), HasSubstr("generator")));
}

TEST_F(Script, ErrorsGiveBothShapes) {
  EXPECT_THAT(refusal(kPlain, 5),
              AllOf(HasSubstr("[3, 3]"), HasSubstr("[3, 5]"), HasSubstr("[MODEL_OUTPUT_MISMATCH]")));
  spec::ModelOptions options = script(save(kPlain));
  EXPECT_THROW(make_model(options, table(7), 3, 1), Error);  // forward fails
}

TEST_F(Script, AFixedEvaluationModeGivesARemark) {
  const auto model =
      make("def forward(self, x):\n  return torch.linear(torch.dropout(x, 0.5, False), self.w, self.b)\n");
  ASSERT_EQ(model->remarks().size(), 1U);
  EXPECT_THAT(model->remarks()[0], HasSubstr("aten::dropout"));
  EXPECT_TRUE(make(kDropout)->remarks().empty());
}

TEST_F(Script, OtherFilesAreRefused) {
  spec::ModelOptions options = script(scratch_.file("not-there.pt"));
  EXPECT_THROW(make_model(options, table(), 3, 1), Error);
  std::ofstream(scratch_.file("junk.pt")) << "not a zip archive, but some text that is long enough to be looked at";
  options.file = scratch_.file("junk.pt");
  EXPECT_THROW(make_model(options, table(), 3, 1), Error);
}

TEST_F(Script, AHeadCanBeReinitialised) {
  spec::ModelOptions options = script(save(kPlain));
  const auto before = make_model(options, table(), 3, 1);
  options.reinit = {"w"};
  const auto after = make_model(options, table(), 3, 1), again = make_model(options, table(), 3, 1);
  EXPECT_FALSE(torch::equal(before->parameters()[0].tensor, after->parameters()[0].tensor));
  EXPECT_TRUE(torch::equal(before->parameters()[1].tensor, after->parameters()[1].tensor));
  EXPECT_TRUE(torch::equal(again->parameters()[0].tensor, after->parameters()[0].tensor));
}

// The probe tries only some samples. The check of the output does not rely on the probe.
TEST_F(Script, AnOutputThatChangesItsShapeLaterIsRefused) {
  const auto model = make(
      "def forward(self, x):\n"
      "  y = torch.linear(x, self.w, self.b)\n"
      "  if x.size(0) == 5:\n"
      "    return y.expand([5, 3]).repeat([1, 1000])\n"
      "  if x.size(0) == 6:\n"
      "    return y[:2]\n"
      "  if x.size(0) == 7:\n"
      "    return y.long()\n"
      "  if x.size(0) == 8:\n"
      "    return y.to_sparse()\n"
      "  return y\n");
  const auto refusal_for = [&](int64_t samples) {
    return error_of([&] { model->forward(synthetic_input(table(), samples)); });
  };
  EXPECT_EQ(refusal_for(4), "");
  EXPECT_ERROR(refusal_for(5), "MODEL_OUTPUT_MISMATCH", "[5, 3000]");
  EXPECT_ERROR(refusal_for(6), "MODEL_OUTPUT_MISMATCH", "[2, 3]");
  EXPECT_ERROR(refusal_for(7), "MODEL_OUTPUT_MISMATCH", "has the type Long");
  EXPECT_ERROR(refusal_for(8), "MODEL_OUTPUT_MISMATCH", "not a dense tensor");
}

// A damaged file must be refused, or give exactly the module that was saved. Damage in padding and dates is harmless.
void damage_and_load(const std::string& path, uint64_t seed, int cases) {
  const std::string good = [&] {
    std::ifstream file(path, std::ios::binary);
    return std::string(std::istreambuf_iterator<char>(file), {});
  }();
  const ScriptModel original(path);
  const auto state = [](const torch::jit::Module& module) {
    std::vector<NamedTensor> all;
    for (const auto& item : module.named_parameters()) all.push_back({item.name, item.value});
    for (const auto& item : module.named_buffers()) all.push_back({item.name, item.value});
    return all;
  };
  const std::vector<NamedTensor> wanted = state(original.module());
  RandomStream random(random_key({20261124, seed}));
  int refused = 0;
  for (int i = 0; i < cases; ++i) {
    std::string bytes = good;
    switch (random.below(4)) {
      case 0: bytes.resize(random.below(bytes.size())); break;
      case 1:
        for (uint64_t flips = 1 + random.below(4); flips > 0; --flips)
          bytes[random.below(bytes.size())] ^= static_cast<char>(1 << random.below(8));
        break;
      case 2: bytes[random.below(bytes.size())] = static_cast<char>(random.below(256)); break;
      default: bytes.insert(random.below(bytes.size()), bytes.substr(random.below(bytes.size()), random.below(200)));
    }
    std::ofstream(path, std::ios::binary) << bytes;
    try {
      const ScriptModel model(path);
      const std::vector<NamedTensor> found = state(model.module());
      ASSERT_EQ(model.identity(), original.identity()) << i;
      ASSERT_EQ(found.size(), wanted.size()) << i;
      for (size_t t = 0; t < found.size(); ++t)
        ASSERT_TRUE(found[t].name == wanted[t].name && torch::equal(found[t].tensor, wanted[t].tensor)) << i;
    } catch (const Error& error) {
      ++refused;
      ASSERT_FALSE(error.hint.empty()) << error.what();
    }
  }
  EXPECT_GT(refused, cases / 2);
}

TEST_F(Script, DamageIsRefusedOrHarmless) {
  damage_and_load(save(kMean), 1, 300);
}

class LongScript : public Script {};
TEST_F(LongScript, DamageIsRefusedOrHarmless) {
  if (std::getenv("SINEW_LONG") == nullptr) GTEST_SKIP();
  damage_and_load(save(kMean), 2, 10'000);
}

}  // namespace
}  // namespace sinew::model
