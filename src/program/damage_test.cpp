// Tests that a file with any damage gives an Error or a program equal to the original, and never anything else.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>

#include "base/error.h"
#include "base/random.h"
#include "program/dump.h"
#include "program/sample_model.h"

namespace sinew::program {
namespace {

// Returns the whole content of a program with its tensors, as text.
std::string all_of(MemoryDisk& disk) {
  const Program program = read_program(disk, "net.pt2");
  std::string all = Dump::of(program);
  for (const auto* stored : {&program.weights, &program.constants}) {
    for (const auto& [name, tensor] : *stored) {
      const Array array = read_tensor(disk, program, tensor);
      all.append(reinterpret_cast<const char*>(array.bytes.data()), array.bytes.size());
    }
  }
  return all;
}

class Damage : public testing::Test {
 protected:
  // Returns whether the file was accepted.
  bool judge(const std::string& bytes) {
    disk_.put("net.pt2", bytes);
    try {
      EXPECT_EQ(all_of(disk_), good_);
      return true;
    } catch (const Error& error) {
      EXPECT_FALSE(std::string(error.what()).empty());
      EXPECT_LT(std::string(error.what()).size(), 4000U);
      return false;
    }
  }

  MemoryDisk disk_;
  const std::string bytes_ = Sample().bytes();
  const std::string good_ = [this] {
    disk_.put("net.pt2", bytes_);
    return all_of(disk_);
  }();
};

TEST_F(Damage, EveryTruncationIsRefused) {
  for (size_t size = 0; size < bytes_.size(); size += size < 500 ? 1 : 7)
    EXPECT_FALSE(judge(bytes_.substr(0, size))) << size;
}

TEST_F(Damage, FlippedBits) {
  RandomStream random(random_key({1}));
  int taken = 0;
  constexpr int kCases = 4000;
  for (int i = 0; i < kCases; ++i) {
    std::string bytes = bytes_;
    for (uint64_t flips = 1 + random.below(3); flips > 0; --flips)
      bytes[random.below(bytes.size())] ^= static_cast<char>(1 << random.below(8));
    taken += judge(bytes);
  }
  EXPECT_LT(taken, kCases / 2);  // times, attributes and padding do not matter, but they are a minority of the bytes
}

// The records at the end are a small part of the file, but damage there can mislead the reader the most.
TEST_F(Damage, EveryByteOfTheRecords) {
  const size_t begin = bytes_.find("PK\1\2");
  for (size_t at = begin; at < bytes_.size(); ++at) {
    for (const int value : {0x00, 0x01, 0x7F, 0x80, 0xFF}) {
      std::string bytes = bytes_;
      bytes[at] = static_cast<char>(value);
      judge(bytes);
    }
  }
}

TEST_F(Damage, MovedPieces) {
  RandomStream random(random_key({3}));
  for (int i = 0; i < 1000; ++i) {
    std::string bytes = bytes_;
    const size_t from = random.below(bytes.size()), size = random.below(200);
    const std::string piece = bytes.substr(from, size);
    if (random.below(2) == 0) bytes.erase(from, size);
    bytes.insert(random.below(bytes.size()), piece);
    judge(bytes);
  }
}

// Does any kind of damage: flips bits, overwrites numbers of the records, cuts, moves and repeats pieces, zeroes
// blocks.
std::string damaged(std::string bytes, RandomStream& random) {
  for (uint64_t changes = 1 + random.below(3); changes > 0 && !bytes.empty(); --changes) {
    const size_t at = random.below(bytes.size()), size = std::min<size_t>(random.below(300), bytes.size() - at);
    switch (random.below(7)) {
      case 0: bytes[at] ^= static_cast<char>(1 << random.below(8)); break;
      case 1: bytes.resize(at); break;
      case 2: bytes.erase(at, size); break;
      case 3: bytes.insert(random.below(bytes.size()), bytes.substr(at, size)); break;
      case 4: std::fill_n(bytes.begin() + static_cast<std::ptrdiff_t>(at), size, '\0'); break;
      case 5: {  // a number of 1, 2, 4 or 8 bytes at one of its limits
        const size_t width = std::min<size_t>(size_t{1} << random.below(4), bytes.size() - at);
        for (size_t i = 0; i < width; ++i) bytes[at + i] = static_cast<char>(random.below(2) == 0 ? 0xFF : 0x7F);
        break;
      }
      default: bytes += bytes.substr(at, size);
    }
  }
  return bytes;
}

class LongDamage : public Damage {};
TEST_F(LongDamage, TenThousandOfAnyKind) {
  if (std::getenv("SINEW_LONG") == nullptr) GTEST_SKIP();
  RandomStream random(random_key({20261124}));
  int taken = 0;
  constexpr int kCases = 10'000;
  for (int i = 0; i < kCases; ++i) taken += judge(damaged(bytes_, random));
  EXPECT_LT(taken, kCases / 2);
}

TEST_F(Damage, AThousandOfAnyKind) {
  RandomStream random(random_key({20261125}));
  for (int i = 0; i < 1000; ++i) judge(damaged(bytes_, random));
}

// Collects all values of a JSON document. If a test changes one of them, the JSON is still well-formed, and no checksum
// can reveal the change.
void collect_values(TestJson& json, std::vector<TestJson*>& values) {
  values.push_back(&json);
  if (json.is_structured()) {
    for (TestJson& inner : json) collect_values(inner, values);
  }
}

void damage_values(uint64_t seed, int cases) {
  RandomStream random(random_key({seed}));
  const TestJson replacements[] = {nullptr,
                                   true,
                                   0,
                                   -1,
                                   8,
                                   1e300,
                                   "x",
                                   "",
                                   TestJson::array(),
                                   TestJson::object(),
                                   int64_t{9223372036854775807},
                                   {{"as_int", 1}},
                                   {{"as_none", true}},
                                   {{"as_name", "x"}},
                                   {{"name", "x"}},
                                   {{"as_tensor", {{"name", "x"}}}}};
  int taken = 0;
  for (int i = 0; i < cases; ++i) {
    Sample sample;
    TestJson& document = i % 4 == 0 ? sample.weights : i % 4 == 1 ? sample.constants : sample.model;
    for (uint64_t changes = 1 + random.below(2); changes > 0; --changes) {
      std::vector<TestJson*> values;
      collect_values(document, values);
      TestJson& value = *values[random.below(values.size())];
      const TestJson& other = *values[random.below(values.size())];
      value = random.below(3) == 0 ? TestJson(other) : TestJson(replacements[random.below(std::size(replacements))]);
    }
    MemoryDisk disk;
    disk.put("net.pt2", sample.bytes());
    try {
      EXPECT_FALSE(all_of(disk).empty());
      ++taken;
    } catch (const Error& error) {
      EXPECT_FALSE(error.hint.empty()) << error.what();
    }
  }
  EXPECT_LT(taken, cases / 2);
  EXPECT_GT(taken, 10);  // some numbers and names may change
}

TEST(DamagedJson, EndsInAnErrorOrAProgram) {
  damage_values(4, 1500);
}
TEST(LongDamagedJson, EndsInAnErrorOrAProgram) {
  if (std::getenv("SINEW_LONG") == nullptr) GTEST_SKIP();
  damage_values(5, 10'000);
}

}  // namespace
}  // namespace sinew::program
