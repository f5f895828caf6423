// Tests save on a disk that stops, fails or loses unsynced data at each of its calls.
#include <gtest/gtest.h>

#include "base/faulty_disk.h"
#include "checkpoint/checkpoint.h"
#include "checkpoint/names.h"
#include "checkpoint/samples.h"

namespace sinew::checkpoint {
namespace {

const std::string kDeepRoot = "runs/a/checkpoints";

std::string hidden_in(FaultyDisk& disk) {
  std::string names;
  if (!disk.exists(kDeepRoot)) return names;
  for (const auto& entry : disk.list(kDeepRoot)) {
    if (entry.name.starts_with('.')) names += entry.name + " ";
  }
  return names;
}

// The checkpoints on disk before the save under test: the intact steps, and whether a damaged step 20 exists.
struct World {
  std::vector<int64_t> steps;
  bool damaged_20 = false;
};

void build(FaultyDisk& disk, const World& world) {
  for (const int64_t step : world.steps) save(disk, kDeepRoot, Sample(step).snapshot(), 1.0);
  if (!world.damaged_20) return;
  save(disk, kDeepRoot, Sample(20).snapshot(), 1.0);
  const std::string path = join(join(kDeepRoot, step_name(Step(20))), "model.safetensors");
  disk.raw(path).back() ^= std::byte{1};
  disk.settle_raw(path);
}

int64_t calls_of_a_save(const World& world) {
  FaultyDisk disk;
  build(disk, world);
  const int64_t before = disk.calls();
  save(disk, kDeepRoot, Sample(20).snapshot(), 2.0);
  return disk.calls() - before;
}

// Kills the process at call k of saving step 20. `fate` decides which unsynced data is lost.
void die_and_look(const World& world, int64_t k, FaultyDisk::When when, int fate) {
  SCOPED_TRACE(testing::Message() << "call " << k << (when == FaultyDisk::When::before ? " before" : " after")
                                  << " fate " << fate << " damaged " << world.damaged_20 << " steps "
                                  << world.steps.size());
  FaultyDisk disk;
  build(disk, world);
  disk.stop_world_at(k, when);
  bool returned = false;
  try {
    save(disk, kDeepRoot, Sample(20).snapshot(), 2.0);
    returned = true;
  } catch (const WorldStopped&) {
  }
  ASSERT_FALSE(returned);
  if (fate == 0)
    disk.crash(std::nullopt);
  else
    disk.crash(random_key({static_cast<uint64_t>(fate), static_cast<uint64_t>(k)}), fate == 1);

  const Newest newest = load_newest(disk, kDeepRoot);
  if (newest.loaded) {
    const int64_t step = newest.loaded->step.value;
    ASSERT_TRUE(step == 20 || (!world.steps.empty() && step == world.steps.back())) << step;
    ASSERT_TRUE(Sample(step).equals(*newest.loaded));
  } else {
    ASSERT_TRUE(world.steps.empty()) << "the previous one is gone";
  }
  if (!world.damaged_20) {
    ASSERT_TRUE(newest.damaged.empty()) << newest.damaged[0].file << " " << newest.damaged[0].what;
  }
  // A new process saves the same step again, then the next one. It removes what the dead process left.
  save(disk, kDeepRoot, Sample(20).snapshot(), 3.0);
  ASSERT_TRUE(Sample(20).equals(*load_newest(disk, kDeepRoot).loaded));
  save(disk, kDeepRoot, Sample(30).snapshot(), 3.0);
  ASSERT_EQ(hidden_in(disk), "");
  disk.crash(std::nullopt, true);
  ASSERT_TRUE(Sample(30).equals(*load_newest(disk, kDeepRoot).loaded)) << "save returned before it was durable";
}

void die_everywhere(const World& world) {
  const int64_t calls = calls_of_a_save(world);
  ASSERT_GT(calls, 15);
  for (int64_t k = 1; k <= calls; ++k) {
    for (const auto when : {FaultyDisk::When::before, FaultyDisk::When::after}) {
      for (int fate = 0; fate < 8; ++fate) {
        die_and_look(world, k, when, fate);
        if (testing::Test::HasFatalFailure()) return;
      }
    }
  }
}

TEST(SaveDeath, TheFirstSaveLeavesAllOrNothing) {
  die_everywhere({{}, false});
}
TEST(SaveDeath, ALaterSaveLeavesTheNewestOrThePrevious) {
  die_everywhere({{5, 10}, false});
}
TEST(SaveDeath, ReplacingADamagedStepKeepsThePrevious) {
  die_everywhere({{10}, true});
}
TEST(SaveDeath, ReplacingADamagedFirstStepLeavesAllOrNothing) {
  die_everywhere({{}, true});
}

TEST(SaveDeath, AReturnedSaveSurvivesAnyLossOfUnsyncedData) {
  for (uint64_t fate = 0; fate < 50; ++fate) {
    FaultyDisk disk;
    save(disk, kDeepRoot, Sample(10).snapshot(), 1.0);
    disk.crash(random_key({fate}), fate == 0);
    const Newest newest = load_newest(disk, kDeepRoot);
    ASSERT_TRUE(newest.loaded && Sample(10).equals(*newest.loaded));
  }
}

TEST(SaveDeath, TheNextSaveMakesAnExistingStepDurable) {
  for (const World& world : {World{{}, false}, World{{10}, false}, World{{10}, true}}) {
    const int64_t calls = calls_of_a_save(world);
    for (int64_t k = 1; k <= calls; ++k) {
      FaultyDisk disk;
      build(disk, world);
      disk.stop_world_at(k, FaultyDisk::When::after);
      EXPECT_THROW(save(disk, kDeepRoot, Sample(20).snapshot(), 2.0), WorldStopped);
      disk.restart();
      save(disk, kDeepRoot, Sample(20).snapshot(), 3.0);
      disk.crash(std::nullopt, true);  // power fails after save returned
      const Newest newest = load_newest(disk, kDeepRoot);
      ASSERT_TRUE(newest.loaded && Sample(20).equals(*newest.loaded)) << "call " << k;
    }
  }
}

void fail_everywhere(const World& world, int code) {
  const int64_t calls = calls_of_a_save(world);
  int64_t threw = 0;
  for (int64_t k = 1; k <= calls; ++k) {
    SCOPED_TRACE(testing::Message() << "call " << k << " code " << code);
    FaultyDisk disk;
    build(disk, world);
    disk.fail_at(k, code);
    bool failed = false;
    try {
      save(disk, kDeepRoot, Sample(20).snapshot(), 2.0);
    } catch (const DiskError& error) {
      failed = true;
      ++threw;
      EXPECT_EQ(error.system_code, code);
      EXPECT_EQ(hidden_in(disk).find(".saving"), std::string::npos) << "the failed save left its directory";
    }
    const Newest newest = load_newest(disk, kDeepRoot);
    const int64_t previous = world.steps.empty() ? -1 : world.steps.back();
    const int64_t step = newest.loaded ? newest.loaded->step.value : -1;
    ASSERT_TRUE(step == 20 || (failed && step == previous)) << step;
    if (newest.loaded) {
      ASSERT_TRUE(Sample(step).equals(*newest.loaded));
    }
    save(disk, kDeepRoot, Sample(20).snapshot(), 3.0);  // the retry
    disk.crash(std::nullopt, true);
    const Newest after = load_newest(disk, kDeepRoot);
    ASSERT_TRUE(after.loaded && Sample(20).equals(*after.loaded));
  }
  // If a call fails, the save fails, unless the call only removes leftovers or verifies an existing checkpoint.
  EXPECT_GT(threw, calls / 2);
}

TEST(SaveFailure, ReportsAFullDiskWithoutHarm) {
  fail_everywhere({{5, 10}, false}, ENOSPC);
}
TEST(SaveFailure, ReportsAnInputErrorWithoutHarm) {
  fail_everywhere({{10}, true}, EIO);
}
TEST(SaveFailure, ReportsAnExceededQuotaWithoutHarm) {
  fail_everywhere({{}, false}, EDQUOT);
}

TEST(Save, KeepsAnIntactDirectoryOfTheSameState) {
  FaultyDisk disk;
  const std::string first = save(disk, kDeepRoot, Sample(20).snapshot(), 1.0);
  const std::string second = save(disk, kDeepRoot, Sample(20).snapshot(), 2.0);
  EXPECT_EQ(first, second);
  EXPECT_EQ(verify(disk, first)->wall_seconds, 1.0);
}

TEST(Save, RefusesASecondStateForOneStep) {
  FaultyDisk disk;
  const std::string path = save(disk, kDeepRoot, Sample(20).snapshot(), 1.0);
  Snapshot other = Sample(20).snapshot();
  other.digest.low ^= 1;
  try {
    save(disk, kDeepRoot, other, 2.0);
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.code, ErrorCode("CHECKPOINT_CONFLICT"));
  }
  EXPECT_EQ(verify(disk, path)->digest, Sample(20).snapshot().digest);
}

TEST(Save, RemovesOnlyWhatDeadWritersLeft) {
  FaultyDisk disk;
  disk.make_directories(kDeepRoot);
  const std::string dead = ".saving-step-00000007-999999999-0",
                    ours = HiddenName(HiddenName::Use::removed, Step(3)).name();
  const HiddenName live(HiddenName::Use::saving, Step(4));
  const std::string other_live = ".saving-step-00000007-1-0";  // pid 1 is alive
  for (const std::string& name :
       {dead, ours, live.name(), other_live, std::string(".saving-x"), std::string(".notes")}) {
    disk.make_directories(join(kDeepRoot, name));
    disk.create(join(join(kDeepRoot, name), "file"))->close();
  }
  save(disk, kDeepRoot, Sample(20).snapshot(), 1.0);
  EXPECT_FALSE(disk.exists(join(kDeepRoot, dead)));
  EXPECT_FALSE(disk.exists(join(kDeepRoot, ours)));
  for (const std::string& name : {live.name(), other_live, std::string(".saving-x"), std::string(".notes")}) {
    EXPECT_TRUE(disk.exists(join(kDeepRoot, name))) << name;
  }
  EXPECT_EQ(list(disk, kDeepRoot).size(), 1U);
}

TEST(LoadNewest, DistinguishesNoneFromDamagedAndUnreadable) {
  FaultyDisk disk;
  const Newest none = load_newest(disk, kDeepRoot);
  EXPECT_TRUE(!none.loaded && none.damaged.empty());
  for (const int64_t step : {5, 10}) {
    const std::string path = save(disk, kDeepRoot, Sample(step).snapshot(), 1.0);
    disk.remove_file(join(path, "state.json"));
  }
  const Newest bad = load_newest(disk, kDeepRoot);
  EXPECT_FALSE(bad.loaded);
  ASSERT_EQ(bad.damaged.size(), 2U);
  EXPECT_EQ(bad.damaged[0].directory, join(kDeepRoot, step_name(Step(10))));  // newest first
  EXPECT_EQ(bad.damaged[0].file, "state.json");
  disk.fail_at(1, EACCES);
  EXPECT_THROW(load_newest(disk, kDeepRoot), DiskError);
  disk.fail_at(2, EIO);
  EXPECT_THROW(load_newest(disk, kDeepRoot), DiskError);
}

TEST(Names, StepsSortByNumberAndOtherNamesAreIgnored) {
  FaultyDisk disk;
  for (const char* name :
       {"step-00000009", "step-100000000", "step-99999999", "step-9", "step-000000010", "step-0000000x", "step-",
        "Step-00000001", "step--0000001", ".saving-step-00000001-2-3", "last"}) {
    disk.make_directories(join(kDeepRoot, name));
  }
  disk.create(join(kDeepRoot, "step-00000008"))->close();  // a file, not a directory
  EXPECT_EQ(list(disk, kDeepRoot), (std::vector<std::string>{kDeepRoot + "/step-00000009", kDeepRoot + "/step-99999999",
                                                             kDeepRoot + "/step-100000000"}));
  RandomStream random(random_key({1}));
  for (int i = 0; i < 1000; ++i) {
    const Step step(static_cast<int64_t>(random.bits64() >> (1 + random.below(63))));
    EXPECT_EQ(parse_step_name(step_name(step)), step);
  }
  EXPECT_EQ(parse_step_name("step-99999999999999999999"), std::nullopt);
}

TEST(Names, PartsAreSimpleFileNames) {
  for (const char* good : {"model", "ema.0.999", "A", "x-1_2"}) EXPECT_TRUE(is_part_name(good)) << good;
  for (const char* bad : {"", ".hidden", "../x", "a/b", "a b", "-x", "a\n", "\xc3\xa9"})
    EXPECT_FALSE(is_part_name(bad)) << bad;
  EXPECT_TRUE(is_listed_name("state.json"));
  EXPECT_FALSE(is_listed_name("manifest.json"));
  EXPECT_FALSE(is_listed_name(".safetensors"));
  EXPECT_EQ(base_name("a/b//"), "b");
  EXPECT_EQ(base_name("b"), "b");
  EXPECT_EQ(base_name("/"), "");
}

}  // namespace
}  // namespace sinew::checkpoint
