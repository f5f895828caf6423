// A whole .pt2: what is read of a good one, and what is said of each that is not.
#include <functional>
#include <limits>

#include "program/dump.h"
#include "program/refusal.h"
#include "program/sample_model.h"
#include "program/weights.h"

namespace sinew::program {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;

TEST(Read, TheSampleSaysWhatItHolds) {
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
  EXPECT_EQ(program.ranges.at("s77").least, 1);
  EXPECT_FALSE(program.ranges.at("s77").most.has_value());
  const Dim& batch = program.graph.values[6].meta->sizes[0];
  EXPECT_EQ(batch.symbol, "s77");
  EXPECT_EQ(batch.hint, 4);
  EXPECT_EQ(program.output_tree.kind, Tree::Kind::named_tuple);
}

TEST(Read, NodesAreResolved) {
  const Graph graph = Sample().read().graph;
  const Node& linear = graph.nodes[1];
  EXPECT_EQ(linear.where, "model.py:17 in forward");
  EXPECT_EQ(linear.module, "enc.fc (Linear)");
  EXPECT_EQ(std::get<ValueRef>(linear.inputs[1].value.value).id, graph.inputs[0]);
  const Node& split = graph.nodes[2];
  EXPECT_EQ(split.name, "getitem");  // the file gives none
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

TEST(Read, TensorsComeDenseWhateverTheirStrides) {
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

// A stride that no step is ever taken by may be any number.
TEST(Read, StridesOfOneElementDoNotCount) {
  const int64_t most = std::numeric_limits<int64_t>::max();
  const std::vector<std::pair<Shape, Shape>> views = {
      {{2, 1}, {2, most}}, {{1, 2}, {most, 2}}, {{2, 1, 1}, {2, most, most}}};
  for (const auto& [sizes, strides] : views) {
    const Stored stored{.member = "m", .dtype = ScalarType::f32, .sizes = sizes, .strides = strides, .offset = 5};
    std::vector<int64_t> places;
    for_each_element(stored, [&](int64_t, int64_t place) { places.push_back(place); });
    EXPECT_THAT(places, ElementsAre(5, 7));
  }
}

TEST(Read, ABitOfATensorThatChangedIsSeen) {
  std::string bytes = Sample().bytes();
  MemoryDisk disk;
  disk.put("net.pt2", bytes);
  const Program program = read_program(disk, "net.pt2");
  const Stored& stored = program.weights.at("v");
  bytes[stored.begin + 1] ^= 4;  // before what the view reads
  disk.put("net.pt2", bytes);
  EXPECT_THAT(refusal([&] { read_tensor(disk, program, stored); }), HasSubstr("do not have its checksum"));
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

TEST(Read, AnArchiveOfAnotherToolIsReadAsWell) {
  Sample sample;
  const std::string before = Dump::of(sample.read());
  sample.zip.plain = true;
  sample.zip.comment = "packed by hand PK\5\6";
  const Program program = sample.read();
  EXPECT_EQ(program.outputs.size(), 4U);
  EXPECT_NE(Dump::of(program), before);  // only because the members stand elsewhere
}

struct Wrong {
  std::function<void(Sample&)> change;
  std::vector<const char*> says;
};

void expect_refused(const std::vector<Wrong>& all) {
  for (const Wrong& wrong : all) {
    Sample sample;
    wrong.change(sample);
    const std::string said = refusal([&] { sample.read(); });
    for (const char* words : wrong.says) EXPECT_THAT(said, HasSubstr(words));
  }
}

TEST(Read, RefusesWhatIsNotTheFormat) {
  expect_refused({
      {[](Sample& s) { s.zip.remove("net/archive_format"); }, {"net.pt2: ", "no archive_format", "torch.export.save"}},
      {[](Sample& s) {
         s.zip.remove("net/archive_format");
         s.zip.add("net/serialized_exported_program.json", "{}");
       },
       {"before 2.8", "export the model"}},
      {[](Sample& s) { s.zip["net/archive_format"] = "pt3"; }, {"archive_format: is 'pt3'"}},
      {[](Sample& s) { s.zip["net/archive_version"] = "1"; }, {"archive_version: is '1'"}},
      {[](Sample& s) { s.zip["net/byteorder"] = "big"; }, {"byteorder: is 'big'", "little-endian"}},
      {[](Sample& s) { s.zip.add("other/file", ""); }, {"member 'other/file' is not in the folder 'net'"}},
      {[](Sample& s) { s.zip.remove("net/data/weights/weight_1"); },
       {"model_weights_config.json: config.n.path_name", "'net/data/weights/weight_1', which the archive does not"}},
      {[](Sample& s) { s.model["schema_version"]["major"] = 9; },
       {"models/model.json: schema_version.major: is schema 9", "a Sinew that reads"}},
      {[](Sample& s) { s.model["schema_version"]["major"] = 7; }, {"is schema 7", "export the model again"}},
      {[](Sample& s) { s.model["extra"] = 1; }, {"model.json: has 'extra', which the schema does not know"}},
  });
}

TEST(Read, AMissingModelIsToldWithWhatIsThere) {
  Sample sample;
  Zip zip = sample.zip;
  zip.add("net/models/encoder.json", "{}");
  MemoryDisk disk;
  disk.put("net.pt2", zip.bytes());
  EXPECT_THAT(refusal([&] { read_program(disk, "net.pt2"); }),
              AllOf(HasSubstr("has no models/model.json, only 'models/encoder.json'"), HasSubstr("save one program")));
  zip.add("net/data/weights/model.pt", "pickle");
  disk.put("net.pt2", zip.bytes());
  EXPECT_THAT(refusal([&] { read_program(disk, "net.pt2"); }), HasSubstr("are a pickle"));
  EXPECT_THAT(refusal([&] { read_program(disk, "none.pt2"); }), HasSubstr("none.pt2"));
}

// A younger minor version may have added to what we know: names beyond ours are passed over, values are not.
TEST(Read, AYoungerMinorVersionMayHaveAdded) {
  Sample sample;
  sample.model["schema_version"]["minor"] = 21;
  sample.model["news"] = 1;
  sample.node(1)["news"] = {1, 2};
  sample.weights["config"]["w"]["news"] = nullptr;
  EXPECT_EQ(sample.read().schema_version[1], 21);
  sample.node(1)["outputs"][0] = {{"as_news", 1}};
  EXPECT_THAT(refusal([&] { sample.read(); }), HasSubstr("is 'as_news', which no node can make"));
}

TEST(Read, RefusesTensorsThatAreNotThere) {
  const auto weight = [](Sample& s, const char* name) -> Made& { return s.weights["config"][name]["tensor_meta"]; };
  expect_refused({
      {[](Sample& s) { s.weights["config"]["w"]["use_pickle"] = true; }, {"config.w.use_pickle", "pickle", "plain"}},
      {[](Sample& s) { s.weights["config"].erase("w"); }, {"parameter 'w' has no tensor among the weights"}},
      {[](Sample& s) { s.constants["config"].erase("u"); }, {"buffer 'u' has no tensor among the constants"}},
      {[&](Sample& s) {
         weight(s, "w") = tensor_meta(7, {2, 2});
       },
       {"parameter 'w' is stored as float32 [2, 2], but the graph takes float32 [2, 3]"}},
      {[&](Sample& s) {
         weight(s, "w") = tensor_meta(6, {2, 3});
       },
       {"float16 [2, 3], but the graph takes float32"}},
      {[&](Sample& s) {
         weight(s, "v") = tensor_meta(7, {2, 2}, {3, 1}, 5);
       },
       {"config.v: reaches to element 9 of member 'net/data/weights/weight_2', which has 9"}},
      {[&](Sample& s) {
         weight(s, "v") = tensor_meta(7, {2, 2}, {1LL << 62, 1});
       },
       {"config.v: reaches to element"}},
      {[&](Sample& s) {
         weight(s, "v") = tensor_meta(7, {4, 2}, {1LL << 62, 1});
       },
       {"config.v", "too large"}},
      {[&](Sample& s) {
         weight(s, "v") = tensor_meta(7, {1LL << 32, 1LL << 32}, {0, 0});
       },
       {"config.v", "too large"}},
      {[&](Sample& s) {
         weight(s, "v") = tensor_meta(7, {1LL << 61, 4}, {0, 0});
       },
       {"config.v", "too large"}},
      {[&](Sample& s) { weight(s, "v") = tensor_meta(7, {1LL << 40}, {0}); }, {"config.v: is a view that repeats"}},
      {[&](Sample& s) {
         weight(s, "v") = tensor_meta(7, {2, -1}, {3, 1});
       },
       {"config.v: has a symbol in its sizes"}},
      {[&](Sample& s) {
         weight(s, "v") = tensor_meta(7, {2, 2}, {3});
       },
       {"strides: has 1 numbers for 2 sizes"}},
      {[&](Sample& s) { weight(s, "v")["strides"][0]["as_int"] = -3; }, {"strides[0].as_int: is -3, but must be 0 or"}},
      {[&](Sample& s) { weight(s, "v")["layout"] = 1; }, {"tensor_meta.layout: is the layout 1", "to_dense"}},
      {[&](Sample& s) { weight(s, "v")["dtype"] = 29; }, {"tensor_meta.dtype", "float of 8 bits"}},
      {[&](Sample& s) { weight(s, "v")["dtype"] = 14; }, {"tensor_meta.dtype: is 14, which is no dtype"}},
      {[](Sample& s) { s.zip["net/data/weights/weight_2"] = ""; }, {"which has 0", "FakeTensorMode"}},
      {[](Sample& s) { s.weights["config"]["v"]["tensor_meta"] = nullptr; }, {"tensor_meta: should be an object"}},
  });
}

TEST(Read, NumbersWithoutArraysAreReadButNotTensorsOfThem) {
  Sample sample;
  sample.constants["config"]["z"] = payload("tensor_1", false, tensor_meta(10, {0}));
  MemoryDisk disk;
  disk.put("net.pt2", sample.bytes());
  const Program program = read_program(disk, "net.pt2");
  EXPECT_THAT(refusal([&] { read_tensor(disk, program, program.constants.at("z")); }), HasSubstr("holds complex64"));
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
