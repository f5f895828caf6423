#include "spec/amounts.h"

#include <gtest/gtest.h>

#include <cmath>
#include <regex>

#include "base/random.h"

namespace sinew::spec {
namespace {

using Unit = Duration::Unit;

TEST(Duration, ReadsEveryUnit) {
  const std::pair<const char*, Duration> cases[] = {
      {"10ep", {10, Unit::epochs}},
      {"0.5ep", {0.5, Unit::epochs}},
      {"500st", {500, Unit::steps}},
      {"1.5kst", {1500, Unit::steps}},
      {"100ksp", {100000, Unit::samples}},
      {"7sp", {7, Unit::samples}},
      {"2Mtok", {2e6, Unit::tokens}},
      {"0.000000001Gtok", {1, Unit::tokens}},
      {"30m", {1800, Unit::seconds}},
      {"2h", {7200, Unit::seconds}},
      {"45s", {45, Unit::seconds}},
      {"1d", {86400, Unit::seconds}},
      {"1.5h", {5400, Unit::seconds}},
      {"0.1dur", {0.1, Unit::fraction}},
      {"1dur", {1, Unit::fraction}},
      {"1.001kst", {1001, Unit::steps}},
      {"999999999999999tok", {999999999999999, Unit::tokens}},
      {"007ep", {7, Unit::epochs}},
      {"3.000st", {3, Unit::steps}},
  };
  for (const auto& [text, duration] : cases) {
    const auto read = parse_duration(text);
    ASSERT_TRUE(read) << text;
    EXPECT_EQ(*read, duration) << text;
  }
}

TEST(Duration, RefusesEverythingElse) {
  for (const char* text : {"",          "10",
                           "ep",        "10 ep",
                           " 10ep",     "10ep ",
                           "-1ep",      "+1ep",
                           "1e3st",     "10EP",
                           "10epochs",  ".5ep",
                           "5.ep",      "1.5st",
                           "0.0001kst", "1.1dur",
                           "2dur",      "1kep",
                           "1km",       "1Ks",
                           "1,5ep",     "1_0ep",
                           "nanep",     "infs",
                           "0x1ep",     "1000000000000000st",
                           "1ep2",      "1eps",
                           "10\nep",    "1M",
                           "1G"}) {
    EXPECT_FALSE(parse_duration(text)) << text;
  }
  EXPECT_FALSE(parse_duration(std::string("1ep\0", 4)));
}

TEST(Duration, ReadsBackFromItsText) {
  RandomStream random(random_key({1}));
  for (int i = 0; i < 20000; ++i) {
    Duration duration;
    duration.unit = static_cast<Unit>(random.below(6));
    const bool counted =
        duration.unit == Unit::steps || duration.unit == Unit::samples || duration.unit == Unit::tokens;
    duration.amount = random.uniform() * std::pow(10, static_cast<double>(random.below(9)));
    if (duration.unit == Unit::fraction) duration.amount = random.uniform();
    if (counted) duration.amount = std::floor(duration.amount * (random.below(2) == 0 ? 1 : 1000));
    const std::string text = to_string(duration);
    const auto read = parse_duration(text);
    ASSERT_TRUE(read) << text;
    ASSERT_EQ(*read, duration) << text;
  }
}

TEST(Duration, IsWrittenInAReadableUnit) {
  EXPECT_EQ(to_string(Duration{10, Unit::epochs}), "10ep");
  EXPECT_EQ(to_string(Duration{1000, Unit::steps}), "1000st");
  EXPECT_EQ(to_string(Duration{100000, Unit::samples}), "100ksp");
  EXPECT_EQ(to_string(Duration{2500000, Unit::tokens}), "2500ktok");
  EXPECT_EQ(to_string(Duration{0, Unit::tokens}), "0tok");
  EXPECT_EQ(to_string(Duration{90, Unit::seconds}), "90s");
  EXPECT_EQ(to_string(Duration{7200, Unit::seconds}), "2h");
  EXPECT_EQ(to_string(Duration{172800, Unit::seconds}), "2d");
  EXPECT_EQ(to_string(Duration{0.1, Unit::fraction}), "0.1dur");
}

// The pattern of the schema and the parser are separate code, so random texts near the grammar check that they agree.
TEST(Duration, PatternAcceptsWhatTheParserAccepts) {
  const std::string units = "ep st sp tok s m h d dur";
  const std::regex any(duration_pattern(units, true)), positive(duration_pattern(units, false));
  const char* pieces[] = {"0",  "1",   "5", "00", ".", ".5", ".0",  ".001",      "ep",     "st", "k", "M",  "G",
                          "sp", "tok", "s", "m",  "h", "d",  "dur", "999999999", "123456", " ",  "-", "e3", ""};
  RandomStream random(random_key({2}));
  int accepted = 0;
  for (int i = 0; i < 60000; ++i) {
    std::string text;
    for (uint64_t n = 1 + random.below(4); n > 0; --n) text += pieces[random.below(std::size(pieces))];
    const auto read = parse_duration(text);
    accepted += read.has_value() ? 1 : 0;
    ASSERT_EQ(std::regex_match(text, any), read.has_value()) << text;
    ASSERT_EQ(std::regex_search(text, positive), read.has_value() && read->amount > 0) << text;
  }
  EXPECT_GT(accepted, 1000);
}

TEST(Bytes, AreReadAndWritten) {
  EXPECT_EQ(parse_bytes("256MiB"), 256LL << 20);
  EXPECT_EQ(parse_bytes("4GiB"), 4LL << 30);
  EXPECT_EQ(parse_bytes("512MB"), 512000000);
  EXPECT_EQ(parse_bytes("100"), 100);
  EXPECT_EQ(parse_bytes("1kB"), 1000);
  EXPECT_EQ(parse_bytes("1KiB"), 1024);
  EXPECT_EQ(parse_bytes("999999TiB"), 999999LL << 40);
  for (const char* text : {"", "MiB", "1.5GiB", "-1", "1 MiB", "1mb", "1Mb", "1e3", "0x10", "9999999TiB", "1PiB", "1BB",
                           "1000000000000000000"}) {
    EXPECT_FALSE(parse_bytes(text)) << text;
  }
  RandomStream random(random_key({3}));
  for (int i = 0; i < 5000; ++i) {
    const auto bytes = static_cast<int64_t>(random.bits64() % 1000000000000000 >> random.below(40));
    ASSERT_EQ(parse_bytes(bytes_text(bytes)), bytes);
  }
}

TEST(Objective, IsRead) {
  const Objective expected{"val/accuracy", true, 0.92};
  for (const char* text : {"val/accuracy >= 0.92", "val/accuracy>=.92", "  val/accuracy   >=  9.2e-1 "}) {
    EXPECT_EQ(parse_objective(text), expected) << text;
  }
  EXPECT_EQ(parse_objective("val/loss <= -1"), (Objective{"val/loss", false, -1}));
  for (const char* text : {"", ">=", "val/loss", "val/loss <", "val/loss <=", "<= 1", "val/loss < 1", "val/loss = 1",
                           "val/loss => 1", "loss <= 1", "val/loss <= 1 x", "val/loss <= nan", "val/loss <= inf",
                           "val/loss <= 1e999", "a/b/c <= 1", "val loss <= 1", "val/loss <= <= 1"}) {
    EXPECT_FALSE(parse_objective(text)) << text;
  }
}

TEST(Numbers, HaveTheFormOfJsonNumbers) {
  EXPECT_EQ(parse_number("1e-3"), 1e-3);
  EXPECT_EQ(parse_number("+.5"), 0.5);
  EXPECT_EQ(parse_number("5."), 5);
  EXPECT_EQ(parse_number("1e-999"), 0);
  for (const char* text : {"", ".", "-", "1e", "1e+", "012", "1_000", "0x10", ".inf", "nan", "inf", "1e999", "1 ", " 1",
                           "1f", "--1", "1.2.3", "1,5"}) {
    EXPECT_FALSE(parse_number(text)) << text;
  }
}

TEST(Numbers, WholeNumbersMayBeWrittenWithAFraction) {
  EXPECT_EQ(parse_whole("3.0")->magnitude, 3U);
  EXPECT_EQ(parse_whole("1e3")->magnitude, 1000U);
  EXPECT_EQ(parse_whole("1.5e1")->magnitude, 15U);
  EXPECT_EQ(parse_whole("1500e-2")->magnitude, 15U);
  EXPECT_EQ(parse_whole("18446744073709551615")->magnitude, ~0ULL);
  EXPECT_TRUE(parse_whole("-3")->negative);
  EXPECT_FALSE(parse_whole("-0")->negative);
  for (const char* text :
       {"1.5", "1e-1", "18446744073709551616", "1e20", "1e999999999", "1e99999999999999999999", "x"}) {
    EXPECT_FALSE(parse_whole(text)) << text;
  }
}

}  // namespace
}  // namespace sinew::spec
