// Tests the event log of a study on disk: what one leader writes, another reads.
#include "study/record_file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "base/expected_error.h"
#include "study/testing.h"

namespace sinew::study {
namespace {

TEST(RecordFile, ReadsBackWhatItWroteButNotATornLine) {
  const std::string folder = testing::TempDir() + "study_file";
  Disk& disk = system_disk();
  disk.remove_all(folder);
  disk.make_directories(folder);
  const std::string path = folder + "/study.jsonl";
  const StudyHead head{"data: {train: x}", {"a=b"}, "tpe", "asha", {{{"val/loss", true}}, {}}, 12, 9};
  std::vector<StudyEvent> record;
  {
    RecordFile file(disk, path, head);
    TrialScheduler scheduler(sample_options(record), {});
    SampleTrainings trainings;
    RandomStream random(random_key({5}));
    run_study(scheduler, trainings, random, 2000, 0.1);
    for (const StudyEvent& event : record) file.append(sample_space(), event);
    file.append(sample_space(), {.kind = StudyEvent::Kind::extend, .trials = 20});
    EXPECT_EQ(code_of([&] { RecordFile(disk, path, head); }), "STUDY_EXISTS");
  }
  disk.append(path)->write(std::as_bytes(std::span(std::string_view("{\"event\":\"sta"))));
  RecordFile again(disk, path);
  EXPECT_EQ(again.news(sample_space()).size(), record.size() + 1);
  const auto read = read_study(disk, path, sample_space());
  EXPECT_EQ(read.head.job, head.job);
  EXPECT_EQ(planned_trials(read.head, read.events), 20);
  ASSERT_EQ(read.events.size(), record.size() + 1);
  for (size_t i = 0; i < record.size(); ++i)
    EXPECT_EQ(to_json(sample_space(), read.events[i]), to_json(sample_space(), record[i]));
}

// Two leaders append in turns. A third leader now and then dies in the middle of a line.
TEST(RecordFile, EachLeaderReadsWhatTheOthersAppended) {
  const std::string folder = testing::TempDir() + "study_turns";
  Disk& disk = system_disk();
  disk.remove_all(folder);
  disk.make_directories(folder);
  const std::string path = folder + "/study.jsonl";
  const tune::Space space = sample_space();
  RecordFile one(disk, path, {"", {}, "tpe", "asha", {{{"val/loss", true}}, {}}, 12, 9});
  RecordFile two(disk, path);
  EXPECT_TRUE(two.news(space).empty());
  RandomStream random(random_key({9}));
  std::vector<std::string> written, read_by_one, read_by_two;
  for (int64_t turn = 0; turn < 200; ++turn) {
    const bool first = random.uniform() < 0.5;
    RecordFile& file = first ? one : two;
    for (const StudyEvent& event : file.news(space))
      (first ? read_by_one : read_by_two).push_back(to_json(space, event));
    for (uint64_t k = random.below(3); k > 0; --k) {
      const StudyEvent event{.kind = StudyEvent::Kind::take, .id = turn, .leader = first ? "one" : "two"};
      file.append(space, event);
      written.push_back(to_json(space, event));
      (first ? read_by_one : read_by_two).push_back(written.back());
    }
    if (random.uniform() < 0.2) disk.append(path)->write(std::as_bytes(std::span(std::string_view("{\"event\":\"en"))));
  }
  for (const StudyEvent& event : one.news(space)) read_by_one.push_back(to_json(space, event));
  for (const StudyEvent& event : two.news(space)) read_by_two.push_back(to_json(space, event));
  EXPECT_EQ(read_by_one, written);
  EXPECT_EQ(read_by_two, written);
}

TEST(RecordFile, ADamagedLineIsNamed) {
  const std::string path = testing::TempDir() + "damaged_study.jsonl";
  Disk& disk = system_disk();
  const StudyHead head{"", {}, "tpe", "asha", {{{"val/loss", true}}, {}}, 12, 9};
  for (const std::string& line : {std::string("nonsense"), std::string(R"({"event":"start","id":0})"),
                                  std::string(R"({"event":"dance","id":0})")}) {
    write_durably(disk, path, to_json(head) + "\n" + line + "\n");
    try {
      read_study(disk, path, sample_space());
      FAIL() << line;
    } catch (const Error& error) {
      EXPECT_EQ(error.code, ErrorCode("STUDY_BAD_RECORD"));
      EXPECT_THAT(error.what(), testing::HasSubstr("damaged_study.jsonl:2: "));
    }
  }
}

TEST(RecordFile, WritesNumbersThatJsonDoesNotHaveAsStrings) {
  StudyEvent end{.kind = StudyEvent::Kind::end};
  end.outcome.values = {std::nan(""), INFINITY, -INFINITY, -0.0};
  const std::string line = to_json(sample_space(), end);
  EXPECT_THAT(line, testing::HasSubstr(R"("values":["NaN","Infinity","-Infinity",-0.0])"));
}

// A study in the format of version 2.
constexpr const char* kVersion2 =
    R"({"constraints":[],"format":"sinew-study","job":"","max_resource":9.0,"objectives":[{"metric":"val/loss","minimize":true}],"overrides":[],"sampler":"tpe","stopper":"asha","trials":12,"version":2}
{"by":"tpe","event":"start","id":0,"memo":[0.5,"nan","-inf"],"params":{"optimizer.lr":0.01,"optimizer.name":"adamw"},"process":"host-1","why":"explores"}
{"event":"report","id":0,"step":1.0,"value":"inf"}
{"estimate":"nan","event":"pause","id":0}
)";

TEST(RecordFile, ReadsVersion2AndContinuesIt) {
  const std::string path = testing::TempDir() + "study_version_2.jsonl";
  Disk& disk = system_disk();
  write_durably(disk, path, std::string_view(kVersion2));
  RecordFile file(disk, path);
  EXPECT_EQ(file.news(sample_space()).size(), 3U);
  file.append(sample_space(), {.kind = StudyEvent::Kind::report, .id = 0, .step = 2, .value = -INFINITY});
  const ReadStudy read = read_study(disk, path, sample_space());
  EXPECT_EQ(read.head.pruner, "asha");
  ASSERT_EQ(read.events.size(), 4U);
  EXPECT_THAT(read.events[0].suggestion.sampler_state, testing::ElementsAre(0.5, testing::IsNan(), -INFINITY));
  EXPECT_EQ(read.events[1].value, INFINITY);
  EXPECT_TRUE(std::isnan(*read.events[2].estimate));
  EXPECT_EQ(read.events[3].value, -INFINITY);
}

TEST(RecordFile, RefusesOtherVersions) {
  const std::string path = testing::TempDir() + "study_version.jsonl";
  for (const int version : {1, 4}) {
    write_durably(system_disk(), path, R"({"format":"sinew-study","version":)" + std::to_string(version) + "}\n");
    EXPECT_EQ(code_of([&] { read_study_head(system_disk(), path); }), "STUDY_WRONG_VERSION");
  }
  write_durably(system_disk(), path, std::string_view("{}\n"));
  EXPECT_EQ(code_of([&] { read_study_head(system_disk(), path); }), "STUDY_BAD_RECORD");
  EXPECT_EQ(code_of([&] { read_study_head(system_disk(), path + "-missing"); }), "STUDY_NOT_FOUND");
}

}  // namespace
}  // namespace sinew::study
