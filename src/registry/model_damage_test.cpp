// Tests that a model with damaged files is not registered, and that a damaged blob is noticed before a part of it is
// used.
#include <gtest/gtest.h>

#include <cmath>
#include <thread>

#include "base/cost_limit.h"
#include "base/file_damage.h"
#include "checkpoint/checkpoint.h"
#include "registry/fake_run.h"
#include "registry/recent_checks.h"
#include "registry/registry.h"

namespace sinew::registry {
namespace {

namespace fs = std::filesystem;

const std::vector<std::string> kFiles = {"model.safetensors", "model.json", "model.digests.json"};

void write_model(const std::string& directory, RandomStream& random) {
  fs::create_directories(directory);
  const std::string weights = random_bytes(random, 40'000);
  checkpoint::ModelDigests digests;
  digests["model.safetensors"] =
      checkpoint::write_safetensors(system_disk(), directory + "/model.safetensors",
                                    {{"w", DType::u8, {40'000}, std::as_bytes(std::span(weights))}}, {});
  write_file(directory + "/model.json",
             "{\"digests\": \"model.digests.json\", \"n\": " + std::to_string(random.bits32()) + "}");
  digests["model.json"] = checkpoint::digest_file(system_disk(), directory + "/model.json");
  checkpoint::write_model_digests(system_disk(), directory, digests);
}

class ModelDamage : public testing::Test {
 protected:
  ModelDamage() : store(folder / "s.db"), artifacts(folder / "artifacts"), run(folder / "runs", "job/a", random) {
    run.grow(3);
    run.end("done");
    fs::remove_all(model());
    write_model(model(), random);
    write_model(folder / "other", random);
    fs::copy(model(), folder / "intact");
    Index(store, {.root = folder / "runs"}).pass();
  }
  std::string model() const { return run.directory() + "/model"; }
  VersionFacts add() {
    return register_run(store, artifacts, find_run(store, "job/a"), folder / "runs", {.model = "m"});
  }
  void restore() const {
    fs::remove_all(model());
    fs::copy(folder / "intact", model());
  }

  Folder folder;
  RandomStream random{RandomKey{5}};
  store::Store store;
  Artifacts artifacts;
  FakeRun run;
};

TEST_F(ModelDamage, RegisterRefusesEveryDamage) {
  for (uint64_t seed = 0; seed < 60; ++seed) {
    restore();
    const std::string what = FileDamage(model(), folder / "other", kFiles).apply(seed);
    EXPECT_EQ(code_of([&] { add(); }), "WEIGHTS_DAMAGED") << seed << ": " << what;
  }
  EXPECT_TRUE(store.list({.kind = store::Kind::kVersion}).empty());
  restore();
  EXPECT_EQ(add().checks.at("intact"), "passed");
}

TEST_F(ModelDamage, AModelWithoutAListIsRegisteredUnchecked) {
  fs::remove(model() + "/model.digests.json");
  EXPECT_EQ(code_of([&] { add(); }), "WEIGHTS_DAMAGED");  // model.json names the list
  write_file(model() + "/model.json", "{}");
  EXPECT_FALSE(add().checks.contains("intact"));
}

TEST_F(ModelDamage, FilesOfRunsAreCheckedBeforeTheyAreServed) {
  HandClock clock;
  RunFileChecks checks(clock);
  for (const std::string& name : kFiles) checks.check(model(), name, "model");
  for (uint64_t seed = 0; seed < 60; ++seed) {
    restore();
    const std::string what = FileDamage(model(), folder / "other", kFiles).apply(seed);
    const auto check_all = [&] {
      for (const std::string& name : kFiles) checks.check(model(), name, "model");
    };
    EXPECT_EQ(code_of(check_all), "WEIGHTS_DAMAGED") << seed << ": " << what;
  }
  checks.check(run.directory(), "job.yaml", "");  // no list has this file
}

// Flips a bit and restores the file's times, as when a device decays.
void decay(const std::string& path, RandomStream& random) {
  const auto times = fs::last_write_time(path);
  std::string bytes;
  {
    std::ifstream in(path, std::ios::binary);
    bytes.assign(std::istreambuf_iterator<char>(in), {});
  }
  const size_t at = random.below(bytes.size());
  bytes[at] = static_cast<char>(bytes[at] ^ 4);
  write_file(path, bytes);
  fs::last_write_time(path, times);
}

TEST_F(ModelDamage, ADamagedBlobIsFoundBeforeAPartOfItIsUsed) {
  HandClock clock;
  Artifacts served(folder / "artifacts", system_disk(), clock);
  std::vector<std::string> digests;
  {
    auto pin = artifacts.pin();
    digests = {pin.put_file(model() + "/model.safetensors").digest, pin.put("a small text").digest};
  }
  for (const std::string& digest : digests) served.check(digest);
  for (const auto& entry : fs::recursive_directory_iterator(folder / "artifacts")) {
    if (entry.is_regular_file() && entry.path().filename().string().size() >= 64) decay(entry.path(), random);
  }
  for (const std::string& digest : digests) {
    EXPECT_EQ(code_of([&] { served.check(digest); }), "ARTIFACT_DAMAGED");
    EXPECT_EQ(code_of([&] { served.check(digest); }), "ARTIFACT_DAMAGED") << "a failed check is not remembered";
  }
  EXPECT_EQ(code_of([&] { served.check(std::string(64, 'a')); }), "ARTIFACT_NOT_FOUND");
}

TEST_F(ModelDamage, AListThatIsTooLongIsNotRead) {
  const std::vector<store::Attachment> files = {{"m/model.digests.json", std::string(64, 'a'), 300 << 20}};
  EXPECT_EQ(code_of([&] { check_model_files(artifacts, files, "runs:/x"); }), "WEIGHTS_DAMAGED")
      << "the artifacts do not even have it";
}

TEST_F(ModelDamage, TheCheckOfAFileEndsWhenNobodyWaitsForIt) {
  HandClock clock;
  RunFileChecks checks(clock);
  const auto gone = std::make_shared<std::atomic<bool>>(true);
  CostLimit limit(clock, INFINITY, 1 << 30, gone);
  const CostLimit::Scope scope(&limit);
  EXPECT_EQ(code_of([&] { checks.check(model(), "model.safetensors", "model"); }), "REQUEST_ABANDONED");
}

TEST(RecentChecks, LetOneThreadCheckAContent) {
  HandClock clock;
  RecentChecks checks(clock);
  std::atomic<int> inside = 0;
  {
    std::vector<std::jthread> threads;
    for (int i = 0; i < 8; ++i) {
      threads.emplace_back([&] {
        for (int k = 0; k < 50; ++k) {
          const RecentChecks::Turn turn(checks, "a");
          EXPECT_EQ(++inside, 1);
          --inside;
        }
      });
    }
  }
  const RecentChecks::Turn turn(checks, "a"), other(checks, "b");
  std::jthread([&] {
    const auto gone = std::make_shared<std::atomic<bool>>(true);
    CostLimit limit(clock, INFINITY, 1 << 30, gone);
    const CostLimit::Scope scope(&limit);
    EXPECT_EQ(code_of([&] { const RecentChecks::Turn mine(checks, "a"); }), "REQUEST_ABANDONED");
  }).join();
}

TEST(RecentChecks, DoNotCountForAFileThatHasJustChanged) {
  const Folder folder;
  HandClock clock;
  write_file(folder / "file", "text");
  clock.seconds = system_clock().wall_seconds() - 1'800'000'000.0;
  EXPECT_EQ(stamp_text({folder / "file"}, clock), "") << "it may change again without a new time";
  clock.seconds = clock.seconds + 10;
  const std::string stamp = stamp_text({folder / "file"}, clock);
  EXPECT_NE(stamp, "");
  write_file(folder / "file", "a longer text");
  EXPECT_NE(stamp_text({folder / "file"}, clock), stamp);
  EXPECT_EQ(stamp_text({folder / "file", folder / "none"}, clock), "");
}

TEST(RecentChecks, CountForTenMinutesAndOneStamp) {
  HandClock clock;
  RecentChecks checks(clock);
  EXPECT_FALSE(checks.has("a", "1"));
  checks.add("a", "1");
  EXPECT_TRUE(checks.has("a", "1"));
  EXPECT_FALSE(checks.has("a", "2"));
  EXPECT_FALSE(checks.has("b", "1"));
  clock.seconds = clock.seconds + RecentChecks::kTrustSeconds + 1;
  EXPECT_FALSE(checks.has("a", "1"));
  checks.add("c", "");
  EXPECT_FALSE(checks.has("c", "")) << "a file that cannot be examined is read each time";
}

}  // namespace
}  // namespace sinew::registry
