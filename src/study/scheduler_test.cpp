// Studies of made-up trainings: what is recorded is enough to go on, and nothing is lost or told twice.
#include "study/scheduler.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <csignal>

#include "base/exit_code.h"
#include "base/random.h"

namespace sinew::study {
namespace {

using tune::TrialState;

std::vector<spec::SearchParameter> search() {
  spec::SearchParameter rate, kind, momentum;
  rate.key = "optimizer.lr";
  rate.low = 1e-4;
  rate.high = 1;
  rate.log = true;
  kind.key = "optimizer.name";
  kind.kind = spec::SearchParameter::Kind::choice;
  kind.choices = {"sgd", "adamw"};
  momentum.key = "optimizer.momentum";
  momentum.high = 0.9;
  momentum.only_if = {{"optimizer.name", {"sgd"}}};
  return {rate, kind, momentum};
}

spec::TuneOptions searched() {
  spec::TuneOptions tune;
  tune.search = search();
  return tune;
}

TuningOptions options(std::vector<StudyEvent>& record, int64_t parallel = 2) {
  TuningOptions options{{space_of(searched()), {tune::Direction::minimize}, 7, 12, {}}};
  options.sampler = "tpe";
  options.pruner = "asha";
  options.max_resource = 9;
  options.trials = 12;
  options.parallel = parallel;
  options.record = [&](const StudyEvent& event) { record.push_back(event); };
  return options;
}

// A training that evaluates nine times; its loss is a function of its point and of how far it is. Its process forgets
// nothing at a checkpoint, which it saves at each evaluation.
struct Trainings {
  std::map<int64_t, int64_t> evaluations;

  double loss(const tune::Study& study, int64_t id, int64_t evaluation) const {
    const double rate = std::log10(study.trial(id).point[0]) + 2;
    return rate * rate + 1.0 / static_cast<double>(evaluation);
  }
};

// Lives through a study: draws who evaluates, who is killed. Stops after `most` turns.
void play(Tuning& tuning, Trainings& trainings, RandomStream& random, int64_t most, double kills) {
  for (int64_t turn = 0; turn < most; ++turn) {
    while (tuning.next()) {
    }
    const auto running = tuning.running();
    if (running.empty()) return;
    const int64_t id = running[random.below(running.size())];
    if (random.uniform() < kills) {
      tuning.ended(id, {0, SIGKILL}, {});
      continue;
    }
    const int64_t evaluation = ++trainings.evaluations[id];
    std::string why;
    const bool ends =
        tuning.reported(id, static_cast<double>(evaluation), trainings.loss(tuning.study(), id, evaluation), why);
    if (ends) {
      EXPECT_FALSE(why.empty());
      tuning.ended(id, {kResumable, 0}, {});
    } else if (evaluation == 9) {
      tuning.ended(id, {kDone, 0}, Outcome{{trainings.loss(tuning.study(), id, evaluation)}});
    }
  }
  FAIL() << "the study does not end";
}

TEST(Tuning, EveryTrialEndsOnceOrWaitsAtItsCheckpoint) {
  for (uint64_t seed = 0; seed < 20; ++seed) {
    std::vector<StudyEvent> record;
    Tuning tuning(options(record), {});
    Trainings trainings;
    RandomStream random(random_key({seed}));
    play(tuning, trainings, random, 2000, seed % 2 == 0 ? 0 : 0.2);
    EXPECT_TRUE(tuning.over());
    EXPECT_EQ(tuning.study().next_id(), 12);
    ASSERT_FALSE(tuning.best().empty());
    std::map<int64_t, int> ends;
    for (const StudyEvent& event : record) ends[event.id] += event.kind == StudyEvent::Kind::end;
    for (const tune::Trial& trial : tuning.study().trials()) {
      EXPECT_NE(trial.state, TrialState::running);
      EXPECT_EQ(ends[trial.id], trial.state == TrialState::paused ? 0 : 1);
    }
  }
}

// Whatever instant the process that leads the study dies at, another that reads the record suggests the same.
TEST(Tuning, TheRecordIsEnoughToGoOn) {
  std::vector<StudyEvent> record;
  Tuning tuning(options(record), {});
  Trainings trainings;
  RandomStream random(random_key({3}));
  play(tuning, trainings, random, 2000, 0);
  const tune::Space space = space_of(searched());
  for (size_t cut = 0; cut < record.size(); ++cut) {
    if (record[cut].kind != StudyEvent::Kind::start) continue;
    std::vector<StudyEvent> more;
    Tuning again(options(more, 100), {record.begin(), record.begin() + static_cast<std::ptrdiff_t>(cut)});
    while (more.empty() || more.back().kind != StudyEvent::Kind::start) ASSERT_TRUE(again.next());
    EXPECT_TRUE(tune::same_point(more.back().suggestion.point, record[cut].suggestion.point)) << cut;
    EXPECT_EQ(more.back().suggestion.why, record[cut].suggestion.why);
  }
}

// Several processes at one record, each told what the others wrote before it decides. A killed one leaves its trials,
// and another goes on with them; a new one may come at any time.
struct Crew {
  struct Process {
    std::string name;
    size_t told = 0;  // events of the record
    std::unique_ptr<Tuning> tuning;
  };
  std::vector<StudyEvent> record;
  std::vector<Process> alive;
  int64_t names = 0;

