// Tests the FLOPs of a program. Also tests files that are inspected without loading them: TorchScript archives and
// shared objects.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>
#include <zlib.h>

#include <fstream>
#include <functional>

#include "base/expected_error.h"
#include "program/sample_model.h"

namespace sinew::program {
namespace {

using testing::ElementsAre;

Dim fixed(int64_t size) {
  Dim dim;
  dim.fixed = size;
  return dim;
}
Dim written(const std::string& expression) {
  Dim dim;
  dim.expression = expression;
  return dim;
}

// A program with one node whose tensors have these shapes.
struct OneNode {
  Program program;

  Argument tensor(const std::vector<Dim>& sizes) {
    TensorMeta meta;
    meta.sizes = sizes;
    program.graph.values.push_back({"v" + std::to_string(program.graph.values.size()), ValueKind::tensor, meta});
    return {ValueRef{static_cast<ValueId>(program.graph.values.size()) - 1}};
  }
  double flops(const std::string& target, const std::vector<std::vector<Dim>>& inputs, const std::vector<Dim>& output,
               std::vector<NamedArgument> more = {}) {
    program = {};
    Node node;
    node.target = "torch.ops.aten." + target;
    for (const auto& sizes : inputs) node.inputs.push_back({"", tensor(sizes)});
    for (NamedArgument& argument : more) node.inputs.push_back(std::move(argument));
    node.outputs.push_back(tensor(output));
    program.graph.nodes.push_back(std::move(node));
    return flops_of(program).total;
  }
};

TEST(FlopsOf, CountsTheProducts) {
  OneNode one;
  const auto batch = written("Symbol('s77', positive=True, integer=True)");
  const auto tokens = written("Mul(Integer(16), Symbol('s77', positive=True, integer=True))");
  EXPECT_EQ(one.flops("linear.default", {{batch, fixed(8)}, {fixed(5), fixed(8)}}, {batch, fixed(5)}), 2 * 8 * 5);
  EXPECT_EQ(flops_of(one.program).symbols, std::vector<std::string>{"s77"});
  EXPECT_EQ(one.flops("mm.default", {{tokens, fixed(8)}, {fixed(8), fixed(5)}}, {tokens, fixed(5)}), 2 * 16 * 8 * 5);
  EXPECT_EQ(one.flops("addmm.default", {{fixed(5)}, {batch, fixed(8)}, {fixed(8), fixed(5)}}, {batch, fixed(5)}), 80);
  EXPECT_EQ(
      one.flops("conv2d.default", {{batch, fixed(3), fixed(8), fixed(8)}, {fixed(4), fixed(3), fixed(3), fixed(3)}},
                {batch, fixed(4), fixed(8), fixed(8)}),
      2 * 4 * 64 * 27);
  EXPECT_EQ(one.flops("conv_transpose2d.input",
                      {{batch, fixed(4), fixed(8), fixed(8)}, {fixed(4), fixed(2), fixed(2), fixed(2)}},
                      {batch, fixed(2), fixed(16), fixed(16)}),
            2 * 4 * 64 * 8);
  const std::vector<Dim> heads = {batch, fixed(2), fixed(10), fixed(4)};
  EXPECT_EQ(one.flops("scaled_dot_product_attention.default", {heads, heads, heads}, heads), 2 * (2 * 10 * 10 * 8));
  EXPECT_EQ(one.flops("relu.default", {heads}, heads), 0);
}

TEST(FlopsOf, ReportsWhatItCannotCount) {
  OneNode one;
  const auto odd = written("Function('f')(Symbol('u0'))");
  EXPECT_EQ(one.flops("mm.default", {{odd, odd}, {odd, fixed(5)}}, {odd, fixed(5)}), 0);
  EXPECT_EQ(flops_of(one.program).not_counted.at("aten.mm"), 1);
}

TEST(FlopsOf, InvalidExpressionsAreNotCounted) {
  OneNode one;
  const std::vector<std::string> texts = {"",
                                          "(",
                                          "Mul(",
                                          "Mul(Integer(2)",
                                          "Symbol('",
                                          "Integer(x)",
                                          "Add(,)",
                                          "))",
                                          "--",
                                          "Pow()",
                                          "Mul()x",
                                          "Symbol()",
                                          "FloorDiv(Integer(1), Integer(0))"};
  for (const std::string& text : texts) {
    one.flops("mm.default", {{fixed(2), written(text)}, {fixed(2), fixed(2)}}, {fixed(2), fixed(2)});
    EXPECT_EQ(flops_of(one.program).not_counted.size() + flops_of(one.program).by_operator.size(), 1U) << text;
  }
  std::string deep;
  for (int i = 0; i < 100000; ++i) deep += "Add(";
  EXPECT_EQ(one.flops("mm.default", {{fixed(2), written(deep)}, {fixed(2), fixed(2)}}, {fixed(2), fixed(2)}), 0);
}

TEST(FlopsOf, TheSampleHasProducts) {
  EXPECT_GT(flops_of(Sample().read()).total, 0);
}

// Writes these bytes to a file and reads it. Returns the Error as error_of() does.
std::string refused(const std::function<void(const std::string&)>& read, const std::string& bytes) {
  const std::string path = testing::TempDir() + "sinew-other-files-" + std::to_string(::getpid());
  std::ofstream(path, std::ios::binary) << bytes;
  const std::string text = error_of([&] { read(path); });
  std::remove(path.c_str());
  return text;
}

TEST(ScriptFiles, AreReadFromTheDirectory) {
  Zip zip;
  for (const char* name : {"net/data.pkl", "net/constants.pkl", "net/code/__torch__.py", "net/version"})
    zip[name] = name;
  zip["net/data/0"] = std::string(12, 'x');
  TorchScriptFile file;
  EXPECT_EQ(refused([&](const std::string& path) { file = read_torchscript_file(path); }, zip.bytes()), "");
  EXPECT_EQ(file.tensors, 1);
  EXPECT_EQ(file.tensor_bytes, 12U);
  EXPECT_THAT(file.code_files, ElementsAre("__torch__.py"));
  // An archive with other weights has the same digest of its code; an archive with other code has another digest.
  TorchScriptFile other;
  const auto read = [&](const std::string& path) { other = read_torchscript_file(path); };
  zip["net/data/0"] = std::string(12, 'y');
  refused(read, zip.bytes());
  EXPECT_EQ(other.code, file.code);
  zip["net/code/__torch__.py"] = "another";
  refused(read, zip.bytes());
  EXPECT_NE(other.code, file.code);
}

TEST(ScriptFiles, OtherArchivesAreNamed) {
  const auto read = [](const std::string& path) { read_torchscript_file(path); };
  EXPECT_ERROR(refused(read, Sample().bytes()), "TORCHSCRIPT_BAD_FILE", "is a .pt2");
  Zip zip;
  zip["net/data.pkl"] = "x";
  EXPECT_ERROR(refused(read, zip.bytes()), "TORCHSCRIPT_BAD_FILE", "torch.save wrote it");
  EXPECT_ERROR(refused(read, "not a zip file, though long enough for an end record"), "PROGRAM_BAD_ARCHIVE", "");
}

// Compresses without zlib's own header, as zip does.
std::string deflated(const std::string& text) {
  z_stream stream{};
  EXPECT_EQ(deflateInit2(&stream, 9, Z_DEFLATED, -MAX_WBITS, 8, Z_DEFAULT_STRATEGY), Z_OK);
  std::string out(text.size() + 1000, '\0');
  stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(text.data()));
  stream.avail_in = static_cast<uInt>(text.size());
  stream.next_out = reinterpret_cast<Bytef*>(out.data());
  stream.avail_out = static_cast<uInt>(out.size());
  EXPECT_EQ(deflate(&stream, Z_FINISH), Z_STREAM_END);
  out.resize(stream.total_out);
  deflateEnd(&stream);
  return out;
}

// A TorchScript archive with one compressed member.
struct ScriptZip {
  Zip zip;
  explicit ScriptZip(const std::string& code) {
    for (const char* name : {"net/data.pkl", "net/constants.pkl", "net/version"}) zip[name] = name;
    zip["net/data/0"] = std::string(70'000, 'x');
    zip.entries.push_back({"net/code/__torch__.py", deflated(code), 8, 0x0808, code, {}});
  }
  Zip::Entry& code() { return zip.entries.back(); }
  std::string check() const {
    return refused([](const std::string& path) { check_torchscript_file(path); }, zip.bytes());
  }
};

TEST(ScriptFiles, EveryByteIsCheckedBeforeLibtorchLoadsThem) {
  std::string code;  // in a text of one repeated letter, a changed bit of the compressed form may change nothing
  for (int i = 0; i < 40'000; ++i) code += std::to_string(i * i % 9973) + " ";
  ScriptZip good(code);
  EXPECT_EQ(good.check(), "");
  const std::string bytes = good.zip.bytes();
  const auto check = [](const std::string& path) { check_torchscript_file(path); };
  for (const char* name : {"net/data/0", "net/code/__torch__.py"}) {
    std::string damaged = bytes;
    damaged[damaged.find(name) + 120] ^= 1;  // inside the content, after the padding
    SCOPED_TRACE(name);
    EXPECT_ERROR(refused(check, damaged), "PROGRAM_DAMAGED_FILE", name);
  }
}

TEST(ScriptFiles, SizesThatLieAreRefused) {
  ScriptZip longer("a short text"), shorter("a short text"), bomb(std::string(100'000, '\0')), many("");
  longer.code().claimed = 100;
  EXPECT_ERROR(longer.check(), "PROGRAM_DAMAGED_FILE", "do not have the size");
  shorter.code().claimed = 5;
  EXPECT_ERROR(shorter.check(), "PROGRAM_DAMAGED_FILE", "do not have the size");
  bomb.code().claimed = 4'000'000'000;
  EXPECT_ERROR(bomb.check(), "PROGRAM_BAD_ARCHIVE", "more than its bytes can");
  for (int i = 0; i < 3; ++i) {
    many.zip.entries.push_back(
        {"net/code/" + std::to_string(i), std::string(200'000, 'z'), 8, 0x0808, "", kMaxUnpackedBytes / 2});
  }
  EXPECT_ERROR(many.check(), "PROGRAM_BAD_ARCHIVE", "more than 268435456 bytes");
  ScriptZip trailing("a short text");
  trailing.code().bytes += "more";
  EXPECT_ERROR(trailing.check(), "PROGRAM_DAMAGED_FILE", "__torch__.py");
}

TEST(ScriptFiles, MembersThatOccurTwiceOrOverlapAreRefused) {
  ScriptZip twice("x");
  twice.zip.add("net/data/0", "other weights");
  EXPECT_ERROR(twice.check(), "PROGRAM_BAD_ARCHIVE", "occurs twice");
  ScriptZip outside("x");
  outside.zip.add("net/../../etc/passwd", "x");
  EXPECT_ERROR(outside.check(), "PROGRAM_BAD_ARCHIVE", "'..'");
  // Two entries of the central directory name the same place in the file.
  ScriptZip overlap("x");
  overlap.zip.add("net/data/1", "abc");
  std::string bytes = overlap.zip.bytes();
  const size_t entry = bytes.find("net/data/1", bytes.find("PK\1\2"));
  const size_t other = bytes.find("net/data/0", bytes.find("PK\1\2"));
  bytes.replace(entry - 4, 4, bytes.substr(other - 4, 4));
  EXPECT_ERROR(refused([](const std::string& path) { read_torchscript_file(path); }, bytes), "PROGRAM_BAD_ARCHIVE", "");
}

TEST(LibraryInfo, IsReadFromSharedObjectsOnly) {
  const auto read = [](const std::string& path) { read_library_info(path); };
  EXPECT_ERROR(refused(read, "short"), "LIBRARY_BAD_FILE", "not a shared object");
  EXPECT_ERROR(refused(read, std::string(100, 'x')), "LIBRARY_BAD_FILE", "not a shared object");
  std::string elf =
      "\x7f"
      "ELF\x02\x01" +
      std::string(200, '\0');
  EXPECT_ERROR(refused(read, elf), "LIBRARY_BAD_FILE", "another kind of ELF file");
  elf[16] = 3;
  EXPECT_ERROR(refused(read, elf), "LIBRARY_BAD_FILE", "no table of sections");
}

}  // namespace
}  // namespace sinew::program
