#include <gtest/gtest.h>

#include "registry/registry.h"
#include "registry/testing.h"

namespace sinew::registry {
namespace {

RunIdentity example() {
  RunIdentity identity;
  identity.digest = "d1";
  identity.options = {{"optimizer.lr", "0.1"}, {"trainer.lanes", "auto"}};
  identity.environment = {{"libtorch", "2.13.0"}, {"cpu", "one"}, {"cores", "2"}};
  identity.data.digest = "data";
  identity.data.splits["train"] = {"t", "", 1, 3, {{"path", "a.csv", 3, "x"}}};
  identity.ledger = {{1, "a"}, {2, "b"}};
  return identity;
}

TEST(Identity, RunsWithEqualDigestsAreTheSameWhateverElseDiffers) {
  RunIdentity again = example();
  again.environment["cpu"] = "another";
  const Comparison comparison = compare(example(), again);
  EXPECT_TRUE(comparison.same);
  EXPECT_EQ(comparison.facts.size(), 1u);
}

TEST(Identity, NamesTheFirstStepAndTheLikelyCause) {
  RunIdentity again = example();
  again.digest = "d2";
  again.ledger = {{1, "a"}, {2, "c"}, {3, "d"}};
  EXPECT_NE(compare(example(), again).why.find("from step 2 on"), std::string::npos);
  EXPECT_NE(compare(example(), again).why.find("not deterministic"), std::string::npos);

  again.environment["libtorch"] = "2.14.0";
  EXPECT_NE(compare(example(), again).why.find("likely cause: the environment differs: libtorch was 2.13.0"),
            std::string::npos);
  again.options["optimizer.lr"] = "0.2";
  EXPECT_NE(compare(example(), again).why.find("likely cause: the job differs: optimizer.lr"), std::string::npos);
  again.data.digest = "other";
  again.data.splits["train"] = {"u", "", 1, 3, {{"path", "a.csv", 3, "y"}}};
  EXPECT_NE(compare(example(), again).why.find("likely cause: the data differs: train: changed path (a.csv)"),
            std::string::npos);
  again.options["trainer.seed"] = "77";
  EXPECT_NE(compare(example(), again).why.find("likely cause: the job differs: trainer.seed was "), std::string::npos)
      << "the splits may follow from the seed";
}

TEST(Identity, LanesCoresAndNamesAreNoCause) {
  RunIdentity again = example();
  again.digest = "d2";
  again.options["trainer.lanes"] = "4";
  again.options["name"] = "other";
  again.environment["cores"] = "64";
  EXPECT_TRUE(compare(example(), again).facts.empty());
}

TEST(Identity, AManualChangeIsTheFirstCause) {
  Folder folder;
  write_file(folder / "run/resolved.yaml", "name: a\n");
  write_file(folder / "run/checkpoints/step-00000100/state.json", R"({"control": []})");
  write_file(folder / "run/checkpoints/step-00000200/state.json",
             R"({"control": [{"step": 120, "kind": "learning_rate", "value": 0.5, "reason": ""},
                             {"step": 130, "kind": "checkpoint", "value": 0, "reason": ""},
                             {"step": 140, "kind": "batch_size", "value": 32.0, "reason": ""}]})");
  write_file(folder / "run/checkpoints/step-00000300/state.json", "{");  // damaged
  RunIdentity manual_changes = example();
  manual_changes.manual_changes = read_identity(folder / "run").manual_changes;
  ASSERT_EQ(manual_changes.manual_changes.size(), 2u);
  RunIdentity again = example();
  again.digest = "d2";
  again.environment["libtorch"] = "2.14.0";
  const std::string why = compare(manual_changes, again).why;
  EXPECT_NE(
      why.find(
          "likely cause: a user changed the recorded run: the learning rate was multiplied by 0.5 from step 120 on"),
      std::string::npos)
      << why;
  again.manual_changes = manual_changes.manual_changes;
  EXPECT_EQ(compare(manual_changes, again).facts.size(), 1u);
}

// If trainer.eval_interval is in seconds, the steps of the evaluations depend on the speed of the machine. So does the
// best step.
TEST(Identity, StepsThatTheClockChoseAreALikelierCauseThanTheHardware) {
  Folder folder;
  write_file(folder / "run/resolved.yaml", "name: a\n");
  write_file(folder / "run/checkpoints/step-00000200/state.json",
             R"({"control": [{"step": 20, "kind": "evaluate", "value": 0, "reason": "", "done": true},
                             {"step": 40, "kind": "evaluate", "value": 0.0, "reason": "", "done": true},
                             {"step": 50, "kind": "stop", "value": 75, "reason": ""},
                             {"step": 60, "kind": "evaluate", "value": 0, "reason": "", "done": false},
                             {"step": 200, "kind": "stop", "value": 0.0, "reason": ""}]})");
  RunIdentity recorded = example();
  recorded.timed_changes = read_identity(folder / "run").timed_changes;
  EXPECT_EQ(recorded.timed_changes,
            (std::vector<std::string>{"an evaluation at step 20", "an evaluation at step 40", "the end at step 200"}));
  RunIdentity again = example();
  again.digest = "d2";
  again.timed_changes = {"an evaluation at step 21"};
  again.environment["libtorch"] = "2.14.0";
  const std::string why = compare(recorded, again).why;
  EXPECT_NE(why.find("likely cause: the clock or a user chose other steps"), std::string::npos) << why;
  EXPECT_NE(why.find("an evaluation at step 21"), std::string::npos) << why;
  again.timed_changes = recorded.timed_changes;
  EXPECT_EQ(compare(recorded, again).facts.size(), 1u);
}

TEST(Identity, ARunWithoutADigestIsNotTheSame) {
  RunIdentity none = example();
  none.digest.clear();
  EXPECT_FALSE(compare(none, none).same);
  EXPECT_NE(compare(none, example()).why.find("the recorded run has no digest"), std::string::npos);
}

}  // namespace
}  // namespace sinew::registry
