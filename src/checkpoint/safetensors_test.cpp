#include "checkpoint/safetensors.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <span>

#include "base/faulty_disk.h"
#include "checkpoint/checkpoint.h"
#include "checkpoint/samples.h"

namespace sinew::checkpoint {
namespace {

std::vector<std::byte> file_of(const std::string& header, size_t data = 0) {
  std::vector<std::byte> file(8 + header.size() + data);
  const uint64_t size = header.size();
  std::memcpy(file.data(), &size, 8);
  std::memcpy(file.data() + 8, header.data(), header.size());
  return file;
}

std::vector<std::byte> file_of(const std::vector<TensorBytes>& tensors, const Metadata& metadata) {
  std::vector<std::byte> file;
  put_safetensors(tensors, metadata,
                  [&](std::span<const std::byte> bytes) { file.insert(file.end(), bytes.begin(), bytes.end()); });
  return file;
}

std::string text_of(std::span<const std::byte> bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

std::string random_name(RandomStream& random) {
  const char* pieces[] = {"layer", ".",        "weight",           "\"", "\\", "\n", "\x01",
                          "\x7f",  "\xc3\xa9", "\xf0\x9f\x99\x82", " ",  "/",  "0"};
  std::string name;
  for (uint64_t i = random.below(6); i > 0; --i) name += pieces[random.below(std::size(pieces))];
  return name;
}

// The stock library writes the expected bytes for these tensors (serialize_file of 0.8). So Sinew must use the same
// order, spacing and padding.
TEST(Safetensors, WritesTheBytesOfTheStockLibrary) {
  Tensors tensors;
  for (const DType dtype : kAllDTypes) tensors.add(std::string(name_of(dtype)), dtype, {1}, {1});
  const std::string expected =
      R"({"__metadata__":{"format":"pt"},"i64":{"dtype":"I64","shape":[1],"data_offsets":[0,8]},)"
      R"("f64":{"dtype":"F64","shape":[1],"data_offsets":[8,16]},"f32":{"dtype":"F32","shape":[1],"data_offsets":[16,20]},)"
      R"("i32":{"dtype":"I32","shape":[1],"data_offsets":[20,24]},"bf16":{"dtype":"BF16","shape":[1],"data_offsets":[24,26]},)"
      R"("f16":{"dtype":"F16","shape":[1],"data_offsets":[26,28]},"i16":{"dtype":"I16","shape":[1],"data_offsets":[28,30]},)"
      R"("i8":{"dtype":"I8","shape":[1],"data_offsets":[30,31]},"u8":{"dtype":"U8","shape":[1],"data_offsets":[31,32]},)"
      R"("bool":{"dtype":"BOOL","shape":[1],"data_offsets":[32,33]}})";
  const auto header = safetensors_header(tensors.borrowed(), {{"format", "pt"}});
  EXPECT_EQ(header.size() % 8, 0U);
  std::string json = text_of(std::span(header).subspan(8));
  json.resize(json.find_last_not_of(' ') + 1);
  EXPECT_EQ(json, expected);
  EXPECT_EQ(text_of(safetensors_header({}, {})).substr(8), "{}      ");
}

TEST(Safetensors, AnyTensorsAreReadBackAsWritten) {
  RandomStream random(random_key({1}));
  FaultyDisk disk;
  for (int i = 0; i < 500; ++i) {
    Tensors tensors;
    std::map<std::string, TensorBytes> expected;
    for (uint64_t n = random.below(12); n > 0; --n) {
      const std::string name = random_name(random);
      if (expected.contains(name)) continue;
      Shape shape;
      for (uint64_t d = random.below(4); d > 0; --d) shape.push_back(static_cast<int64_t>(random.below(6)));
      tensors.add(name, kAllDTypes[random.below(std::size(kAllDTypes))], shape, {random.bits64()});
      expected[name] = tensors.borrowed().back();
    }
    Metadata metadata;
    for (uint64_t n = random.below(3); n > 0; --n) metadata[random_name(random)] = random_name(random);
    write_safetensors(disk, "file", tensors.borrowed(), metadata);
    const auto file = read_safetensors(disk, "file");
    ASSERT_TRUE(file) << file.error();
    ASSERT_EQ(file->metadata, metadata);
    ASSERT_EQ(file->tensors.size(), expected.size());
    for (const auto& [name, tensor] : expected) {
      const Array& array = file->tensors.at(name);
      ASSERT_EQ(array.dtype, tensor.dtype);
      ASSERT_EQ(array.shape, tensor.shape);
      ASSERT_TRUE(std::equal(tensor.bytes.begin(), tensor.bytes.end(), array.bytes.data(),
                             array.bytes.data() + array.bytes.size()));
    }
    // The offsets in the index must lead to the same bytes.
    const auto bytes = disk.read("file");
    const auto index = parse_safetensors(bytes);
    ASSERT_TRUE(index) << index.error();
    for (const TensorEntry& entry : index->tensors) {
      const auto there = std::span(bytes).subspan(index->data_offset + entry.begin, entry.end - entry.begin);
      ASSERT_TRUE(std::ranges::equal(there, expected.at(entry.name).bytes));
    }
  }
}

// The format has no checksum, so a reader cannot notice damage inside the data (a checkpoint's manifest does). But the
// reader must never take bytes from outside of the file, and damage inside one tensor's data must change only that
// tensor.
void damage_and_read(uint64_t seed, int cases) {
  const Sample sample(3, 200);
  const auto good = file_of(sample.snapshot().parts.at("model"), {{"a", "b"}});
  const auto index = parse_safetensors(good);
  ASSERT_TRUE(index);
  FaultyDisk disk;
  const auto read = [&](const std::vector<std::byte>& bytes) {
    const auto file = disk.create("file");
    file->write(bytes);
    file->close();
    return read_safetensors(disk, "file");
  };
  const auto wanted = read(good);
  ASSERT_TRUE(wanted);
  const auto same = [](const Array& a, const Array& b) {
    return std::equal(a.bytes.data(), a.bytes.data() + a.bytes.size(), b.bytes.data(), b.bytes.data() + b.bytes.size());
  };
  RandomStream random(random_key({20261124, seed}));
  int refused = 0;
  for (int i = 0; i < cases; ++i) {
    auto bytes = good;
    const bool in_header = random.below(4) != 0;
    const size_t from = in_header ? 0 : index->data_offset, until = in_header ? index->data_offset : bytes.size();
    const size_t at = from + random.below(until - from);
    if (random.below(8) == 0)
      bytes.resize(at);
    else if (random.below(2) == 0)
      bytes[at] = static_cast<std::byte>(random.below(256));
    else
      bytes[at] ^= static_cast<std::byte>(1U << random.below(8));
    const auto found = read(bytes);
    refused += !found;
    if (!found) continue;
    size_t other = 0;
    for (const auto& [name, array] : found->tensors) {
      ASSERT_EQ(array.bytes.size(), static_cast<size_t>(element_count(array.shape)) * size_of(array.dtype)) << i;
      const auto known = wanted->tensors.find(name);
      other += known == wanted->tensors.end() || known->second.shape != array.shape ||
               known->second.dtype != array.dtype || !same(known->second, array);
    }
    ASSERT_EQ(found->tensors.size(), wanted->tensors.size()) << i;
    ASSERT_LE(other, 1U) << i;
  }
  EXPECT_GT(refused, cases / 3);
}

TEST(Safetensors, DamageIsRefusedOrStaysInOneTensor) {
  damage_and_read(1, 2000);
}
TEST(LongSafetensors, DamageIsRefusedOrStaysInOneTensor) {
  if (std::getenv("SINEW_LONG") == nullptr) GTEST_SKIP();
  damage_and_read(2, 10'000);
}

TEST(Safetensors, TheSinkAcceptsPiecesOfAnySize) {
  const Sample sample(3, 5000);
  const auto file = file_of(sample.snapshot().parts.at("model"), {{"a", "b"}});
  for (const size_t piece : {1, 3, 7, 8, 9, 100, 4096, 100'000}) {
    TensorSink sink(file.size(), true);
    for (size_t at = 0; at < file.size(); at += piece)
      sink.take(std::span(file).subspan(at, std::min(piece, file.size() - at)));
    const auto result = sink.finish();
    ASSERT_TRUE(result) << result.error();
    ASSERT_EQ(result->tensors.size(), sample.snapshot().parts.at("model").size());
    for (const TensorBytes& tensor : sample.snapshot().parts.at("model")) {
      ASSERT_TRUE(std::equal(tensor.bytes.begin(), tensor.bytes.end(), result->tensors.at(tensor.name).bytes.data()));
    }
  }
  TensorSink early(file.size(), true);
  early.take(std::span(file).first(file.size() - 1));
  EXPECT_FALSE(early.finish());
}

struct Malformed {
  const char* why;
  std::string header;
  size_t data;
};

std::string entry(const char* fields) {
  return std::string("{\"a\":{") + fields + "}}";
}

std::vector<Malformed> malformed() {
  return {
      {"hole", entry(R"("dtype":"U8","shape":[4],"data_offsets":[4,8])"), 8},
      {"trailing bytes", entry(R"("dtype":"U8","shape":[4],"data_offsets":[0,4])"), 5},
      {"cut off", entry(R"("dtype":"U8","shape":[4],"data_offsets":[0,4])"), 3},
      {"overlap",
       R"({"a":{"dtype":"U8","shape":[4],"data_offsets":[0,4]},"b":{"dtype":"U8","shape":[4],"data_offsets":[2,6]}})",
       6},
      {"hole between",
       R"({"a":{"dtype":"U8","shape":[2],"data_offsets":[0,2]},"b":{"dtype":"U8","shape":[2],"data_offsets":[3,5]}})",
       5},
      {"same bytes twice",
       R"({"a":{"dtype":"U8","shape":[4],"data_offsets":[0,4]},"b":{"dtype":"U8","shape":[4],"data_offsets":[0,4]}})",
       4},
      {"end before begin", entry(R"("dtype":"U8","shape":[4],"data_offsets":[4,0])"), 4},
      {"shape too large", entry(R"("dtype":"F32","shape":[2],"data_offsets":[0,4])"), 4},
      {"shape too small", entry(R"("dtype":"F32","shape":[0],"data_offsets":[0,4])"), 4},
      {"count overflows to 0", entry(R"("dtype":"U8","shape":[4294967296,4294967296],"data_offsets":[0,0])"), 0},
      {"bytes overflow to 0", entry(R"("dtype":"F64","shape":[2305843009213693952],"data_offsets":[0,0])"), 0},
      {"bytes overflow to 4", entry(R"("dtype":"F32","shape":[4611686018427387905],"data_offsets":[0,4])"), 4},
      {"overflow before a zero", entry(R"("dtype":"U8","shape":[9223372036854775807,4,0],"data_offsets":[0,0])"), 0},
      {"dimension over 2^63", entry(R"("dtype":"U8","shape":[0,9223372036854775808],"data_offsets":[0,0])"), 0},
      {"dimension over 2^64", entry(R"("dtype":"U8","shape":[0,18446744073709551616],"data_offsets":[0,0])"), 0},
      {"offset over 2^64", entry(R"("dtype":"U8","shape":[4],"data_offsets":[0,18446744073709551620])"), 4},
      {"huge offsets", entry(R"("dtype":"U8","shape":[4],"data_offsets":[18446744073709551612,18446744073709551615])"),
       4},
      {"negative dimension", entry(R"("dtype":"U8","shape":[-4],"data_offsets":[0,4])"), 4},
      {"minus zero", entry(R"("dtype":"U8","shape":[-0],"data_offsets":[0,0])"), 0},
      {"fraction", entry(R"("dtype":"U8","shape":[4.0],"data_offsets":[0,4])"), 4},
      {"exponent", entry(R"("dtype":"U8","shape":[4e0],"data_offsets":[0,4])"), 4},
      {"text for a number", entry(R"("dtype":"U8","shape":["4"],"data_offsets":[0,4])"), 4},
      {"nested shape", entry(R"("dtype":"U8","shape":[[4]],"data_offsets":[0,4])"), 4},
      {"shape is a number", entry(R"("dtype":"U8","shape":4,"data_offsets":[0,4])"), 4},
      {"one offset", entry(R"("dtype":"U8","shape":[4],"data_offsets":[4])"), 4},
      {"three offsets", entry(R"("dtype":"U8","shape":[4],"data_offsets":[0,4,4])"), 4},
      {"no dtype", entry(R"("shape":[4],"data_offsets":[0,4])"), 4},
      {"no shape", entry(R"("dtype":"U8","data_offsets":[0,4])"), 4},
      {"no offsets", entry(R"("dtype":"U8","shape":[4])"), 4},
      {"dtype twice", entry(R"("dtype":"U8","dtype":"U8","shape":[4],"data_offsets":[0,4])"), 4},
      {"unknown field", entry(R"("dtype":"U8","shape":[4],"data_offsets":[0,4],"strides":[1])"), 4},
      {"unknown dtype", entry(R"("dtype":"F128","shape":[4],"data_offsets":[0,4])"), 4},
      {"dtype sinew has no arrays of", entry(R"("dtype":"F8_E4M3","shape":[4],"data_offsets":[0,4])"), 4},
      {"lower case dtype", entry(R"("dtype":"u8","shape":[4],"data_offsets":[0,4])"), 4},
      {"dtype is a number", entry(R"("dtype":1,"shape":[4],"data_offsets":[0,4])"), 4},
      {"null entry", R"({"a":null})", 0},
      {"array entry", R"({"a":["U8",[4],[0,4]]})", 4},
      {"name twice",
       R"({"a":{"dtype":"U8","shape":[0],"data_offsets":[0,0]},"a":{"dtype":"U8","shape":[0],"data_offsets":[0,0]}})",
       0},
      {"same name by escape",
       R"({"a":{"dtype":"U8","shape":[0],"data_offsets":[0,0]},"\u0061":{"dtype":"U8","shape":[0],"data_offsets":[0,0]}})",
       0},
      {"metadata number", R"({"__metadata__":{"a":1}})", 0},
      {"metadata null value", R"({"__metadata__":{"a":null}})", 0},
      {"metadata nested", R"({"__metadata__":{"a":{"b":"c"}}})", 0},
      {"metadata array", R"({"__metadata__":["a"]})", 0},
      {"metadata text", R"({"__metadata__":"a"})", 0},
      {"metadata key twice", R"({"__metadata__":{"a":"b","a":"b"}})", 0},
      {"metadata twice", R"({"__metadata__":{},"__metadata__":{}})", 0},
      {"array", "[]", 0},
      {"nothing", "", 0},
      {"blanks only", "        ", 0},
      {"leading blank", " {}", 0},
      {"byte order mark", "\xef\xbb\xbf{}", 0},
      {"zero padding", std::string("{}\0\0\0\0\0\0", 8), 0},
      {"hidden behind a zero", std::string("{}\0{\"a\":1}", 10), 0},
      {"two documents", "{}{}", 0},
      {"comma", R"({"__metadata__":{},})", 0},
      {"comment", "{/* */}", 0},
      {"cut JSON", R"({"a":{"dtype":"U8")", 0},
      {"bad UTF-8", "{\"\xff\":{\"dtype\":\"U8\",\"shape\":[0],\"data_offsets\":[0,0]}}", 0},
      {"overlong UTF-8", "{\"\xc0\x80\":{\"dtype\":\"U8\",\"shape\":[0],\"data_offsets\":[0,0]}}", 0},
      {"surrogate in UTF-8", "{\"\xed\xa0\x80\":{\"dtype\":\"U8\",\"shape\":[0],\"data_offsets\":[0,0]}}", 0},
      {"lone surrogate", R"({"\ud800":{"dtype":"U8","shape":[0],"data_offsets":[0,0]}})", 0},
      {"raw control character", "{\"a\nb\":{\"dtype\":\"U8\",\"shape\":[0],\"data_offsets\":[0,0]}}", 0},
      {"deep arrays", "{\"a\":" + std::string(1'000'000, '['), 0},
      {"deep objects",
       [] {
         std::string s;
         for (int i = 0; i < 200'000; ++i) s += "{\"a\":";
         return s;
       }(),
       0},
  };
}

TEST(Safetensors, RefusesEverythingTheFormatForbids) {
  for (const auto& [why, header, data] : malformed()) {
    const auto file = file_of(header, data);
    const auto index = parse_safetensors(file);
    EXPECT_FALSE(index) << why;
    if (!index) {
      EXPECT_FALSE(index.error().empty()) << why;
      EXPECT_LT(index.error().size(), 600U) << why;
    }
    TensorSink sink(file.size(), true);
    sink.take(file);
    EXPECT_FALSE(sink.finish()) << why;
  }
}

TEST(Safetensors, AShapeHasAtMost64Dimensions) {
  for (const size_t dimensions : {1, 64, 65}) {
    std::string shape = "1";
    for (size_t i = 1; i < dimensions; ++i) shape += ",1";
    const std::string fields = R"("dtype":"U8","shape":[)" + shape + R"(],"data_offsets":[0,1])";
    EXPECT_EQ(parse_safetensors(file_of(entry(fields.c_str()), 1)).has_value(), dimensions <= 64) << dimensions;
  }
}

TEST(Safetensors, AcceptsWhatTheFormatAllows) {
  const Malformed allowed[] = {
      {"nothing", "{}", 0},
      {"null metadata", R"({"__metadata__":null})", 0},
      {"trailing blanks of all kinds", "{} \n\t\r ", 0},
      {"unpadded", entry(R"("dtype":"U8","shape":[4],"data_offsets":[0,4])"), 4},
      {"spaced", "{ \"a\" : { \"shape\" : [ 4 ] , \"data_offsets\" : [ 0 , 4 ] , \"dtype\" : \"U8\" } }", 4},
      {"empty name", R"({"":{"dtype":"U8","shape":[4],"data_offsets":[0,4]}})", 4},
      {"zero in a name", R"({"\u0000":{"dtype":"U8","shape":[4],"data_offsets":[0,4]}})", 4},
      {"scalar", entry(R"("dtype":"F64","shape":[],"data_offsets":[0,8])"), 8},
      {"huge beside zero", entry(R"("dtype":"U8","shape":[0,9223372036854775807],"data_offsets":[0,0])"), 0},
      {"any order",
       R"({"b":{"dtype":"U8","shape":[2],"data_offsets":[2,4]},"a":{"dtype":"U8","shape":[2],"data_offsets":[0,2]}})",
       4},
      {"empty ones at the same place",
       R"({"b":{"dtype":"U8","shape":[0],"data_offsets":[0,0]},"a":{"dtype":"U8","shape":[2],"data_offsets":[0,2]},"c":{"dtype":"F64","shape":[0],"data_offsets":[2,2]}})",
       2},
      {"unaligned",
       R"({"a":{"dtype":"U8","shape":[1],"data_offsets":[0,1]},"b":{"dtype":"F64","shape":[1],"data_offsets":[1,9]}})",
       9},
  };
  for (const auto& [what, header, data] : allowed) {
    const auto file = file_of(header, data);
    const auto index = parse_safetensors(file);
    EXPECT_TRUE(index) << what << ": " << index.error();
    TensorSink sink(file.size(), true);
    sink.take(file);
    EXPECT_TRUE(sink.finish()) << what;
  }
}

TEST(Safetensors, RefusesImpossibleHeaderLengths) {
  for (const uint64_t length :
       {uint64_t{1}, uint64_t{9}, uint64_t{100'000'001}, uint64_t{1} << 62, ~uint64_t{0}, ~uint64_t{0} - 7}) {
    std::vector<std::byte> file(16);
    std::memcpy(file.data(), &length, 8);
    EXPECT_FALSE(parse_safetensors(file)) << length;
    TensorSink sink(file.size(), true);
    sink.take(file);
    EXPECT_FALSE(sink.finish()) << length;
  }
  for (size_t size = 0; size < 8; ++size) EXPECT_FALSE(parse_safetensors(std::vector<std::byte>(size)));
}

TEST(Safetensors, DoesNotWriteWhatItWouldNotRead) {
  FaultyDisk disk;
  const auto refused = [&](const char* first, const char* second, const Metadata& metadata) {
    Tensors tensors;
    tensors.add(first, DType::u8, {1}, {1});
    tensors.add(second, DType::u8, {1}, {1});
    try {
      write_safetensors(disk, "file", tensors.borrowed(), metadata);
      ADD_FAILURE() << first << second;
    } catch (const Error& error) {
      EXPECT_EQ(error.code, ErrorCode("SAFETENSORS_BAD_NAME")) << error.what();
    }
    EXPECT_TRUE(disk.list("").empty()) << "left something";
  };
  refused("a", "a", {});
  refused("__metadata__", "a", {});
  refused("\xff", "a", {});
  refused("a", "b", {{"\xff", "x"}});
}

TEST(Safetensors, AReadErrorNamesThePath) {
  FaultyDisk disk;
  EXPECT_NE(read_safetensors(disk, "none").error().find("none"), std::string::npos);
  disk.create("bad")->close();
  EXPECT_TRUE(read_safetensors(disk, "bad").error().starts_with("bad: "));
}

}  // namespace
}  // namespace sinew::checkpoint
