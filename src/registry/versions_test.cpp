#include <gtest/gtest.h>

#include <cmath>
#include <thread>

#include "base/sha256.h"
#include "checkpoint/checkpoint.h"
#include "registry/fake_run.h"
#include "registry/registry.h"
#include "rundir/rundir.h"

namespace sinew::registry {
namespace {

using store::Kind;

VersionFacts facts(int64_t version, double accuracy, const std::string& test = "t1") {
  VersionFacts facts;
  facts.version = version;
  facts.metrics = {{"test/accuracy", accuracy}, {"test/loss", 1 - accuracy}, {"val/accuracy", accuracy}};
  facts.monitor = "val/accuracy";
  facts.data = {{"test", test}, {"val", "v"}};
  facts.checks = {{"done", "passed"}};
  return facts;
}

TEST(PromotionRules, AllowACandidateAtLeastAsGoodOnTheSameTestData) {
  EXPECT_TRUE(may_promote(facts(1, 0.5), std::nullopt, {}).allowed);
  EXPECT_TRUE(may_promote(facts(2, 0.9), facts(1, 0.9), {}).allowed);
  const Decision worse = may_promote(facts(2, 0.89), facts(1, 0.9), {});
  EXPECT_FALSE(worse.allowed);
  EXPECT_EQ(worse.why, "test/accuracy of version 2 is 0.89, the champion's (version 1) is 0.9");
  EXPECT_FALSE(may_promote(facts(2, 0.9), facts(1, 0.9), {.margin = 0.01}).allowed);
  EXPECT_TRUE(may_promote(facts(2, 0.89), facts(1, 0.9), {.margin = -0.02}).allowed);
}

TEST(PromotionRules, TreatALowerLossAsBetter) {
  EXPECT_TRUE(may_promote(facts(2, 0.95), facts(1, 0.9), {.metric = "test/loss"}).allowed);
  EXPECT_FALSE(may_promote(facts(2, 0.85), facts(1, 0.9), {.metric = "test/loss"}).allowed);
}

TEST(PromotionRules, DoNotCompareMetricsOnOtherData) {
  const Decision other = may_promote(facts(2, 0.99, "t2"), facts(1, 0.9, "t1"), {});
  EXPECT_FALSE(other.allowed);
  EXPECT_NE(other.why.find("different test data"), std::string::npos) << other.why;
  EXPECT_TRUE(may_promote(facts(2, 0.99, "t2"), facts(1, 0.9, "t1"), {.need_same_data = false}).allowed);
  VersionFacts unknown = facts(1, 0.9);
  unknown.data.clear();
  EXPECT_NE(may_promote(facts(2, 0.99), unknown, {}).why.find("not recorded"), std::string::npos);
}

TEST(PromotionRules, RefuseAFailedCheckANanOrAMissingMetric) {
  VersionFacts failed = facts(2, 0.99);
  failed.checks["finite"] = "a value of fc.weight is infinite or no number";
  EXPECT_FALSE(may_promote(failed, facts(1, 0.9), {}).allowed);
  EXPECT_TRUE(may_promote(failed, facts(1, 0.9), {.need_checks = false}).allowed);
  VersionFacts unchecked = facts(2, 0.99);
  unchecked.checks.clear();
  EXPECT_FALSE(may_promote(unchecked, facts(1, 0.9), {}).allowed);
  EXPECT_FALSE(may_promote(facts(2, NAN), facts(1, 0.9), {}).allowed);
  EXPECT_FALSE(may_promote(facts(2, NAN), std::nullopt, {}).allowed);
  const Decision infinite = may_promote(facts(2, -HUGE_VAL), std::nullopt, {.metric = "test/loss"});
  EXPECT_FALSE(infinite.allowed) << infinite.why;
  EXPECT_FALSE(may_promote(facts(2, -HUGE_VAL), facts(1, -HUGE_VAL), {.metric = "test/loss"}).allowed);
  EXPECT_TRUE(may_promote(facts(2, 0.1), facts(1, -HUGE_VAL), {.metric = "test/loss"}).allowed);
  EXPECT_FALSE(may_promote(facts(2, 0.99), facts(1, 0.9), {.metric = "test/f1"}).allowed);
}

// The metric that is shown beside a version must be the one that decides its promotion.
TEST(PromotionRules, CompareTheMetricThatIsPicked) {
  RandomStream random(RandomKey{10});
  const std::vector<std::string> names = {"test/accuracy", "test/loss", "val/accuracy",
                                          "val/loss",      "val/f1",    "test/f1"};
  for (int i = 0; i < 500; ++i) {
    VersionFacts one = facts(1, 0.5);
    one.metrics.clear();
    for (const std::string& name : names) {
      if (random.below(3) == 0) one.metrics[name] = 0.5;
    }
    one.monitor = random.below(3) == 0 ? "" : names[random.below(names.size())];
    const std::string picked = pick_metric(one, "auto"), why = may_promote(one, std::nullopt, {}).why;
    EXPECT_TRUE(why.ends_with("no metric " + picked) || why.ends_with("; " + picked + " is 0.5")) << why;
    EXPECT_EQ(pick_metric(one, "a/b"), "a/b");
  }
}

// Whatever the metrics are, a decision has a reason and never allows a candidate that is worse than the champion.
TEST(PromotionRules, NeverAllowAWorseCandidate) {
  RandomStream random(RandomKey{9});
  for (int i = 0; i < 2000; ++i) {
    const double a = random.uniform(), b = random.uniform();
    const Decision decision = may_promote(facts(2, a), facts(1, b), {});
    EXPECT_EQ(decision.allowed, a >= b);
    EXPECT_FALSE(decision.why.empty());
  }
}

class Registry : public testing::Test {
 protected:
  Registry() : store(folder / "s.db"), artifacts(folder / "artifacts") {}

