// Tests opening a user's shared object: the checks before it is opened, and its models, losses and data sets. Most
// tests open the library that this build makes from examples/cpp-module.
#include "model/library.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <functional>
#include <sstream>

#include "base/disk.h"
#include "base/error.h"
#include "model/model.h"
#include "program/program.h"

namespace sinew::model {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

std::string example() {
  const std::filesystem::path here = std::filesystem::read_symlink("/proc/self/exe").parent_path();
  return (here / "libexample_library.so").string();
}

class Scratch {
 public:
  Scratch() : path_("/tmp/sinew-library-test-" + std::to_string(::getpid())) {
    std::filesystem::create_directories(path_);
  }
  ~Scratch() { std::filesystem::remove_all(path_); }
  std::string file(const std::string& name) const { return path_ + "/" + name; }

 private:
  std::string path_;
};

// Writes a copy of the example with some bytes replaced.
std::string changed(const Scratch& scratch, const std::string& name, const std::string& from, const std::string& to) {
  std::string bytes = read_text(system_disk(), example());
  const size_t at = bytes.find(from);
  if (at == std::string::npos) throw Error("TEST_EXAMPLE_UNUSABLE", "the example has no " + from, "");
  bytes.replace(at, to.size(), to);
  write_durably(system_disk(), scratch.file(name), bytes);
  return scratch.file(name);
}

std::string refusal(const std::string& path) {
  try {
    open_library(path);
  } catch (const Error& error) {
    return to_string(error);
  }
  return "opened";
}

data::DataInfo points() {
  data::DataInfo info;
  info.input_shape = {2};
  info.classes = 3;
  return info;
}

spec::Job job() {
  install_keyed_random();
  spec::Job job;
  job.model.name = "library";
  job.model.file = example();
  job.loss.name = "library";
  job.data.format = "library";
  return job;
}

TEST(Library, ReportsWhatItWasBuiltFor) {
  const auto stamp = program::read_library_info(example());
  EXPECT_EQ(stamp.at("interface"), std::to_string(SINEW_LIBRARY_INTERFACE));
  EXPECT_EQ(stamp.at("torch"), TORCH_VERSION);
  EXPECT_THAT(why_not_open(stamp), IsEmpty());
}

TEST(Library, EveryMismatchIsReportedBeforeItIsOpened) {
  auto stamp = program::read_library_info(example());
  stamp["torch"] = "2.12.1";
  stamp["string_abi"] = "0";
  stamp["compiler"] = "another one";  // this entry may differ
  EXPECT_THAT(why_not_open(stamp), ElementsAre(HasSubstr("string_abi 0"), HasSubstr("torch 2.12.1")));
  EXPECT_THAT(why_not_open({}), ElementsAre(HasSubstr("has no SINEW_LIBRARY")));
}

TEST(Library, AnotherLibtorchIsRefused) {
  const Scratch scratch;
  EXPECT_THAT(refusal(changed(scratch, "old.so", "\ntorch " TORCH_VERSION, "\ntorch 1.99.9")),
              AllOf(HasSubstr("[LIBRARY_INCOMPATIBLE]"), HasSubstr("torch 1.99.9")));
  EXPECT_THAT(refusal(changed(scratch, "new.so", "interface 1\n", "interface 9\n")),
              AllOf(HasSubstr("[LIBRARY_INCOMPATIBLE]"), HasSubstr("interface 9")));
  EXPECT_EQ(refusal(example()), "opened");
}

TEST(Library, OtherFilesAreRefused) {
  const Scratch scratch;
  std::ofstream(scratch.file("text.so")) << std::string(200, 'x');
  std::ofstream(scratch.file("short.so")) << "\x7f"
                                             "ELF";
  EXPECT_THAT(refusal(scratch.file("text.so")), HasSubstr("[LIBRARY_BAD_FILE]"));
  EXPECT_THAT(refusal(scratch.file("short.so")), HasSubstr("[LIBRARY_BAD_FILE]"));
  EXPECT_THAT(refusal(scratch.file("none.so")), HasSubstr("[MODEL_FILE_MISSING]"));
}

// A shared object with a damaged ELF header, or a truncated one, never causes a crash. If reading it fails, it fails
// with an Error that gives a reason.
TEST(Library, DamagedFilesNeverCrash) {
  const Scratch scratch;
  const std::string bytes = read_text(system_disk(), example());
  RandomStream random(random_key({11}));
  for (int i = 0; i < 60; ++i) {
    std::string damaged = bytes.substr(0, i % 3 == 0 ? random.below(bytes.size()) : bytes.size());
    for (int n = 0; n < 4 && damaged.size() > 64; ++n)
      damaged[16 + random.below(48)] = static_cast<char>(random.bits32());
    std::ofstream(scratch.file("damaged.so"), std::ios::binary) << damaged;
    try {
      program::read_library_info(scratch.file("damaged.so"));
    } catch (const Error& error) {
      EXPECT_NE(std::string(error.what()), "");
    }
  }
}

TEST(Library, GivesAModel) {
  spec::Job with = job();
  with.model.options = {"width=8", "depth=1"};
  const auto model = make_model(with.model, points(), 3, 1);
  EXPECT_EQ(model->parameters()[0].name, "stem.weight");
  EXPECT_EQ(model->parameters()[0].tensor.sizes(), (std::vector<int64_t>{8, 2}));
  EXPECT_EQ(model->buffers().size(), 3U);
  // Weights are a function of the seed, and replicas are equal.
  const auto same = make_model(with.model, points(), 3, 1), other = make_model(with.model, points(), 3, 2);
  EXPECT_TRUE(torch::equal(model->parameters()[0].tensor, same->parameters()[0].tensor));
  EXPECT_FALSE(torch::equal(model->parameters()[0].tensor, other->parameters()[0].tensor));
  const torch::Tensor memory = torch::zeros({8, 2});
  same->share(0, memory);
  same->set_training(false);
  EXPECT_EQ(same->forward(torch::zeros({4, 2})).sizes(), (std::vector<int64_t>{4, 3}));
  EXPECT_FALSE(model->identity().empty());
}

// The user rebuilds the library during training. dlopen keeps the old library, and a run saves the old file.
TEST(Library, SavesTheFileThatWasOpened) {
  const Scratch scratch;
  const std::string bytes = read_text(system_disk(), example()), file = scratch.file("net.so");
  write_durably(system_disk(), file, bytes);
  spec::ModelOptions options;
  options.name = "library";
  options.file = file;
  open_library(file);
  write_durably(system_disk(), file, "another one");
  EXPECT_EQ(save_model_file(options, {}, scratch.file("model.so")), "");
  EXPECT_EQ(read_text(system_disk(), scratch.file("model.so")), bytes);
}

TEST(Library, GivesALossAsASum) {
  const LossFunction loss = library_loss(job());
  const RandomScope scope(random_key({1}));
  const torch::Tensor outputs = torch::linspace(-1, 2, 18).reshape({6, 3}).set_requires_grad(true);
  const torch::Tensor targets = torch::tensor({0, 1, 2, 0, 1, 2}, torch::kInt64);
  const auto [whole, weight] = loss(outputs, targets);
  EXPECT_EQ(weight, 6);
  const auto [left, n] = loss(outputs.slice(0, 0, 2), targets.slice(0, 0, 2));
  const auto [right, m] = loss(outputs.slice(0, 2), targets.slice(0, 2));
  EXPECT_NEAR(whole.item<double>(), (left + right).item<double>(), 1e-5);
  EXPECT_EQ(n + m, 6);
}

// A data set whose path names the types and shapes of its inputs and targets, such as "f2 i" or "f2 f3".
class Made final : public library::DataSet {
 public:
  explicit Made(const std::string& path) {
    std::istringstream words(path);
    std::string input, target;
    words >> input >> target >> classes_;
    input_ = tensor(input), target_ = tensor(target);
  }
  int64_t size() const override { return 7; }
  int64_t classes() const override { return classes_; }
  library::Sample sample(int64_t, bool) const override { return {input_, target_}; }

