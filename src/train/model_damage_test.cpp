// Tests that everything that uses a model's weights refuses a model whose files are damaged.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/expected_error.h"
#include "base/file_damage.h"
#include "train/small_run.h"
#include "train/state.h"

namespace sinew::train {
namespace {

namespace fs = std::filesystem;
using testing::HasSubstr;

const std::vector<std::string> kModelFiles = {"model.safetensors", "model.json", "model.digests.json"};

class ModelDamage : public SmallRun {
 protected:
  ModelDamage() {
    job_.trainer.max_duration = {1, spec::Duration::Unit::epochs};
    run_in("a");
    job_.trainer.seed = 99;
    run_in("b");
  }
  std::string path(const std::string& name) const { return folder_ + "/" + name; }
  void copy(const std::string& from) const {
    fs::remove_all(path("damaged"));
    fs::copy(path(from), path("damaged"));
  }
  spec::Job job_of(const Trained& trained) const { return spec::read_job(trained.job_yaml, trained.weights).job; }

  std::string eval(const std::string& model) const {
    return code_of([&] {
      const Trained trained = find_trained(model, system_disk());
      evaluate(trained, job_of(trained), data::Split::train, system_disk());
    });
  }
  std::string predict_with(const std::string& model) const {
    return code_of([&] {
      const Trained trained = find_trained(model, system_disk());
      predict(trained, job_of(trained), folder_ + "/table.csv", system_disk());
    });
  }
  template <typename Change>
  void rewrite_without_digests(Change change) const {
    std::ifstream in(path("damaged/model.json"));
    nlohmann::json about = nlohmann::json::parse(in);
    about.erase("digests");
    change(about);
    std::ofstream(path("damaged/model.json")) << about.dump();
  }
  // model.init_from with the folder, or with the file in it.
  std::string begin_from(const std::string& weights) {
    return code_of([&] {
      job_.model.init_from.path = weights;
      fs::remove_all(path("from"));
      run_in("from");
    });
  }
};

TEST_F(ModelDamage, EveryReaderRefusesEveryDamage) {
  EXPECT_EQ(eval(path("a/model")) + predict_with(path("a/model")) + begin_from(path("a/model")), "");
  for (uint64_t seed = 0; seed < 60; ++seed) {
    copy("a/model");
    const std::string what = FileDamage(path("damaged"), path("b/model"), kModelFiles).apply(seed);
    EXPECT_EQ(eval(path("damaged")), "WEIGHTS_DAMAGED") << seed << ": " << what;
    EXPECT_EQ(predict_with(path("damaged")), "WEIGHTS_DAMAGED") << seed << ": " << what;
    if (what.starts_with("model.json")) continue;  // init_from takes nothing from model.json
    EXPECT_EQ(begin_from(path("damaged")), "WEIGHTS_DAMAGED") << seed << ": " << what;
    EXPECT_EQ(begin_from(path("damaged/model.safetensors")), "WEIGHTS_DAMAGED") << seed << ": " << what;
  }
}

TEST_F(ModelDamage, EveryReaderRefusesADamagedCheckpoint) {
  const std::string step = fs::canonical(path("a/checkpoints/last")).string();
  const std::string name = fs::path(step).filename().string();
  for (uint64_t seed = 0; seed < 60; ++seed) {
    copy("a/checkpoints/" + name);
    const std::string what =
        FileDamage(path("damaged"), path("b/checkpoints/" + name), {"model.safetensors", "state.json", "manifest.json"})
            .apply(seed);
    EXPECT_EQ(eval(path("damaged")), "CHECKPOINT_DAMAGED") << seed << ": " << what;
    EXPECT_EQ(predict_with(path("damaged")), "CHECKPOINT_DAMAGED") << seed << ": " << what;
    if (what.starts_with("state.json")) continue;  // init_from takes nothing from state.json
    EXPECT_EQ(begin_from(path("damaged")), "CHECKPOINT_DAMAGED") << seed << ": " << what;
    EXPECT_EQ(begin_from(path("damaged/model.safetensors")), "CHECKPOINT_DAMAGED") << seed << ": " << what;
  }
}

TEST_F(ModelDamage, AModelOfAnOlderVersionIsUsedWithARemark) {
  copy("a/model");
  fs::remove(path("damaged/model.digests.json"));
  EXPECT_EQ(eval(path("damaged")), "WEIGHTS_DAMAGED");  // model.json says that there was a list
  rewrite_without_digests([](nlohmann::json&) {});
  EXPECT_EQ(eval(path("damaged")), "");
  EXPECT_THAT(find_trained(path("damaged"), system_disk()).remark, HasSubstr("not checked for damage"));
  EXPECT_EQ(find_trained(path("a/model"), system_disk()).remark, "");
}

// A model without digests may say anything. The shapes decide how large the buffers of targets are.
TEST_F(ModelDamage, AModelWhoseShapesContradictTheDataIsRefused) {
  const std::vector<nlohmann::json> shapes = {{0}, {-1}, {2}, {int64_t{1} << 32, int64_t{1} << 32}};
  for (const nlohmann::json& shape : shapes) {
    copy("a/model");
    fs::remove(path("damaged/model.digests.json"));
    rewrite_without_digests([&](nlohmann::json& about) { about["data"]["target_shape"] = shape; });
    EXPECT_EQ(predict_with(path("damaged")), "DATA_BAD_MODEL_INFO") << shape;
    EXPECT_EQ(eval(path("damaged")), "DATA_BAD_MODEL_INFO") << shape;
  }
}

}  // namespace
}  // namespace sinew::train
