// Tests the list of a model's files: its text, and what a reader refuses.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "base/expected_error.h"
#include "base/file_damage.h"
#include "checkpoint/manifest.h"
#include "checkpoint/samples.h"

namespace sinew::checkpoint {
namespace {

namespace fs = std::filesystem;
using testing::HasSubstr;

const std::vector<std::string> kFiles = {"model.safetensors", "model.json", "model.digests.json"};

class ModelDigestsTest : public testing::Test {
 protected:
  ModelDigestsTest() {
    std::string name = (fs::temp_directory_path() / "sinew-model-digests-XXXXXX").string();
    folder_ = ::mkdtemp(name.data());
    write(path("a"), 1);
    write(path("b"), 2);
  }
  ~ModelDigestsTest() override { fs::remove_all(folder_); }
  std::string path(const std::string& name) const { return folder_ + "/" + name; }

  static void write(const std::string& directory, uint64_t seed) {
    fs::create_directories(directory);
    Tensors tensors;
    tensors.add("weight", DType::f32, {40, 50}, random_key({seed}));
    ModelDigests digests;
    digests["model.safetensors"] =
        write_safetensors(system_disk(), directory + "/model.safetensors", tensors.borrowed(), {});
    const std::string info = "{\"digests\": \"model.digests.json\", \"n\": " + std::to_string(seed) + "}\n";
    write_durably(system_disk(), directory + "/model.json", info);
    digests["model.json"] = digest_file(system_disk(), directory + "/model.json");
    write_model_digests(system_disk(), directory, digests);
  }
  // Reads the model as `sinew predict` does.
  static void read(const std::string& directory) {
    if (const auto listed = read_model_digests(system_disk(), directory))
      check_model_file(system_disk(), directory, "model.json", *listed);
    const auto weights = read_weights(system_disk(), directory + "/model.safetensors");
    if (!weights) throw Error("WEIGHTS_UNREADABLE", weights.error(), "");
  }