  void join(const std::optional<int64_t>& lag) {
    auto of = options(record);
    of.lag = lag;
    if (lag) of.pruner = "median";
    of.process = "p" + std::to_string(names++);
    of.abandoned = [this](const std::string& name, int64_t) {
      return std::ranges::find(alive, name, &Process::name) == alive.end();
    };
    const std::string name = of.process;
    alive.push_back({name, record.size(), std::make_unique<Tuning>(of, record)});
  }

  void begin_turn(Process& process) {
    for (; process.told < record.size(); ++process.told) process.tuning->told(record[process.told]);
    while (process.tuning->next()) {
    }
  }
};

TEST(Tuning, SeveralProcessesLeadOneStudyAndAnyOfThemMayDie) {
  for (uint64_t seed = 0; seed < 30; ++seed) {
    Crew crew;
    crew.record.reserve(10'000);  // nobody's events move
    Trainings trainings;
    RandomStream random(random_key({77, seed}));
    crew.join({});
    for (int64_t turn = 0;; ++turn) {
      ASSERT_LT(turn, 5000) << "the study does not end";
      if (crew.alive.size() < 3 && random.uniform() < 0.1) crew.join({});
      if (crew.alive.size() > 1 && random.uniform() < 0.03)
        crew.alive.erase(crew.alive.begin() + static_cast<std::ptrdiff_t>(random.below(crew.alive.size())));
      auto& process = crew.alive[random.below(crew.alive.size())];
      crew.begin_turn(process);
      std::map<int64_t, int> runners;
      for (const auto& other : crew.alive)
        for (const int64_t id : other.tuning->running()) EXPECT_EQ(++runners[id], 1) << "trial " << id << " runs twice";
      const auto running = process.tuning->running();
      if (!running.empty()) {
        const int64_t id = running[random.below(running.size())], evaluation = ++trainings.evaluations[id];
        const double loss = trainings.loss(process.tuning->study(), id, evaluation);
        std::string why;
        if (process.tuning->reported(id, static_cast<double>(evaluation), loss, why)) {
          process.tuning->ended(id, {kResumable, 0}, {});
        } else if (evaluation >= 9) {
          process.tuning->ended(id, {kDone, 0}, Outcome{{loss}});
        }
      }
      process.told = crew.record.size();  // it knows what it wrote
      if (process.tuning->over()) break;
    }
    // What stands in the record is the study, with each end told once.
    Tuning after(options(crew.record), crew.record);
    EXPECT_FALSE(after.best().empty());
    EXPECT_EQ(after.study().next_id(), 12);
    std::map<int64_t, int> ends;
    for (const StudyEvent& event : crew.record) ends[event.id] += event.kind == StudyEvent::Kind::end;
    for (const tune::Trial& trial : after.study().trials()) {
      EXPECT_NE(trial.state, TrialState::running);
      EXPECT_EQ(ends[trial.id], trial.state == TrialState::paused ? 0 : 1);
    }
  }
}

TEST(Tuning, AStudyIsExtendedByWhoeverAndAllGoOn) {
  Crew crew;
  crew.join({});
  crew.join({});
  crew.record.push_back({.kind = StudyEvent::Kind::extend, .trials = 40});
  crew.begin_turn(crew.alive[0]);
  crew.begin_turn(crew.alive[1]);
  EXPECT_EQ(crew.alive[0].tuning->running().size() + crew.alive[1].tuning->running().size(), 4U);
  EXPECT_FALSE(crew.alive[0].tuning->over());
}

TEST(Tuning, ATrialThatDiesAgainAndAgainFailsAndOneThatIsKilledNow) {
  std::vector<StudyEvent> record;
  Tuning tuning(options(record, 1), {});
  const auto first = tuning.next();
  ASSERT_TRUE(first);
  EXPECT_FALSE(first->again);
  for (int death = 0; death < 2; ++death) {
    EXPECT_TRUE(tuning.ended(0, {0, SIGKILL}, {}).resumable);
    EXPECT_TRUE(tuning.next()->again);
  }
  std::string why;
  tuning.reported(0, 1, 0.5, why);  // it came further: it is not the trial's doing
  EXPECT_TRUE(tuning.ended(0, {0, SIGSEGV}, {}).resumable);
  EXPECT_TRUE(tuning.next()->again);
  EXPECT_TRUE(tuning.ended(0, {0, SIGSEGV}, {}).resumable);
  EXPECT_TRUE(tuning.next()->again);
  EXPECT_FALSE(tuning.ended(0, {0, SIGSEGV}, {}).resumable);
  EXPECT_EQ(tuning.study().trial(0).state, TrialState::failed);
  tuning.next();
  EXPECT_FALSE(tuning.ended(1, {kTrainingError, 0}, {}).resumable) << "an error of its own comes again";
  EXPECT_EQ(tuning.study().trial(1).state, TrialState::failed);
}

TEST(Tuning, ReportsThatComeAgainAreOne) {
  std::vector<StudyEvent> record;
  Tuning tuning(options(record, 1), {});
  tuning.next();
  std::string why;
  tuning.reported(0, 1, 0.5, why);
  tuning.reported(0, 1, 0.5, why);
  EXPECT_EQ(tuning.study().trial(0).reports.size(), 1U);
}

TEST(StudyFile, WhatIsWrittenIsReadBackButForATornLastLine) {
  const std::string folder = testing::TempDir() + "study_file";
  Disk& disk = system_disk();
  disk.remove_all(folder);
  disk.make_directories(folder);
  const std::string path = folder + "/study.jsonl";
  const StudyHead head{"data: {train: x}", {"a=b"}, "tpe", "asha", {{{"val/loss", true}}, {}}, 12, 9};
  std::vector<StudyEvent> record;
  {
    StudyFile file(disk, path, head);
    Tuning tuning(options(record), {});
    Trainings trainings;
    RandomStream random(random_key({5}));
    play(tuning, trainings, random, 2000, 0.1);
    for (const StudyEvent& event : record) file.append(space_of(searched()), event);
    file.append(space_of(searched()), {.kind = StudyEvent::Kind::extend, .trials = 20});
    EXPECT_THROW(StudyFile(disk, path, head), Error);
  }
  disk.append(path)->write(std::as_bytes(std::span(std::string_view("{\"event\":\"sta"))));
  StudyFile again(disk, path);
  EXPECT_EQ(again.news(space_of(searched())).size(), record.size() + 1);
  const auto read = read_study(disk, path, space_of(searched()));
  EXPECT_EQ(read.head.job, head.job);
  EXPECT_EQ(planned_trials(read.head, read.events), 20);
  ASSERT_EQ(read.events.size(), record.size() + 1);
  for (size_t i = 0; i < record.size(); ++i)
    EXPECT_EQ(to_json(space_of(searched()), read.events[i]), to_json(space_of(searched()), record[i]));
}

// Two processes append in turns; a third died in the middle of a line.
TEST(StudyFile, EachReadsWhatTheOthersAppended) {
  const std::string folder = testing::TempDir() + "study_turns";
  Disk& disk = system_disk();
  disk.remove_all(folder);
  disk.make_directories(folder);
  const std::string path = folder + "/study.jsonl";
  const tune::Space space = space_of(searched());
  StudyFile one(disk, path, {"", {}, "tpe", "asha", {{{"val/loss", true}}, {}}, 12, 9});
  StudyFile two(disk, path);
  EXPECT_TRUE(two.news(space).empty());
  RandomStream random(random_key({9}));
  std::vector<std::string> written, read_by_one, read_by_two;
  for (int64_t turn = 0; turn < 200; ++turn) {
    const bool first = random.uniform() < 0.5;
    StudyFile& file = first ? one : two;
    for (const StudyEvent& event : file.news(space))
      (first ? read_by_one : read_by_two).push_back(to_json(space, event));
    for (uint64_t k = random.below(3); k > 0; --k) {
      const StudyEvent event{.kind = StudyEvent::Kind::take, .id = turn, .process = first ? "one" : "two"};
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

TEST(StudyFile, ADamagedLineIsNamed) {
  const std::string path = testing::TempDir() + "damaged_study.jsonl";
  Disk& disk = system_disk();
  const StudyHead head{"", {}, "tpe", "asha", {{{"val/loss", true}}, {}}, 12, 9};
  for (const std::string& line : {std::string("nonsense"), std::string(R"({"event":"start","id":0})"),
                                  std::string(R"({"event":"dance","id":0})")}) {
    write_durably(disk, path, to_json(head) + "\n" + line + "\n");
    try {
      read_study(disk, path, space_of(searched()));
      FAIL() << line;
    } catch (const Error& error) {
      EXPECT_THAT(error.what(), testing::HasSubstr("damaged_study.jsonl:2: "));
    }
  }
}

TEST(StudyFile, ChoicesAndNumbersBecomeOverrides) {
  const tune::Space space = space_of(searched());
  EXPECT_THAT(overrides_of(space, {0.01, 0, 0.5}),
              testing::ElementsAre("optimizer.lr=0.01", "optimizer.name=sgd", "optimizer.momentum=0.5"));
  EXPECT_THAT(overrides_of(space, {0.1, 1, tune::kInactive}),
              testing::ElementsAre("optimizer.lr=0.1", "optimizer.name=adamw"));
}

TEST(Tuning, APrunerThatCountsEvaluationsIsToldHowManyThereAre) {
  std::vector<StudyEvent> record;
  for (const auto& [pruner, good] : {std::pair{"asha", false}, {"curve", false}, {"median", true}, {"auto", true}}) {
    auto of = options(record);
    of.pruner = pruner;
    of.max_resource = 0;
    if (good) {
      EXPECT_NO_THROW(Tuning(of, {})) << pruner;
    } else {
      EXPECT_THROW(Tuning(of, {}), Error) << pruner;
    }
  }
}

// The job file's words are those of tune/.
TEST(Tuning, TheJobFileKnowsEverySamplerAndPruner) {
  const auto choices_of = [](const std::string& key) {
    for (const spec::OptionInfo& option : spec::options()) {
      if (option.key == key) return option.choices;
    }
    return std::vector<std::string>();
  };
  std::vector<std::string> samplers, pruners;
  for (const auto& maker : tune::samplers()) samplers.emplace_back(maker.name);
  for (const auto& maker : tune::pruners()) pruners.emplace_back(maker.name);
  EXPECT_THAT(choices_of("tune.sampler"), testing::UnorderedElementsAreArray(samplers));
  EXPECT_THAT(choices_of("tune.pruner"), testing::UnorderedElementsAreArray(pruners));
}

TEST(Evaluations, AreCountedWhereTheJobTells) {
  spec::Job job;
  EXPECT_EQ(evaluations_of(job), 10);
  job.trainer.eval_interval = {100, spec::Duration::Unit::steps};
  EXPECT_EQ(evaluations_of(job), 0) << "how many steps ten epochs have is not known here";
  job.trainer.max_duration = {950, spec::Duration::Unit::steps};
  EXPECT_EQ(evaluations_of(job), 9);
  job.trainer.eval_interval = {0.1, spec::Duration::Unit::fraction};
  EXPECT_EQ(evaluations_of(job), 10);
}

}  // namespace
}  // namespace sinew::study