 private:
  static torch::Tensor tensor(const std::string& text) {
    std::vector<int64_t> sizes;
    if (text.size() > 1) sizes.push_back(std::stoll(text.substr(1)));
    return torch::ones(sizes, text[0] == 'i' ? torch::kInt64 : torch::kFloat32);
  }
  torch::Tensor input_, target_;
  int64_t classes_ = 0;
};

class MadeData : public testing::Test {
 protected:
  MadeData() {
    install_keyed_random();
    opened_.path = "made.so";
    opened_.offers.data = [](const std::string& path, const library::Options&) { return std::make_unique<Made>(path); };
  }
  std::string parts(const std::string& train, const std::string& val) {
    spec::Job job;
    job.data.train.path = train;
    job.data.val.path = val;
    return said([&] { data_of(opened_, job); });
  }
  std::unique_ptr<data::Dataset> alone(const std::string& train, const std::string& test, bool labelled) {
    spec::Job job;
    job.data.train.path = train;
    const data::DataInfo info = data_of(opened_, job)->info();
    spec::DataSource source;
    source.path = test;
    return inputs_of(opened_, job, info, source, labelled);
  }
  static std::string said(const std::function<void()>& action) {
    try {
      action();
    } catch (const Error& error) {
      return to_string(error);
    }
    return "opened";
  }
  OpenLibrary opened_;
};

// The training split fixes the layout of batches. A sample of another shape would overrun the batch or leave gaps.
TEST_F(MadeData, SplitsMustHaveTheLayoutOfTrain) {
  EXPECT_EQ(parts("f2 i 3", "f2 i 3"), "opened");
  EXPECT_EQ(parts("f2 f3", "f2 f3"), "opened");
  for (const auto& [train, val] :
       {std::pair("f2 f3", "f2 f4"), std::pair("f2 f", "f2 f1"), std::pair("f2 i 3", "f3 i 3"),
        std::pair("f2 f", "i2 f"), std::pair("f2 i 3", "f2 i 4"), std::pair("i4 i4 9", "i4 i 9")})
    EXPECT_THAT(parts(train, val), HasSubstr("[LIBRARY_DATA_INVALID]")) << train << " and " << val;
}

TEST_F(MadeData, EvaluationTakesOnlyTheLayoutOfTraining) {
  EXPECT_EQ(alone("f2 f3", "f2 f3", true)->info().target_shape, (Shape{3}));
  for (const auto& [train, test] :
       {std::pair("f2 f3", "f2 f4"), std::pair("f2 f1", "f2 f"), std::pair("f2 f", "f2 i 3"),
        std::pair("f2 i 3", "i2 i 3"), std::pair("i4 i4 9", "i4 i 9")})
    EXPECT_THAT(said([&] { alone(train, test, true); }), HasSubstr("[LIBRARY_DATA_MISMATCH]"))
        << train << " and " << test;
}

TEST_F(MadeData, TargetsOfUnlabelledSamplesAreNotRead) {
  for (const auto& [train, test] : {std::pair("f2 f3", "f2 f9"), std::pair("f2 f", "f2 i 3"),
                                    std::pair("i4 i4 9", "i4 i 9"), std::pair("f2 f3", "f2 f3")}) {
    const auto data = alone(train, test, false);
    const data::Batch batch = data->load(data::Split::test, std::vector<int64_t>{0, 6}, {});
    EXPECT_EQ(batch.target.shape.size(), 1 + data->info().target_shape.size()) << test;
    const std::span bytes(batch.target.bytes.data(), batch.target.bytes.size());
    EXPECT_TRUE(std::ranges::all_of(bytes, [](std::byte byte) { return byte == std::byte{0}; })) << test;
    EXPECT_EQ(batch.input.count(), 2 * element_count(data->info().input_shape));
  }
  EXPECT_THAT(said([&] { alone("f2 f", "f3 f", false); }), HasSubstr("[LIBRARY_DATA_MISMATCH]"));
}

TEST(Library, GivesADataSet) {
  const Scratch scratch;
  std::ofstream lines(scratch.file("points.txt"));
  for (int i = 0; i < 600; ++i) lines << i << ' ' << -0.5 * i << ' ' << i % 3 << '\n';
  lines.close();
  spec::Job with = job();
  with.data.train.path = scratch.file("points.txt");
  with.data.split_val = 0.25;
  const auto data = open_library_data(with);
  EXPECT_EQ(data->info().classes, 3);
  EXPECT_EQ(data->info().train_size + data->info().val_size, 600);
  EXPECT_EQ(data->info().val_size, 150);
  const std::vector<int64_t> few = {5, 0, 7};
  const data::SampleContext calm{1, 0, false}, moved{1, 0, true}, later{1, 1, true};
  const auto values = [&](const data::SampleContext& context) {
    const data::Batch batch = data->load(data::Split::train, few, context);
    return std::vector<float>(batch.input.as<float>(), batch.input.as<float>() + 6);
  };
  EXPECT_EQ(values(calm), values(calm));
  EXPECT_EQ(values(moved), values(moved));
  EXPECT_NE(values(calm), values(moved));
  EXPECT_NE(values(moved), values(later));
  // A sample does not depend on the other samples of its batch.
  const data::Batch alone = data->load(data::Split::train, std::vector<int64_t>{7}, moved);
  EXPECT_EQ(alone.input.as<float>()[0], values(moved)[4]);
  EXPECT_THAT(data->describe(data::Split::train, 0), HasSubstr("points.txt:"));
}

}  // namespace
}  // namespace sinew::model