  std::string folder_;
};

TEST_F(ModelDigestsTest, AWholeModelIsReadWithoutARemark) {
  read(path("a"));
  EXPECT_EQ(read_weights(system_disk(), path("a/model.safetensors"))->remark, "");
  for (const std::string& name : kFiles) EXPECT_TRUE(check_listed_file(system_disk(), path("a/" + name))) << name;
}

TEST_F(ModelDigestsTest, TheDigestOfWrittenBytesIsThatOfTheFile) {
  const auto listed = read_model_digests(system_disk(), path("a"));
  ASSERT_TRUE(listed);
  EXPECT_EQ(listed->at("model.safetensors"), digest_file(system_disk(), path("a/model.safetensors")));
  EXPECT_EQ(*parse_model_digests(model_digests_text(*listed)), *listed);
}

TEST_F(ModelDigestsTest, EveryDamageIsRefused) {
  for (uint64_t seed = 0; seed < 60; ++seed) {
    fs::remove_all(path("damaged"));
    fs::copy(path("a"), path("damaged"));
    const std::string what = FileDamage(path("damaged"), path("b"), kFiles).apply(seed);
    EXPECT_EQ(code_of([&] { read(path("damaged")); }), "WEIGHTS_DAMAGED") << seed << ": " << what;
    const auto check_all = [&] {
      for (const std::string& name : kFiles) check_listed_file(system_disk(), path("damaged/" + name));
    };
    EXPECT_EQ(code_of(check_all), "WEIGHTS_DAMAGED") << seed << ": " << what;
  }
}

TEST_F(ModelDigestsTest, EveryChangedByteOfTheListIsRefused) {
  const std::string text = read_text(system_disk(), path("a/model.digests.json"));
  for (size_t i = 0; i < text.size(); ++i) {
    std::string changed = text;
    changed[i] = static_cast<char>(changed[i] ^ 1);
    EXPECT_FALSE(parse_model_digests(changed)) << i;
    EXPECT_FALSE(parse_model_digests(text.substr(0, i))) << i;
  }
}

TEST_F(ModelDigestsTest, AListOfAnotherFormIsRefused) {
  const std::string digest(64, '0');
  const auto with = [&](const std::string& version, const std::string& files) {
    return with_checksum("{\n \"format\": \"sinew-model-digests\",\n \"version\": " + version +
                         ",\n \"files\": " + files + ",\n" + std::string(kChecksumKey));
  };
  const std::string good = "{\"model.json\": {\"bytes\": 1, \"sha256\": \"" + digest + "\"}}";
  EXPECT_TRUE(parse_model_digests(with("1", good)));
  EXPECT_THAT(parse_model_digests(with("2", good)).error(), HasSubstr("another version"));
  for (const std::string& bad : {std::string("3"), std::string("{\"model.json\": 1}"),
                                 "{\"../x\": {\"bytes\": 1, \"sha256\": \"" + digest + "\"}}",
                                 "{\"model.json\": {\"bytes\": -1, \"sha256\": \"" + digest + "\"}}",
                                 std::string("{\"model.json\": {\"bytes\": 1, \"sha256\": \"x\"}}")}) {
    EXPECT_FALSE(parse_model_digests(with("1", bad))) << bad;
  }
}

TEST_F(ModelDigestsTest, OnlyAFieldOfTheModelItselfNamesTheList) {
  for (const char* text : {R"({"digests": "x"})", R"({"a": [{}, [1]], "digests": {"b": 1}, "c": 2})"})
    EXPECT_TRUE(names_model_digests(text)) << text;
  for (const char* text : {"", "{", "[]", R"(["digests"])", R"({"a": {"digests": 1}})", R"({"a": "digests"})",
                           R"([{"digests": 1}])", R"({"digests": 1)"})
    EXPECT_FALSE(names_model_digests(text)) << text;
}

TEST_F(ModelDigestsTest, AMissingListIsRefusedIfTheModelNamesIt) {
  fs::remove(path("a/model.digests.json"));
  EXPECT_EQ(code_of([&] { read(path("a")); }), "WEIGHTS_DAMAGED");
  std::ofstream(path("a/model.json")) << "{}";  // as an older version wrote it
  read(path("a"));
  EXPECT_THAT(read_weights(system_disk(), path("a/model.safetensors"))->remark, HasSubstr("not checked"));
  EXPECT_FALSE(check_listed_file(system_disk(), path("a/model.safetensors")));
}

TEST_F(ModelDigestsTest, AFileThatTheListLacksIsRefused) {
  const ModelDigests listed = *read_model_digests(system_disk(), path("a"));
  ModelDigests found = listed;
  found["notes.txt"] = {1, std::string(64, '1')};  // a file of the user
  EXPECT_FALSE(wrong_model_file(listed, found));
  found["model.pt2"] = {1, std::string(64, '1')};
  EXPECT_THAT(wrong_model_file(listed, found).value_or(""), HasSubstr("model.pt2 is not listed"));
  found = listed;
  found.erase("model.json");
  EXPECT_THAT(wrong_model_file(listed, found).value_or(""), HasSubstr("model.json is missing"));
}

TEST_F(ModelDigestsTest, WeightsOfACheckpointAreCheckedByItsManifest) {
  const std::string step = save(system_disk(), path("checkpoints"), Sample(3).snapshot(), 0);
  EXPECT_TRUE(read_weights(system_disk(), step + "/model.safetensors"));
  for (uint64_t seed = 0; seed < 60; ++seed) {
    if (seed % 5 == 3) continue;  // this sample has no other directory
    fs::remove_all(path("step-00000003"));
    fs::copy(step, path("step-00000003"));
    const std::string what = FileDamage(path("step-00000003"), "", {"model.safetensors", "manifest.json"}).apply(seed);
    EXPECT_EQ(code_of([&] { (void)read_weights(system_disk(), path("step-00000003/model.safetensors")); }),
              "CHECKPOINT_DAMAGED")
        << seed << ": " << what;
  }
}

}  // namespace
}  // namespace sinew::checkpoint
