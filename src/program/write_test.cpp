// Tests that a written program has the new values and every other byte of the old file. Also tests that the file
// appears whole or not at all.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>

#include "base/expected_error.h"
#include "base/random.h"
#include "program/sample_model.h"

namespace sinew::program {
namespace {

using testing::ElementsAre;

Array array_of(Shape shape, const std::vector<float>& numbers) {
  Array array(DType::f32, std::move(shape));
  std::memcpy(array.bytes.data(), numbers.data(), numbers.size() * sizeof(float));
  return array;
}

struct World {
  MemoryDisk disk;
  std::string before;
  Program program;

  explicit World(const Sample& sample = Sample()) : before(sample.bytes()) {
    disk.put("net.pt2", before);
    program = read_program(disk, "net.pt2");
  }
  std::vector<float> floats(const char* path, const char* name) {
    const Program other = read_program(disk, path);
    const Array array = read_tensor(disk, other, other.weights.at(name));
    return {array.as<float>(), array.as<float>() + array.count()};
  }
};

TEST(Write, WritesTheSameFileWithoutReplacements) {
  for (const bool plain : {false, true}) {
    Sample sample;
    sample.zip.plain = plain;
    World world(sample);
    write_program(world.disk, world.program, {}, "copy.pt2");
    EXPECT_EQ(world.disk.get("copy.pt2"), world.before);
  }
}

TEST(Write, ChangesOnlyTheReplacedValues) {
  for (const bool plain : {false, true}) {
    Sample sample, expected;
    sample.zip.plain = expected.zip.plain = plain;
    World world(sample);
    const Array w = array_of({2, 3}, {10, 20, 30, 40, 50, 60}), v = array_of({2, 2}, {-1, -2, -3, -4});
    Array n(DType::i64, {});
    *n.as<int64_t>() = 99;
    write_program(world.disk, world.program, {{"w", &w}, {"v", &v}, {"n", &n}}, "copy.pt2");
    // The copy equals a file that was built with the new values: checksums, offsets and everything else.
    expected.zip["net/data/weights/weight_0"] = packed<float>({10, 20, 30, 40, 50, 60});
    expected.zip["net/data/weights/weight_1"] = packed<int64_t>({99});
    expected.zip["net/data/weights/weight_2"] = packed<float>({0, 1, 2, 3, -1, -2, 6, -3, -4});
    EXPECT_EQ(world.disk.get("copy.pt2"), expected.bytes());
    EXPECT_THAT(world.floats("copy.pt2", "t"), ElementsAre(10, 40, 20, 50, 30, 60));  // tied
    EXPECT_EQ(world.disk.get("net.pt2"), world.before);
  }
}

TEST(Write, WritesAStridedTensorByItsStrides) {
  World world;
  const Array t = array_of({3, 2}, {1.5, 4.5, 2.5, 5.5, 3.5, 6.5});
  write_program(world.disk, world.program, {{"t", &t}}, "copy.pt2");
  EXPECT_THAT(world.floats("copy.pt2", "w"), ElementsAre(1.5, 2.5, 3.5, 4.5, 5.5, 6.5));
}

TEST(Write, ReplacesItsOwnFile) {
  World world;
  const Array w = array_of({2, 3}, {10, 20, 30, 40, 50, 60});
  write_program(world.disk, world.program, {{"w", &w}}, "net.pt2");
  EXPECT_THAT(world.floats("net.pt2", "w"), ElementsAre(10, 20, 30, 40, 50, 60));
  // The program was read before the write, so it no longer matches the file.
  const std::vector<Replacement> again = {{"w", &w}};
  EXPECT_ERROR(error_of([&] { write_program(world.disk, world.program, again, "net.pt2"); }), "PROGRAM_FILE_CHANGED",
               "net.pt2");
  EXPECT_ERROR(error_of([&] { read_tensor(world.disk, world.program, world.program.weights.at("w")); }),
               "PROGRAM_DAMAGED_FILE", "weight_0");
}

TEST(Write, TiedReplacementsMustAgree) {
  World world;
  const Array w = array_of({2, 3}, {10, 20, 30, 40, 50, 60}), same = array_of({3, 2}, {10, 40, 20, 50, 30, 60}),
              other = array_of({3, 2}, {10, 40, 20, 50, 30, 61});
  write_program(world.disk, world.program, {{"w", &w}, {"t", &same}}, "copy.pt2");
  EXPECT_THAT(world.floats("copy.pt2", "w"), ElementsAre(10, 20, 30, 40, 50, 60));
  const std::vector<Replacement> differing = {{"w", &w}, {"t", &other}};
  const std::string refused = error_of([&] { write_program(world.disk, world.program, differing, "other.pt2"); });
  EXPECT_ERROR(refused, "PROGRAM_BAD_REPLACEMENT", "values of 't'");
  EXPECT_ERROR(refused, "PROGRAM_BAD_REPLACEMENT", "'net/data/weights/weight_0'");
  EXPECT_THAT(world.disk.names(), ElementsAre("copy.pt2", "net.pt2"));  // no partial file is left
}

TEST(Weights, ShareBytesOnlyIfTheyOverlap) {
  Sample sample;
  sample.weights["config"]["even"] = payload("weight_2", false, tensor_meta(7, {3}, {2}));
  sample.weights["config"]["odd"] = payload("weight_2", false, tensor_meta(7, {3}, {2}, 1));
  sample.weights["config"]["halves"] = payload("weight_2", false, tensor_meta(6, {1}, {1}, 3));
  sample.weights["config"]["none"] = payload("weight_2", false, tensor_meta(7, {0}, {1}, 1));
  const Program program = sample.read();
  const auto share = [&](const char* a, const char* b) {
    const bool found = share_bytes(program.weights.at(a), program.weights.at(b));
    EXPECT_EQ(found, share_bytes(program.weights.at(b), program.weights.at(a)));
    return found;
  };
  EXPECT_TRUE(share("w", "w"));
  EXPECT_TRUE(share("w", "t"));
  EXPECT_FALSE(share("w", "v")) << "another member";
  EXPECT_TRUE(share("even", "v"));
  EXPECT_FALSE(share("even", "odd"));
  EXPECT_TRUE(share("odd", "halves")) << "a float16 inside a float32";
  EXPECT_FALSE(share("even", "halves"));
  EXPECT_FALSE(share("none", "odd"));
}

TEST(Weights, AnExpandedTensorRepeatsItsElements) {
  EXPECT_TRUE(may_repeat_elements({3}, {0}));
  EXPECT_TRUE(may_repeat_elements({2, 3}, {1, 1}));
  EXPECT_FALSE(may_repeat_elements({2, 3}, {3, 1}));
  EXPECT_FALSE(may_repeat_elements({3, 2}, {1, 3}));
  EXPECT_FALSE(may_repeat_elements({1, 4}, {0, 1}));
  EXPECT_FALSE(may_repeat_elements({0, 4}, {0, 0}));
  EXPECT_FALSE(may_repeat_elements({}, {}));
}

TEST(Write, RepeatedElementsOfAViewMustAgree) {
  Sample sample;
  sample.weights["config"]["r"] = payload("weight_2", false, tensor_meta(7, {2, 3}, {0, 1}, 2));
  World world(sample);
  const Array good = array_of({2, 3}, {1, 2, 3, 1, 2, 3}), bad = array_of({2, 3}, {1, 2, 3, 1, 2, 4});
  write_program(world.disk, world.program, {{"r", &good}}, "copy.pt2");
  EXPECT_THAT(world.floats("copy.pt2", "r"), ElementsAre(1, 2, 3, 1, 2, 3));
  const std::vector<Replacement> differing = {{"r", &bad}};
  EXPECT_ERROR(error_of([&] { write_program(world.disk, world.program, differing, "copy.pt2"); }),
               "PROGRAM_BAD_REPLACEMENT", "values of 'r'");
}

TEST(Write, RefusesReplacementsThatDoNotFit) {
  World world;
  const Array w = array_of({2, 3}, {1, 2, 3, 4, 5, 6}), flat = array_of({6}, {1, 2, 3, 4, 5, 6});
  const Array doubles(DType::f64, {2, 3});
  const auto refused = [&](const std::vector<Replacement>& replacements) {
    const std::string text = error_of([&] { write_program(world.disk, world.program, replacements, "copy.pt2"); });
    EXPECT_THAT(world.disk.names(), ElementsAre("net.pt2"));
    return text;
  };
  const auto expect = [&](const std::vector<Replacement>& replacements, const char* mention) {
    EXPECT_ERROR(refused(replacements), "PROGRAM_BAD_REPLACEMENT", mention);
  };
  expect({{"unknown", &w}}, "'unknown'");
  expect({{"c", &w}}, "'c'");  // constants never change
  expect({{"w", &w}, {"w", &w}}, "'w' is replaced twice");
  expect({{"w", &doubles}}, "float32");
  expect({{"w", &flat}}, "another shape");
}

TEST(Write, DamagedMembersAreNotCopied) {
  World world;
  for (const std::string member : {"net/data/weights/weight_1", "net/data/constants/tensor_0"}) {
    Sample sample;
    std::string bytes = sample.bytes();
    MemoryDisk disk;
    disk.put("net.pt2", bytes);
    bytes[Archive(disk, "net.pt2").find(member)->begin] ^= 1;
    disk.put("net.pt2", bytes);
    const Program program = read_program(disk, "net.pt2");
    EXPECT_ERROR(error_of([&] { write_program(disk, program, {}, "copy.pt2"); }), "PROGRAM_DAMAGED_FILE",
                 "'" + member + "'");
    EXPECT_THAT(disk.names(), ElementsAre("net.pt2"));
  }
}

// Each disk call fails once, and at each call the machine stops once. Afterwards the target must be the old or the new
// file.
TEST(Write, AppearsWholeOrNotAtAll) {
  const Array w = array_of({2, 3}, {10, 20, 30, 40, 50, 60});
  World good;
  const int64_t begin = good.disk.calls;
  write_program(good.disk, good.program, {{"w", &w}}, "net.pt2");
  const int64_t calls = good.disk.calls - begin;
  const std::string after = good.disk.get("net.pt2");
  ASSERT_GT(calls, 20);
  ASSERT_NE(after, good.before);
  for (int64_t call = 1; call <= calls; ++call) {
    World failing;
    failing.disk.fail_at = failing.disk.calls + call;
    EXPECT_THROW(write_program(failing.disk, failing.program, {{"w", &w}}, "net.pt2"), DiskError) << call;
    const std::string left = failing.disk.get("net.pt2");
    EXPECT_TRUE(left == failing.before || left == after) << call;
    EXPECT_THAT(failing.disk.names(), ElementsAre("net.pt2")) << call;
    for (const bool names_survive : {false, true}) {
      World stopping;
      stopping.disk.stop_at = stopping.disk.calls + call;
      EXPECT_THROW(write_program(stopping.disk, stopping.program, {{"w", &w}}, "net.pt2"), Stopped) << call;
      stopping.disk.crash(names_survive);
      const std::string found = stopping.disk.get("net.pt2");
      EXPECT_TRUE(found == stopping.before || found == after) << call;
      EXPECT_NO_THROW(read_program(stopping.disk, "net.pt2")) << call;
    }
  }
  good.disk.crash(false);
  EXPECT_EQ(good.disk.get("net.pt2"), after);  // after write_program has returned, the file is durable
}

// Members and checksums lie across the ends of the pieces in which the file is copied.
TEST(Write, CopiesLargeMembersInPieces) {
  Sample sample, expected;
  const int64_t count = 700'001;
  for (Sample* s : {&sample, &expected}) {
    s->weights["config"]["big"] = payload("weight_5", true, tensor_meta(7, {count}));
    s->zip.add("net/data/weights/weight_5", std::string(count * 4, '\1'));
    s->zip.add("net/data/weights/pad",
               std::string((1 << 20) - 300, 'x'));  // the next records lie across the end of a piece
    s->zip.add("net/data/weights/weight_6", std::string(8, '\2'));
  }
  World world(sample);
  Array big(DType::f32, {count});
  std::memset(big.bytes.data(), 3, big.bytes.size());
  write_program(world.disk, world.program, {{"big", &big}}, "copy.pt2");
  expected.zip["net/data/weights/weight_5"] = std::string(count * 4, '\3');
  EXPECT_TRUE(world.disk.get("copy.pt2") == expected.bytes());
  EXPECT_EQ(world.floats("copy.pt2", "big").size(), static_cast<size_t>(count));
}

// For any strides, reading must follow the definition. Writing the values that were read must change nothing.
TEST(Write, AnyViewIsWrittenBackUnchanged) {
  RandomStream random(random_key({2}));
  const auto draw = [&](uint64_t below) { return random.below(below); };
  for (int i = 0; i < 300; ++i) {
    Sample sample;
    std::string bytes(4 * 200, '\0');
    for (char& c : bytes) c = static_cast<char>(draw(256));
    sample.zip["net/data/weights/weight_5"] = bytes;
    std::vector<int64_t> sizes(draw(4)), strides;
    for (int64_t& size : sizes) {
      size = static_cast<int64_t>(draw(4));
      strides.push_back(static_cast<int64_t>(draw(12)));
    }
    const auto offset = static_cast<int64_t>(draw(50));
    sample.weights["config"]["any"] = payload("weight_5", true, tensor_meta(7, sizes, strides, offset));
    World world(sample);
    const Array any = read_tensor(world.disk, world.program, world.program.weights.at("any"));
    for (int64_t at = 0; at < any.count(); ++at) {
      int64_t left = at, element = offset;
      for (size_t d = sizes.size(); d-- > 0; left /= sizes[d]) element += left % sizes[d] * strides[d];
      ASSERT_EQ(std::memcmp(any.as<float>() + at, bytes.data() + element * 4, 4), 0);
    }
    write_program(world.disk, world.program, {{"any", &any}}, "copy.pt2");
    ASSERT_TRUE(world.disk.get("copy.pt2") == world.before);
  }
}

}  // namespace
}  // namespace sinew::program
