#include "report/tensorboard.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "base/random.h"
#include "report/testing.h"

namespace sinew::report {
namespace {

using namespace testing;

TEST(TensorBoard, frames_carry_length_and_masked_checksums) {
  // The version event of a real file of another writer: wall time 0.0, "brain.Event:2".
  const std::string data = std::string("\x09\0\0\x80\x38\x5d\x8e\xd9\x41\x1a\x0d", 11) + "brain.Event:2";
  const std::string record = tfrecord(data);
  EXPECT_EQ(record.size(), data.size() + 16);
  EXPECT_EQ(record.substr(0, 8), std::string("\x18\0\0\0\0\0\0\0", 8));
  // Every event file whose first event has 24 bytes begins with these bytes.
  EXPECT_EQ(record.substr(8, 4), std::string("\xa3\x7f\x4b\x22", 4));
  EXPECT_EQ(read_tfrecords(record).size(), 1U);
}

TEST(TensorBoard, first_record_names_the_file_version) {
  const auto records = read_tfrecords(version_record(12.5));
  ASSERT_EQ(records.size(), 1U);
  EXPECT_EQ(records[0].as<double>(1), 12.5);
  EXPECT_EQ(records[0].one(3), "brain.Event:2");
  EXPECT_EQ(records[0].in(10).one(1), "sinew");
}

TEST(TensorBoard, session_start_carries_its_step) {
  const auto at_zero = read_tfrecords(session_start_record(1, 0));
  EXPECT_EQ(at_zero[0].in(7).integer(1), 1U);
  EXPECT_EQ(at_zero[0].fields.count(2), 0U);
  EXPECT_EQ(read_tfrecords(session_start_record(1, 301))[0].integer(2), 301U);
}

TEST(TensorBoard, scalars_read_back_for_any_names_and_values) {
  for (uint64_t seed = 0; seed < 200; ++seed) {
    RandomStream random(random_key({seed}));
    Metrics values;
    const uint64_t count = random.below(12);
    for (uint64_t i = 0; i < count; ++i) {
      std::string name(random.below(200), '\0');  // long enough for a length that takes two bytes
      for (char& c : name) c = static_cast<char>(random.below(256));
      values[name] = random.below(10) == 0 ? std::numeric_limits<double>::quiet_NaN() : random.normal() * 1e3;
    }
    const auto step = static_cast<int64_t>(random.bits64() >> (1 + random.below(63)));
    const auto records = read_tfrecords(scalars_record(5, step, values));
    ASSERT_EQ(records.size(), 1U);
    EXPECT_EQ(records[0].fields.contains(2) ? records[0].integer(2) : 0, static_cast<uint64_t>(step));
    const auto found = records[0].in(5).all(1);
    ASSERT_EQ(found.size(), values.size());
    size_t i = 0;
    for (const auto& [name, value] : values) {
      EXPECT_EQ(found[i].one(1), name);
      const float read = found[i].as<float>(2);
      EXPECT_TRUE(std::isnan(value) ? std::isnan(read) : read == static_cast<float>(value));
      ++i;
    }
  }
}

TEST(TensorBoard, hyperparameters_keep_their_kinds) {
  const auto records = read_tfrecords(hparams_record(77, {{"lr", "3e-4"},
                                                          {"name", "mlp"},
                                                          {"nesterov", "true"},
                                                          {"drop", "false"},
                                                          {"duration", "10ep"},
                                                          {"inf", "inf"},
                                                          {"none", ""}}));
  const Wire value = records[0].in(5).in(1);
  EXPECT_EQ(value.one(1), "_hparams_/session_start_info");
  const Wire plugin = value.in(9).in(1);
  EXPECT_EQ(plugin.one(1), "hparams");
  const Wire start = plugin.in(2).in(3);
  EXPECT_EQ(start.as<double>(5), 77.0);
  std::map<std::string, Wire> found;
  for (const Wire& entry : start.all(1)) found.emplace(entry.one(1), entry.in(2));
  ASSERT_EQ(found.size(), 7U);
  EXPECT_EQ(found.at("lr").as<double>(2), 3e-4);
  EXPECT_EQ(found.at("name").one(3), "mlp");
  EXPECT_EQ(found.at("nesterov").integer(4), 1U);
  EXPECT_EQ(found.at("drop").integer(4), 0U);
  EXPECT_EQ(found.at("duration").one(3), "10ep");
  EXPECT_EQ(found.at("inf").one(3), "inf");
  EXPECT_EQ(found.at("none").one(3), "");
}

TEST(TensorBoard, session_end_says_how_it_went) {
  for (const bool success : {true, false}) {
    const Wire value = read_tfrecords(session_end_record(9, success))[0].in(5).in(1);
    EXPECT_EQ(value.one(1), "_hparams_/session_end_info");
    EXPECT_EQ(value.in(9).in(1).in(2).in(4).integer(1), success ? 1U : 2U);
  }
}

TEST(TensorBoard, a_new_file_sorts_after_all_others) {
  const TemporaryDirectory directory;
  std::string previous;
  // the same second twice, and a clock that is set back
  for (const double now : {1000.0, 1000.0, 900.0, 5000.0, 5000.5}) {
    const std::string path = new_event_path(system_disk(), directory.path, now);
    EXPECT_GT(path, previous);
    write_file(path, "");
    previous = path;
  }
  EXPECT_NE(previous.find("events.out.tfevents.0000005001."), std::string::npos) << previous;
}

TEST(TensorBoard, cut_session_end_works_wherever_the_file_is_torn) {
  const std::string kept = version_record(1) + session_start_record(1, 0) + scalars_record(1, 3, {{"train/loss", 1}});
  const std::string whole = kept + session_end_record(2, false);
  for (size_t length = kept.size(); length <= whole.size(); ++length) {
    const TemporaryDirectory directory;
    const std::string path = new_event_path(system_disk(), directory.path, 1);
    write_file(path, whole.substr(0, length));
    cut_session_end(system_disk(), directory.path);
    EXPECT_EQ(read_file(path), kept) << length;
  }
}

}  // namespace
}  // namespace sinew::report
