// Tests that a model's description of its data is refused if its sizes contradict one another. The file may come from
// anywhere, and the readers of new samples allocate by one size and write by another.
#include <functional>
#include <limits>
#include <nlohmann/json.hpp>

#include "data/image_fixtures.h"
#include "data/numpy_fixtures.h"

namespace sinew::data {
namespace {

using nlohmann::json;
using Change = std::function<void(json&)>;

// Braces alone can mean an object, a list or a copy.
json list(std::initializer_list<json> items) {
  return json::array_t(items);
}

// A trained model, and the new samples that it gets.
struct Model {
  spec::DataOptions options;
  spec::DataSource source;
  json description = {};

  void train() { description = json::parse(info_json(open_dataset(options, 0)->info())); }
  // Opens the new samples with a changed description, and loads them all.
  std::string open(const Change& change, bool labelled = false) const {
    json changed = description;
    change(changed);
    return error_of([&] {
      load_all(*open_inference_data(options, info_from_json(changed.dump()), source, labelled), Split::test);
    });
  }
  std::string with(const char* key, const json& value, bool labelled = false) const {
    return open([&](json& document) { document[key] = value; }, labelled);
  }
};

#define EXPECT_REFUSED(text, mention) EXPECT_ERROR(text, "DATA_BAD_MODEL_INFO", mention)

struct TextModel : Model {
  Folder folder;
  TextModel() {
    options.format = "text";
    options.text.tokens = "bytes";
    options.text.window = 8;
    options.train.path = source.path = folder.write("t.txt", "a text of more than two windows");
    train();
  }
};

struct TableModel : Model {
  Folder folder;
  explicit TableModel(const std::string& task) {
    std::string text = "a,b,y\n";
    for (int i = 0; i < 40; ++i)
      text += std::to_string(i) + "," + std::to_string(i % 7) + "," + std::to_string(i % 2) + "\n";
    options.format = "csv";
    options.task = task;
    options.columns.target = "y";
    options.train.path = source.path = folder.write("t.csv", text);
    train();
  }
};

// Three samples of two numbers, with targets of two numbers.
struct ArrayModel : Model {
  Folder folder;
  ArrayModel() {
    options.format = "npy";
    source.images = folder.write("x.npy", npy(dict("<f4", "(3, 2)"), raw<float>({1, 2, 3, 4, 5, 7})));
    source.labels = folder.write("y.npy", npy(dict("<f4", "(3, 2)"), raw<float>({1, 2, 3, 5, 4, 9})));
    options.train = source;
    train();
  }
};

TEST(ModelInfo, TheOneThatTheTrainingWroteIsTaken) {
  const Change none = [](json&) {};
  for (const bool labelled : {false, true}) {
    EXPECT_EQ(TextModel().open(none, labelled), "");
    EXPECT_EQ(TableModel("classification").open(none, labelled), "");
    EXPECT_EQ(TableModel("regression").open(none, labelled), "");
    EXPECT_EQ(ArrayModel().open(none, labelled), "");
  }
}

TEST(ModelInfo, ATargetShapeMustFitTheTask) {
  const TextModel text;
  for (const json& shape : {list({}), list({1}), list({7}), list({8, 1}), list({4, 2})})
    EXPECT_REFUSED(text.with("target_shape", shape), "target_shape");
  const TableModel classes("classification"), numbers("regression");
  for (const json& shape : {list({1}), list({8}), list({1, 1})}) {
    EXPECT_REFUSED(classes.with("target_shape", shape, true), "target_shape");
    EXPECT_REFUSED(numbers.with("target_shape", shape, true), "target_shape");
  }
  EXPECT_REFUSED(ArrayModel().with("target_shape", list({3}), true), "target_mean");
}

TEST(ModelInfo, AShapeHasPositiveSizesWhoseProductIsBounded) {
  const int64_t half = int64_t{1} << 32, top = std::numeric_limits<int64_t>::max();
  for (const char* key : {"target_shape", "input_shape"}) {
    for (const json& shape :
         {list({0}), list({-1}), list({half, half}), list({top}), list({uint64_t{1} << 63}), list({3, -1, -1}),
          list({1e300}), list({2.5}), list({"2"}), list({list({2})}), json(2), json(), json("2")}) {
      EXPECT_REFUSED(TableModel("classification").with(key, shape, true), key) << shape;
      EXPECT_REFUSED(ArrayModel().with(key, shape, true), key) << shape;
    }
  }
}

// A reader of the mean of a number takes the standard deviation at the same place.
TEST(ModelInfo, MeansAndDeviationsHaveTheSameSize) {
  const ArrayModel model;
  EXPECT_EQ(model.open([](json& d) { d["target_mean"] = 1.5, d["target_std"] = 2; }), "") << "as older versions wrote";
  EXPECT_REFUSED(model.with("target_mean", 1.5), "target_mean has 1 numbers and target_std 2");
  EXPECT_REFUSED(model.with("target_std", list({1, 2, 3})), "target_mean has 2 numbers and target_std 3");
  const auto threes = [](json& d) { d["target_mean"] = d["target_std"] = list({1, 2, 3}); };
  EXPECT_REFUSED(model.open(threes), "target_mean has 3");
  const auto none = [](json& d) { d["target_mean"] = d["target_std"] = list({}); };
  EXPECT_REFUSED(model.open(none), "target_mean has 0");
  EXPECT_REFUSED(model.with("target_std", list({1, "2"})), "type");
  const auto lists = [](json& d) { d["target_mean"] = d["target_std"] = list({1, 1, 1, 1, 1, 1, 1, 1}); };
  EXPECT_REFUSED(TextModel().open(lists), "target_mean has 8");
}

TEST(ModelInfo, EveryOtherSizeMustFit) {
  const TextModel text;
  EXPECT_REFUSED(text.with("tokens_per_sample", 4), "tokens_per_sample");
  EXPECT_REFUSED(text.with("tokens_per_sample", 0), "tokens_per_sample");
  EXPECT_REFUSED(text.with("tokens_per_sample", -8), "tokens_per_sample");
  EXPECT_REFUSED(text.with("input_is_tokens", false), "input_is_tokens");
  EXPECT_REFUSED(text.with("task", "classification"), "the task is classification");
  const TableModel table("classification");
  EXPECT_REFUSED(table.with("tokens_per_sample", 2), "tokens_per_sample");
  EXPECT_REFUSED(table.with("input_is_tokens", true), "input_is_tokens");
  EXPECT_REFUSED(table.with("task", "next_token"), "the task is next_token");
  for (const json& classes : {json(0), json(-1), json(1), json(3), json(int64_t{1} << 31), json(1e300), json("2")})
    EXPECT_REFUSED(table.with("classes", classes), "classes") << classes;
  EXPECT_REFUSED(table.with("class_names", list({"0", "1", "2"})), "class_names");
  EXPECT_REFUSED(table.with("input_names", list({"a"})), "input columns");
  EXPECT_REFUSED(ArrayModel().with("input_names", list({"a"})), "input columns");
}

TEST(ModelInfo, ThePlacesOfATableMustFit) {
  const TableModel table("classification");
  const auto prepared = [&](const std::string& key, const json& value) {
    return table.open([&](json& d) { d["preparation"][json::json_pointer(key)] = value; }, true);
  };
  EXPECT_REFUSED(prepared("/target_numbers", list({0, 1, 2})), "target_numbers");
  EXPECT_REFUSED(prepared("/target_numbers", list({1, 0})), "target_numbers");
  EXPECT_REFUSED(prepared("/features/0/number_at", 99), "input columns");
  EXPECT_REFUSED(prepared("/features/0/number_at", 1e300), "not a whole number");
}

class ModelInfoOfImages : public Images {};

TEST_F(ModelInfoOfImages, HasOneClassForEachImage) {
  put_classes(3);
  Model model;
  model.options = options();
  model.source.path = path("train");
  model.train();
  for (const bool labelled : {false, true}) {
    EXPECT_EQ(model.open([](json&) {}, labelled), "");
    EXPECT_REFUSED(model.with("target_shape", list({2}), labelled), "target_shape");
    const auto tokens = [](json& d) {
      d["task"] = "next_token";
      d["target_shape"] = d["input_shape"];
    };
    EXPECT_REFUSED(model.open(tokens, labelled), "the task is next_token");
  }
}

}  // namespace
}  // namespace sinew::data