  // Makes and indexes a run that has ended with this accuracy.
  store::Record ended_run(const std::string& path, double accuracy, const std::string& test = "t") {
    auto& run = *runs.emplace_back(std::make_unique<FakeRun>(root(), path, random));
    run.grow(3);
    rundir::Outcome outcome;
    outcome.digest = sha256_hex(path).substr(0, 32);
    outcome.last = {{"test/accuracy", accuracy}, {"val/accuracy", accuracy}};
    outcome.best = rundir::BestMetric{"val/accuracy", accuracy, 3};
    const std::string weights = std::string(4, static_cast<char>(runs.size())) + std::string(4, '\0');
    checkpoint::write_safetensors(system_disk(), prepared(run) + "/model.safetensors",
                                  {{"w", DType::f32, {2}, std::as_bytes(std::span(weights.data(), weights.size()))}},
                                  {});
    write_file(run.directory() + "/data.json", "{\"format\":\"sinew-data\",\"version\":1,\"digest\":\"all-" + test +
                                                   "\",\"parts\":{\"test\":{\"digest\":\"" + test +
                                                   "\"},\"val\":{\"digest\":\"v\"}}}");
    write_file(run.directory() + "/report.json", rundir::outcome_json(outcome));
    run.die();
    index();
    return find_run(store, path);
  }
  static std::string prepared(const FakeRun& run) {
    std::filesystem::create_directories(run.directory() + "/model");
    return run.directory() + "/model";
  }
  void index() {
    Index index(store, {.root = root()});
    const auto report = index.pass();
    ASSERT_TRUE(report.problems.empty()) << report.problems[0];
  }
  std::string root() const { return folder / "runs"; }
  VersionFacts add(const std::string& path, double accuracy, const std::string& test = "t") {
    return register_run(store, artifacts, ended_run(path, accuracy, test), root(), {.model = "m"});
  }
  int64_t alias(const std::string& name) {
    const auto model = store.find({Kind::kModel, "m"});
    for (const auto& alias : model->aliases)
      if (alias.name == name) return alias.version;
    return 0;
  }

