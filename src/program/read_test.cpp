// Tests what the reader gets from a good .pt2 file, and how it refuses wrong files.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>
#include <limits>

#include "base/expected_error.h"
#include "program/dump.h"
#include "program/sample_model.h"
#include "program/weights.h"

namespace sinew::program {
namespace {

using testing::ElementsAre;

TEST(Read, ReadsTheWholeSample) {
  const Program program = Sample().read();
  EXPECT_EQ(program.root, "net");
  EXPECT_EQ(program.torch_version, "2.13.0");
  EXPECT_EQ(program.schema_version, (std::array<int64_t, 2>{8, 20}));
  std::vector<std::string> inputs, outputs;
  for (const InputSpec& input : program.inputs) inputs.push_back(input.name);
  for (const OutputSpec& output : program.outputs) outputs.push_back(output.name);
  EXPECT_THAT(inputs, ElementsAre("w", "t", "v", "n", "u", "c", "batch.ids", "batch.more.0", "k", "flag"));
  EXPECT_THAT(outputs, ElementsAre("n", "left.logits", "left.extra", "right"));
  EXPECT_EQ(program.inputs.back().kind, InputSpec::Kind::user_constant);
  EXPECT_EQ(program.inputs.back().value, -1);
  EXPECT_TRUE(std::holds_alternative<None>(program.inputs.back().constant.value));
  EXPECT_EQ(program.graph.inputs.size(), 9U);
  EXPECT_EQ(program.outputs[0].kind, OutputSpec::Kind::buffer_mutation);
  EXPECT_EQ(program.outputs[3].kind, OutputSpec::Kind::loss);
  EXPECT_EQ(program.ranges.at("s77").min, 1);
  EXPECT_FALSE(program.ranges.at("s77").max.has_value());
  const Dim& batch = program.graph.values[6].meta->sizes[0];
  EXPECT_EQ(batch.symbol, "s77");
  EXPECT_EQ(batch.hint, 4);
  EXPECT_EQ(program.output_tree.kind, Tree::Kind::named_tuple);
}

TEST(Read, ResolvesTheArgumentsOfNodes) {
  const Graph graph = Sample().read().graph;
  const Node& linear = graph.nodes[1];
  EXPECT_EQ(linear.where, "model.py:17 in forward");
  EXPECT_EQ(linear.module, "enc.fc (Linear)");
  EXPECT_EQ(std::get<ValueRef>(linear.inputs[1].value.value).id, graph.inputs[0]);
  const Node& split = graph.nodes[2];
  EXPECT_EQ(split.name, "getitem");  // the file gives no name
  EXPECT_EQ(std::get<List>(split.outputs[0].value).items.size(), 2U);
  EXPECT_FALSE(split.returns_list_of_one);
  EXPECT_EQ(std::get<double>(graph.nodes[3].inputs[1].value.value), -std::numeric_limits<double>::infinity());
  const Node& cond = graph.nodes[5];
  EXPECT_TRUE(cond.returns_list_of_one);
  const Graph& body = *std::get<std::shared_ptr<const Graph>>(cond.inputs[1].value.value);
  EXPECT_TRUE(body.single_output);
  EXPECT_THAT(body.inputs, ElementsAre(0, -1));
  EXPECT_EQ(std::get<ValueRef>(body.nodes[0].inputs[0].value.value).id, 0);
}

std::vector<float> floats(const Array& array) {
  return {array.as<float>(), array.as<float>() + array.count()};
}

TEST(Read, TensorsAreDenseWhateverTheirStrides) {
  const Sample sample;
  MemoryDisk disk;
  disk.put("net.pt2", sample.bytes());
  const Program program = read_program(disk, "net.pt2");
  const auto weight = [&](const char* name) { return read_tensor(disk, program, program.weights.at(name)); };
  EXPECT_EQ(weight("w").shape, (Shape{2, 3}));
  EXPECT_THAT(floats(weight("w")), ElementsAre(1, 2, 3, 4, 5, 6));
  EXPECT_THAT(floats(weight("t")), ElementsAre(1, 4, 2, 5, 3, 6));
  EXPECT_THAT(floats(weight("v")), ElementsAre(4, 5, 7, 8));
  EXPECT_EQ(*weight("n").as<int64_t>(), 7);
  EXPECT_THAT(floats(read_tensor(disk, program, program.constants.at("u"))), ElementsAre(2.5, 2.5, 2.5, 2.5));
  EXPECT_TRUE(program.weights.at("w").is_parameter);
  EXPECT_FALSE(program.weights.at("n").is_parameter);
  EXPECT_EQ(program.weights.at("w").member, program.weights.at("t").member);
}

// The stride of a dimension of size 1 may be any number.
TEST(Read, StridesOfDimensionsOfSizeOneDoNotCount) {
  const int64_t most = std::numeric_limits<int64_t>::max();
  const std::vector<std::pair<Shape, Shape>> views = {
      {{2, 1}, {2, most}}, {{1, 2}, {most, 2}}, {{2, 1, 1}, {2, most, most}}};
  for (const auto& [sizes, strides] : views) {
    const StoredTensor stored{.member = "m", .dtype = ScalarType::f32, .sizes = sizes, .strides = strides, .offset = 5};
    std::vector<int64_t> elements;
    for_each_element(stored, [&](int64_t, int64_t element) { elements.push_back(element); });
    EXPECT_THAT(elements, ElementsAre(5, 7));
  }
}

TEST(Read, AChangedBitOfATensorIsDetected) {
  std::string bytes = Sample().bytes();
  MemoryDisk disk;
  disk.put("net.pt2", bytes);
  const Program program = read_program(disk, "net.pt2");
  const StoredTensor& stored = program.weights.at("v");
  bytes[stored.begin + 1] ^= 4;  // before the bytes that the view covers
  disk.put("net.pt2", bytes);
  EXPECT_ERROR(error_of([&] { read_tensor(disk, program, stored); }), "PROGRAM_DAMAGED_FILE", "weight_2");
}

TEST(Read, EmptyTensorsAndScalars) {
  Sample sample;
  sample.weights["config"]["e"] = payload("weight_9", false, tensor_meta(7, {0, 3}));
  sample.zip["net/data/weights/weight_9"] = "";
  MemoryDisk disk;
  disk.put("net.pt2", sample.bytes());
  const Program program = read_program(disk, "net.pt2");
  const Array empty = read_tensor(disk, program, program.weights.at("e"));
  EXPECT_EQ(empty.shape, (Shape{0, 3}));
}

TEST(Read, ReadsAnArchiveOfAnotherTool) {
  Sample sample;
  const std::string before = Dump::of(sample.read());
  sample.zip.plain = true;
  sample.zip.comment = "packed by hand PK\5\6";
  const Program program = sample.read();
  EXPECT_EQ(program.outputs.size(), 4U);
  EXPECT_NE(Dump::of(program), before);  // only because the members are at other offsets
}

struct WrongFile {
  std::function<void(Sample&)> change;
  ErrorCode code;
  std::vector<const char*> mentions;
};

void expect_refused(const std::vector<WrongFile>& all) {
  for (const WrongFile& wrong : all) {
    Sample sample;
    wrong.change(sample);
    const std::string refused = error_of([&] { sample.read(); });
    for (const char* mention : wrong.mentions) EXPECT_ERROR(refused, wrong.code, mention);
  }
}

TEST(Read, RefusesFilesOfOtherFormats) {
  expect_refused({
      {[](Sample& s) { s.zip.remove("net/archive_format"); },
       "PROGRAM_NOT_PT2",
       {"net.pt2: ", "no archive_format", "torch.export.save"}},
      {[](Sample& s) {
         s.zip.remove("net/archive_format");
         s.zip.add("net/serialized_exported_program.json", "{}");
       },
       "PROGRAM_UNSUPPORTED_VERSION",
       {"2.8", "export the model"}},
      {[](Sample& s) { s.zip["net/archive_format"] = "pt3"; }, "PROGRAM_NOT_PT2", {"archive_format: is 'pt3'"}},
      {[](Sample& s) { s.zip["net/archive_version"] = "1"; },
       "PROGRAM_UNSUPPORTED_VERSION",
       {"archive_version: is '1'"}},
      {[](Sample& s) { s.zip["net/byteorder"] = "big"; },
       "PROGRAM_UNSUPPORTED_VERSION",
       {"byteorder: is 'big'", "little-endian"}},
      {[](Sample& s) { s.zip.add("other/file", ""); }, "PROGRAM_NOT_PT2", {"'other/file'", "'net'"}},
      {[](Sample& s) { s.zip.remove("net/data/weights/weight_1"); },
       "PROGRAM_BAD_TENSOR",
       {"model_weights_config.json: config.n.path_name", "'net/data/weights/weight_1'"}},
      {[](Sample& s) { s.model["schema_version"]["major"] = 9; },
       "PROGRAM_UNSUPPORTED_VERSION",
       {"models/model.json: schema_version.major: is schema 9", "a Sinew that reads"}},
      {[](Sample& s) { s.model["schema_version"]["major"] = 7; },
       "PROGRAM_UNSUPPORTED_VERSION",
       {"is schema 7", "export the model again"}},
      {[](Sample& s) { s.model["extra"] = 1; }, "PROGRAM_BAD_SCHEMA", {"model.json: has 'extra'"}},
  });
}

TEST(Read, AMissingModelIsReportedWithWhatTheFileHas) {
  Sample sample;
  Zip zip = sample.zip;
  zip.add("net/models/encoder.json", "{}");
  MemoryDisk disk;
  disk.put("net.pt2", zip.bytes());
  const auto refused = [&](const char* path) { return error_of([&] { read_program(disk, path); }); };
  EXPECT_ERROR(refused("net.pt2"), "PROGRAM_NOT_PT2", "'models/encoder.json'");
  zip.add("net/data/weights/model.pt", "pickle");
  disk.put("net.pt2", zip.bytes());
  EXPECT_ERROR(refused("net.pt2"), "PROGRAM_UNSUPPORTED_VERSION", "pickle");
  EXPECT_ERROR(refused("none.pt2"), "DISK_NO_FILE", "none.pt2");
}

// A newer minor version may have added members to objects. The reader ignores unknown names, but not unknown values.
TEST(Read, ANewerMinorVersionMayAddMembers) {
  Sample sample;
  sample.model["schema_version"]["minor"] = 21;
  sample.model["news"] = 1;
  sample.node(1)["news"] = {1, 2};
  sample.weights["config"]["w"]["news"] = nullptr;
  EXPECT_EQ(sample.read().schema_version[1], 21);
  sample.node(1)["outputs"][0] = {{"as_news", 1}};
  EXPECT_ERROR(error_of([&] { sample.read(); }), "PROGRAM_BAD_SCHEMA", "is 'as_news'");
}

// One view may repeat its elements up to 16 MiB. With many views, a file of some kilobytes could still ask for all
// memory.
TEST(Read, AllTensorsTogetherAreBounded) {
  const auto with = [](int count) {
    Sample sample;
    auto& specs = sample.signature()["input_specs"];
    for (int i = 0; i < count; ++i) {
      const std::string name = "big" + std::to_string(i);
      const TestJson meta = tensor_meta(7, {4 << 20}, {0});
      sample.graph()["inputs"].insert(sample.graph()["inputs"].begin(), tensor(name));
      sample.graph()["tensor_values"][name] = meta;
      specs.insert(specs.begin(),
                   TestJson{{"tensor_constant", {{"arg", named(name)}, {"tensor_constant_name", name}}}});
      sample.constants["config"][name] = payload("tensor_0", false, meta);
    }
    return error_of([&] { sample.read(); });
  };
  EXPECT_EQ(with(3), "");
  EXPECT_ERROR(with(17), "PROGRAM_BAD_TENSOR", "more than 64 times the bytes of the file");
}

TEST(Read, RefusesMissingTensors) {
  const auto weight = [](Sample& s, const char* name) -> TestJson& { return s.weights["config"][name]["tensor_meta"]; };
  expect_refused({
      {[](Sample& s) { s.weights["config"]["w"]["use_pickle"] = true; },
       "PROGRAM_UNSUPPORTED",
       {"config.w.use_pickle", "plain"}},
      {[](Sample& s) { s.weights["config"].erase("w"); }, "PROGRAM_BAD_TENSOR", {"parameter 'w'", "weights"}},
      {[](Sample& s) { s.constants["config"].erase("u"); }, "PROGRAM_BAD_TENSOR", {"buffer 'u'", "constants"}},
      {[&](Sample& s) {
         weight(s, "w") = tensor_meta(7, {2, 2});
       },
       "PROGRAM_BAD_TENSOR",
       {"parameter 'w' is stored as float32 [2, 2], but the graph takes float32 [2, 3]"}},
      {[&](Sample& s) {
         weight(s, "w") = tensor_meta(6, {2, 3});
       },
       "PROGRAM_BAD_TENSOR",
       {"float16 [2, 3], but the graph takes float32"}},
      {[&](Sample& s) {
         weight(s, "v") = tensor_meta(7, {2, 2}, {3, 1}, 5);
       },
       "PROGRAM_BAD_TENSOR",
       {"config.v: reaches to element 9 of member 'net/data/weights/weight_2', which has 9"}},
      {[&](Sample& s) {
         weight(s, "v") = tensor_meta(7, {2, 2}, {1LL << 62, 1});
       },
       "PROGRAM_BAD_TENSOR",
       {"config.v: reaches to element"}},
      {[&](Sample& s) {
         weight(s, "v") = tensor_meta(7, {4, 2}, {1LL << 62, 1});
       },
       "PROGRAM_BAD_TENSOR",
       {"config.v", "too large"}},
      {[&](Sample& s) {
         weight(s, "v") = tensor_meta(7, {1LL << 32, 1LL << 32}, {0, 0});
       },
       "PROGRAM_BAD_TENSOR",
       {"config.v", "too large"}},
      {[&](Sample& s) {
         weight(s, "v") = tensor_meta(7, {1LL << 61, 4}, {0, 0});
       },
       "PROGRAM_BAD_TENSOR",
       {"config.v", "too large"}},
      {[&](Sample& s) { weight(s, "v") = tensor_meta(7, {1LL << 40}, {0}); },
       "PROGRAM_BAD_TENSOR",
       {"config.v: is a view that repeats"}},
      {[&](Sample& s) {
         weight(s, "v") = tensor_meta(7, {2, -1}, {3, 1});
       },
       "PROGRAM_BAD_TENSOR",
       {"config.v: has a symbol in its sizes"}},
      {[&](Sample& s) {
         weight(s, "v") = tensor_meta(7, {2, 2}, {3});
       },
       "PROGRAM_BAD_SCHEMA",
       {"strides: has 1 numbers for 2 sizes"}},
      {[&](Sample& s) { weight(s, "v")["strides"][0]["as_int"] = -3; },
       "PROGRAM_BAD_SCHEMA",
       {"strides[0].as_int: is -3, but must be 0 or"}},
      {[&](Sample& s) { weight(s, "v")["layout"] = 1; },
       "PROGRAM_UNSUPPORTED",
       {"tensor_meta.layout: is the layout 1", "to_dense"}},
      {[&](Sample& s) { weight(s, "v")["dtype"] = 29; }, "PROGRAM_UNSUPPORTED", {"tensor_meta.dtype: is the dtype 29"}},
      {[&](Sample& s) { weight(s, "v")["dtype"] = 14; }, "PROGRAM_BAD_SCHEMA", {"tensor_meta.dtype: is 14"}},
      {[](Sample& s) { s.zip["net/data/weights/weight_2"] = ""; },
       "PROGRAM_BAD_TENSOR",
       {"which has 0", "FakeTensorMode"}},
      {[](Sample& s) { s.weights["config"]["v"]["tensor_meta"] = nullptr; },
       "PROGRAM_BAD_SCHEMA",
       {"tensor_meta: should be an object"}},
  });
}

TEST(Read, ReadsAProgramWithComplexTensorsButNotTheirValues) {
  Sample sample;
  sample.constants["config"]["z"] = payload("tensor_1", false, tensor_meta(10, {0}));
  MemoryDisk disk;
  disk.put("net.pt2", sample.bytes());
  const Program program = read_program(disk, "net.pt2");
  EXPECT_ERROR(error_of([&] { read_tensor(disk, program, program.constants.at("z")); }), "PROGRAM_UNSUPPORTED",
               "complex64");
}

TEST(ScalarTypes, HaveTheNamesOfPython) {
  EXPECT_EQ(name_of(ScalarType::bf16), "bfloat16");
  EXPECT_EQ(size_of(ScalarType::c128), 16U);
  EXPECT_EQ(dtype_of(ScalarType::boolean), DType::boolean);
  EXPECT_FALSE(dtype_of(ScalarType::u16).has_value());
  for (const ScalarType type : {ScalarType::u8, ScalarType::i8, ScalarType::i16, ScalarType::i32, ScalarType::i64,
                                ScalarType::f16, ScalarType::f32, ScalarType::f64, ScalarType::bf16})
    EXPECT_EQ(size_of(type), size_of(*dtype_of(type)));
}

}  // namespace
}  // namespace sinew::program