  Folder folder;
  RandomStream random{RandomKey{5}};
  store::Store store;
  Artifacts artifacts;
  std::vector<std::unique_ptr<FakeRun>> runs;
};

TEST_F(Registry, ARunBecomesAVersionWithItsFilesFrozen) {
  const VersionFacts made = add("job/a", 0.9);
  EXPECT_EQ(made.version, 1);
  EXPECT_EQ(made.checks.at("finite"), "passed");
  EXPECT_EQ(made.checks.at("done"), "passed");
  EXPECT_EQ(alias(kCandidate), 1);
  std::map<std::string, std::string> paths;
  for (const auto& file : store.attachments({Kind::kVersion, "m", 1})) paths[file.path] = file.digest;
  for (const char* path :
       {"model/model.safetensors", "resolved.yaml", "environment.json", "report.json", "data.json"}) {
    ASSERT_TRUE(paths.contains(path)) << path;
    EXPECT_TRUE(artifacts.verify(paths[path]));
  }
  runs[0]->remove();  // the version must survive without its run directory
  index();
  EXPECT_TRUE(artifacts.verify(paths["model/model.safetensors"]));
  const auto collected = collect_garbage(store, artifacts);
  EXPECT_EQ(collected.blobs, 0);
  EXPECT_TRUE(collected.problems.empty());
  EXPECT_EQ(facts_of(store, find_version(store, "m@candidate")).digest, made.digest);
}

// Garbage collection must refuse a store that does not refer to these blobs, because it would delete all of them.
TEST_F(Registry, AnotherStoreNeitherCollectsNorFillsTheseArtifacts) {
  add("job/a", 0.9);
  const size_t before = artifacts.list().size();
  store::Store other(folder / "other.db");
  const auto expect_refused = [&](const std::string& says) {
    try {
      collect_garbage(other, artifacts);
      ADD_FAILURE() << "it collected";
    } catch (const Error& error) {
      EXPECT_EQ(error.code, ErrorCode("ARTIFACTS_FOREIGN"));
      EXPECT_NE(std::string(error.what()).find(says), std::string::npos) << error.what();
    }
    EXPECT_EQ(code_of([&] { claim(other, artifacts); }), "ARTIFACTS_FOREIGN");
  };
  expect_refused(artifacts.owner());
  std::filesystem::remove(artifacts.directory() + "/store");  // older versions did not write this file
  expect_refused(artifacts.directory());
  EXPECT_EQ(collect_garbage(store, artifacts).blobs, 0);
  EXPECT_NE(artifacts.owner(), "");
  EXPECT_EQ(artifacts.list().size(), before);
}

TEST_F(Registry, TheSameRunIsTheSameVersion) {
  const store::Record run = ended_run("job/a", 0.9);
  EXPECT_EQ(register_run(store, artifacts, run, root(), {.model = "m"}).version, 1);
  EXPECT_EQ(register_run(store, artifacts, run, root(), {.model = "m"}).version, 1);
  EXPECT_EQ(register_run(store, artifacts, run, root(), {.model = "other"}).version, 1);
  EXPECT_EQ(add("job/b", 0.8).version, 2);
}

TEST_F(Registry, RegisteringAgainRepairsDamagedFiles) {
  const store::Record run = ended_run("job/a", 0.9);
  register_run(store, artifacts, run, root(), {.model = "m"});
  for (const auto& file : store.attachments({Kind::kVersion, "m", 1})) {
    const std::string path = artifacts.directory() + "/" + file.digest.substr(0, 2) + "/" + file.digest;
    if (!std::filesystem::exists(path)) continue;  // stored as chunks
    write_file(path, std::string(static_cast<size_t>(file.bytes), '\0'));
    EXPECT_FALSE(artifacts.verify(file.digest)) << file.path;
  }
  EXPECT_EQ(register_run(store, artifacts, run, root(), {.model = "m"}).version, 1);
  for (const auto& file : store.attachments({Kind::kVersion, "m", 1})) EXPECT_TRUE(artifacts.verify(file.digest));
}

TEST_F(Registry, ThreadsThatRegisterGetDifferentNumbers) {
  std::vector<store::Record> records;
  for (int i = 0; i < 4; ++i) records.push_back(ended_run("job/" + std::to_string(i), 0.5));
  std::vector<VersionFacts> made(8);
  std::vector<std::thread> threads;
  for (size_t i = 0; i < made.size(); ++i) {  // each run twice
    threads.emplace_back([&, i] { made[i] = register_run(store, artifacts, records[i % 4], root(), {.model = "m"}); });
  }
  for (std::thread& thread : threads) thread.join();
  std::set<int64_t> numbers;
  for (size_t i = 0; i < 4; ++i) {
    EXPECT_EQ(made[i].version, made[i + 4].version);
    numbers.insert(made[i].version);
    EXPECT_FALSE(store.attachments({Kind::kVersion, "m", made[i].version}).empty());
  }
  EXPECT_EQ(numbers, (std::set<int64_t>{1, 2, 3, 4}));
}

TEST_F(Registry, AVersionIsCheckedOutWithItsOwnFiles) {
  add("job/a", 0.9);
  add("job/b", 0.95);
  promote(store, "m", 1, {});
  const std::string champion = check_out(store, artifacts, find_version(store, "m"), root());
  EXPECT_EQ(champion, check_out(store, artifacts, find_version(store, "m@champion"), root()));
  const std::string newest = check_out(store, artifacts, find_version(store, "m/2"), root());
  EXPECT_NE(champion, newest);
  for (const auto& file : store.attachments({Kind::kVersion, "m", 2}, "model")) {
    const auto bytes = system_disk().read(newest + "/../" + file.path);
    EXPECT_EQ(sha256_hex(bytes), file.digest) << file.path;
  }
  EXPECT_EQ(version_of_checkout(root(), newest + "/model.safetensors"), (store::Subject{Kind::kVersion, "m", 2}));
  EXPECT_EQ(version_of_checkout(root(), runs[0]->directory()), std::nullopt);

  // A directory that was renamed or edited belongs to no version.
  std::filesystem::copy(newest + "/..", root() + "/.sinew/versions/m-7-0123456789abcdef",
                        std::filesystem::copy_options::recursive);
  EXPECT_EQ(version_of_checkout(root(), root() + "/.sinew/versions/m-7-0123456789abcdef"), std::nullopt);

  remove_old_checkouts(store, root());
  EXPECT_TRUE(std::filesystem::exists(newest));
  EXPECT_FALSE(std::filesystem::exists(root() + "/.sinew/versions/m-7-0123456789abcdef"));
  set_alias(store, "m", kCandidate, 0);
  delete_version(store, "m", 2);
  remove_old_checkouts(store, root());
  EXPECT_FALSE(std::filesystem::exists(newest));
  EXPECT_TRUE(std::filesystem::exists(champion));
  EXPECT_EQ(code_of([&] { check_out(store, artifacts, find_version(store, "m/2"), root()); }),
            "MODEL_VERSION_NOT_FOUND");
}

// An MLflow client may attach files with any path to a version.
TEST_F(Registry, ACheckoutWritesNothingOutsideItsDirectory) {
  add("job/a", 0.9);
  Artifacts::Pin pin = artifacts.pin();
  const BlobInfo blob = pin.put("x");
  for (const char* path : {"../escaped", "model/../../../escaped", "/tmp/sinew-escaped"}) {
    // The store may refuse the path, too.
    (void)store.write(store::Attach{{Kind::kVersion, "m", 1}, path, blob.digest, blob.bytes});
  }
  const std::string model = check_out(store, artifacts, find_version(store, "m/1"), root());
  EXPECT_TRUE(std::filesystem::exists(model + "/model.safetensors"));
  EXPECT_FALSE(std::filesystem::exists("/tmp/sinew-escaped"));
  for (const auto& entry : std::filesystem::recursive_directory_iterator(folder.path()))
    EXPECT_NE(entry.path().filename(), "escaped");
}

TEST_F(Registry, DetectsWeightsThatAreInfiniteOrNan) {
  const store::Record run = ended_run("job/a", 0.9);
  const float bad[] = {1, NAN};
  checkpoint::write_safetensors(system_disk(), runs[0]->directory() + "/model/model.safetensors",
                                {{"w", DType::f32, {2}, std::as_bytes(std::span(bad))}}, {});
  const VersionFacts made = register_run(store, artifacts, run, root(), {.model = "m"});
  EXPECT_EQ(made.checks.at("finite"), "a value of w is infinite or NaN");
  EXPECT_FALSE(promote(store, "m", 1, {}).done);
}

TEST_F(Registry, PromotesByItsRulesAndRollsBack) {
  add("job/a", 0.9);
  add("job/b", 0.8);
  add("job/c", 0.95);
  EXPECT_TRUE(promote(store, "m", 1, {}).done);
  const Promotion refused = promote(store, "m", 2, {});
  EXPECT_FALSE(refused.done);
  EXPECT_EQ(refused.from, 1);
  EXPECT_EQ(alias(kChampion), 1);
  EXPECT_TRUE(promote(store, "m", 3, {}).done);
  EXPECT_EQ(alias(kChampion), 3);
  const Promotion back = rollback(store, "m");
  EXPECT_TRUE(back.done);
  EXPECT_EQ(back.to, 1);
  EXPECT_EQ(alias(kChampion), 1);
  const Promotion forced = promote(store, "m", 2, {}, kChampion, true);
  EXPECT_TRUE(forced.done);
  EXPECT_EQ(store.find({Kind::kVersion, "m", 2})->tags.at("sinew.decision.champion").substr(0, 16), "forced, although");
  EXPECT_EQ(code_of([&] { promote(store, "m", 9, {}); }), "MODEL_VERSION_NOT_FOUND");
  EXPECT_EQ(code_of([&] { promote(store, "nobody", 1, {}); }), "MODEL_NOT_FOUND");
  EXPECT_FALSE(rollback(store, "m", "nowhere").done);
}

// Another client deletes the champion's version and leaves the alias. The next promotion must still work.
TEST_F(Registry, ADeletedVersionIsNoChampion) {
  add("job/a", 0.9);
  add("job/b", 0.8);
  EXPECT_TRUE(promote(store, "m", 1, {}).done);
  ASSERT_TRUE(store.write(store::Update{{Kind::kVersion, "m", 1}, {}, {}, true}));
  const Promotion promotion = promote(store, "m", 2, {});
  EXPECT_TRUE(promotion.done) << promotion.decision.why;
  EXPECT_NE(promotion.decision.why.find("no champion yet"), std::string::npos) << promotion.decision.why;
  EXPECT_EQ(alias(kChampion), 2);
}

// Many threads promote at once. Each promotion that succeeds must have been decided against the champion of that
// moment.
TEST_F(Registry, ConcurrentPromotionsNeverMakeTheChampionWorse) {
  std::vector<double> accuracy;
  for (int i = 0; i < 6; ++i)
    accuracy.push_back(add("job/" + std::to_string(i), random.uniform()).metrics.at("test/accuracy"));
  std::vector<std::thread> threads;
  for (int64_t version = 1; version <= 6; ++version)
    threads.emplace_back([&, version] { promote(store, "m", version, {}); });
  for (std::thread& thread : threads) thread.join();
  double best = -1;
  for (const auto& event : store.events({.after = 0, .limit = 100'000, .subject = store::Subject{Kind::kModel, "m"}})) {
    if (event.what != "alias" || event.body.find("champion") == std::string::npos) continue;
    const auto to = static_cast<size_t>(event.body[event.body.find("\"to\":") + 5] - '0');
    EXPECT_GE(accuracy[to - 1], best);
    best = accuracy[to - 1];
  }
  EXPECT_EQ(best, *std::max_element(accuracy.begin(), accuracy.end()));
}

// MLflow's client makes versions through web/. The bodies of such versions have no metrics.
TEST_F(Registry, AVersionMadeElsewhereHasTheMetricsOfItsRun) {
  const store::Record run = ended_run("job/a", 0.9);
  ASSERT_TRUE(store.write(store::Create{{Kind::kModel, "m"}}));
  ASSERT_TRUE(store.write(store::AddPoints{run.subject.id, "test/accuracy", {{3, 1, 0.9}}}));
  const char* body = "{\"source\":\"runs:/x/model\",\"description\":\"\"}";
  ASSERT_TRUE(store.write(store::Create{{Kind::kVersion, "m"}, run.subject.id, "", body}));
  const VersionFacts known = facts_of(store, find_version(store, "m/1"));
  EXPECT_EQ(known.run, run.subject.id);
  EXPECT_EQ(known.status, "done");
  ASSERT_TRUE(known.metrics.contains("test/accuracy"));
  EXPECT_EQ(known.metrics.at("test/accuracy"), 0.9);
  EXPECT_TRUE(promote(store, "m", 1, {.need_checks = false}).done);
}

TEST_F(Registry, ADeletedModelIsVisibleAgainOnlyOnRequest) {
  add("job/a", 0.9);
  ASSERT_TRUE(store.write(store::Update{{Kind::kVersion, "m", 1}, {}, {}, true}));
  ASSERT_TRUE(store.write(store::Update{{Kind::kModel, "m"}, {}, {}, true}));
  const store::Record run = ended_run("job/b", 0.8);
  EXPECT_EQ(code_of([&] { register_run(store, artifacts, run, root(), {.model = "m"}); }), "MODEL_DELETED");
  EXPECT_TRUE(store.find({Kind::kModel, "m"})->hidden);
  EXPECT_FALSE(store.find({Kind::kVersion, "m", 2}));
  EXPECT_EQ(register_run(store, artifacts, run, root(), {.model = "m", .restore = true}).version, 2);
  EXPECT_FALSE(store.find({Kind::kModel, "m"})->hidden);
  EXPECT_TRUE(store.find({Kind::kVersion, "m", 1})->hidden);
}

TEST_F(Registry, DeletingAVersionFreesItsBytes) {
  add("job/a", 0.9);
  add("job/b", 0.8);
  EXPECT_EQ(code_of([&] { delete_version(store, "m", 2); }), "MODEL_VERSION_IN_USE") << "it is the candidate";
  delete_version(store, "m", 1);
  EXPECT_EQ(code_of([&] { delete_version(store, "m", 1); }), "MODEL_VERSION_NOT_FOUND");
  EXPECT_EQ(code_of([&] { find_version(store, "m/1"); }), "MODEL_VERSION_NOT_FOUND");
  EXPECT_GT(collect_garbage(store, artifacts).blobs, 0);
  EXPECT_EQ(collect_garbage(store, artifacts).blobs, 0);
  for (const auto& file : store.attachments({Kind::kVersion, "m", 2})) EXPECT_TRUE(artifacts.verify(file.digest));
  EXPECT_TRUE(store.attachments({Kind::kVersion, "m", 1}).empty());
}

// A version that was rolled back, or that lost the alias, comes back only by force.
TEST_F(Registry, AWithdrawalIsNotUndoneByTheGatesOrByAnotherRollback) {
  add("job/a", 0.9);
  add("job/b", 0.95);
  EXPECT_TRUE(promote(store, "m", 1, {}).done);
  EXPECT_TRUE(promote(store, "m", 2, {}).done);
  EXPECT_TRUE(rollback(store, "m").done);
  const Promotion again = rollback(store, "m");
  EXPECT_FALSE(again.done);
  EXPECT_NE(again.decision.why.find("withdrawn"), std::string::npos) << again.decision.why;
  const Promotion by_gates = promote(store, "m", 2, {});
  EXPECT_FALSE(by_gates.done);
  EXPECT_NE(by_gates.decision.why.find("rolled back to version 1"), std::string::npos) << by_gates.decision.why;
  EXPECT_EQ(alias(kChampion), 1);
  EXPECT_TRUE(promote(store, "m", 2, {}, kChampion, true).done);
  EXPECT_EQ(alias(kChampion), 2);
  EXPECT_TRUE(promote(store, "m", 2, {}).done) << "the forced promotion ended the withdrawal";

  EXPECT_TRUE(set_alias(store, "m", kChampion, 1));
  EXPECT_FALSE(promote(store, "m", 2, {}).done);
  EXPECT_TRUE(set_alias(store, "m", kChampion, 2));
  EXPECT_TRUE(set_alias(store, "m", kChampion, 0));
  EXPECT_FALSE(promote(store, "m", 2, {}).done);
  EXPECT_TRUE(promote(store, "m", 1, {}).done) << "version 1 was never withdrawn";
}

TEST_F(Registry, AnAliasThatGoesForwardWithdrawsNothing) {
  add("job/a", 0.9);
  add("job/b", 0.95);
  EXPECT_TRUE(set_alias(store, "m", kChampion, 1));
  EXPECT_TRUE(set_alias(store, "m", kChampion, 2, 1));
  EXPECT_FALSE(set_alias(store, "m", kChampion, 1, 1)) << "it is not the expected version";
  EXPECT_EQ(rollback(store, "m").to, 1);
  EXPECT_EQ(alias(kChampion), 1);
}

TEST_F(Registry, NoAliasMovesWithoutTheLease) {
  add("job/a", 0.9);
  add("job/b", 0.95);
  const auto first = store.write(store::Acquire{"server", "one", 60});
  const Mover mine{{{"server", first->answers.at(0).fence}}};
  EXPECT_TRUE(promote(store, "m", 1, {}, kChampion, false, mine).done);
  EXPECT_TRUE(promote(store, "m", 2, {}, kChampion, false, mine).done);
  ASSERT_TRUE(store.write(store::Release{"server", mine.held[0].fence}));
  ASSERT_TRUE(store.write(store::Acquire{"server", "another", 60}));
  EXPECT_EQ(code_of([&] { rollback(store, "m", kChampion, mine); }), "MODEL_CHANGE_REFUSED");
  EXPECT_EQ(code_of([&] { promote(store, "m", 1, {}, kChampion, true, mine); }), "MODEL_CHANGE_REFUSED");
  EXPECT_EQ(alias(kChampion), 2);
}

TEST_F(Registry, LineageTellsWhatAVersionCameFrom) {
  add("job/a", 0.9, "t7");
  const std::string text = to_string(lineage(store, {Kind::kVersion, "m", 1}));
  for (const char* part :
       {"m version 1", "run: run job/a, finished", "data: data all-t7", "job: ", "code: sinew 0.1.0"})
    EXPECT_NE(text.find(part), std::string::npos) << part << " in\n" << text;
}

TEST_F(Registry, VersionsAreFoundByTheirNames) {
  add("job/a", 0.9);
  add("job/b", 0.91);
  EXPECT_EQ(find_version(store, "m").subject.number, 2);  // there is no champion, so this is the newest version
  promote(store, "m", 1, {});
  EXPECT_EQ(find_version(store, "m").subject.number, 1);
  EXPECT_EQ(find_version(store, "m/2").subject.number, 2);
  EXPECT_EQ(find_version(store, "m@candidate").subject.number, 2);
  const std::pair<const char*, const char*> wrong[] = {{"n", "MODEL_NOT_FOUND"},
                                                       {"m/7", "MODEL_VERSION_NOT_FOUND"},
                                                       {"m@x", "MODEL_ALIAS_NOT_FOUND"},
                                                       {"", "MODEL_NOT_FOUND"},
                                                       {"m/0", "MODEL_NOT_FOUND"}};
  for (const auto& [name, code] : wrong) EXPECT_EQ(code_of([&] { find_version(store, name); }), code) << name;
}

TEST(Facts, ReadBackAsWritten) {
  VersionFacts one = facts(3, 0.25);
  one.metrics["a"] = HUGE_VAL;
  one.metrics["b"] = -HUGE_VAL;
  one.run = "r", one.status = "done", one.digest = "d", one.code = "c", one.environment = "e", one.bytes = 7;
  const auto back = parse_facts(facts_json(one));
  ASSERT_TRUE(back);
  EXPECT_EQ(facts_json(*back), facts_json(one));
  EXPECT_EQ(back->metrics.at("a"), HUGE_VAL);
  EXPECT_FALSE(parse_facts("[]"));
  EXPECT_FALSE(parse_facts("{\"metrics\":{\"a\":[]}}"));
  for (const char* none : {"\"abc\"", "\"1\"", "\"\"", "\"nan\"", "null", "true", "{}"})
    EXPECT_FALSE(parse_facts("{\"metrics\":{\"a\":" + std::string(none) + "}}")) << none;
}

}  // namespace
}  // namespace sinew::registry
