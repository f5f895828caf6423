// Tests that read_job accepts valid files and gives them the right meaning.
#include <fstream>
#include <sstream>

#include "spec/expect_problems.h"

namespace sinew::spec {
namespace {

Job good(const std::string& yaml, const std::vector<std::string>& overrides = {}, const Environment& environment = {}) {
  EXPECT_EQ(problems_of(yaml, overrides, environment), std::vector<std::string>{}) << yaml;
  return read_job(yaml, "job", overrides, environment).job;
}

std::string read_file(const std::string& path) {
  std::ifstream file(std::string(SINEW_SOURCE_DIR) + "/" + path, std::ios::binary);
  std::ostringstream text;
  text << file.rdbuf();
  EXPECT_FALSE(text.str().empty()) << path;
  return text.str();
}

TEST(GoodFiles, LeaveOptionsThatAreNotGivenAtTheirDefaults) {
  Job expected;
  expected.data.train.path = "x";
  EXPECT_EQ(good("data: {train: x}"), expected);
}

TEST(GoodFiles, SomeDefaultsDependOnTheModel) {
  Job expected;
  expected.data.train.path = "x";
  expected.model = default_model("tabular");
  EXPECT_EQ(expected.model.hidden, (std::vector<int64_t>{256, 256, 256}));
  EXPECT_EQ(expected.model.activation, "auto");
  EXPECT_EQ(expected.model.dropout, 0.15);
  const Job job = good("data: {train: x}\nmodel: tabular\n");
  EXPECT_EQ(job, expected);
  EXPECT_EQ(good("data: {train: x}\n", {"model.name=tabular"}), expected);
  EXPECT_EQ(good(to_yaml(job)), expected);
  const Job given = good("data: {train: x}\nmodel: {name: tabular, dropout: 0, hidden: [256], activation: relu}\n");
  EXPECT_EQ(given.model.dropout, 0);
  EXPECT_EQ(given.model.hidden, (std::vector<int64_t>{256}));
  EXPECT_EQ(given.model.activation, "relu");
  EXPECT_EQ(good(to_yaml(given)), given);
  EXPECT_EQ(good("data: {train: x}\nmodel: tabular\n", {"model=mlp"}).model, ModelOptions());
  EXPECT_FALSE(changed_options(job).contains("model.hidden"));
  EXPECT_TRUE(changed_options(given).contains("model.hidden"));
}

TEST(GoodFiles, GiveEveryValueOfTheTableJob) {
  const Job job = good(read_file("tests/jobs/table.yaml"));
  Job expected;
  expected.name = "diamonds";
  expected.model.hidden = {64};
  expected.loss.name = "mse";
  expected.data.format = "csv";
  expected.data.train.path = "data/diamonds train.csv";
  expected.data.val.path = "data/diamonds-val.csv";
  expected.data.columns = {"price", {}, {"cut", "color", "clarity"}, {"id"}};
  expected.data.task = "regression";
  expected.data.on_corrupt = "skip";
  expected.data.prefetch_threads = 2;
  expected.data.prefetch_bytes = 64 << 20;
  expected.trainer.max_duration = {7200, Duration::Unit::seconds};
  expected.trainer.batch_size = 512;
  expected.trainer.shards = 8;
  expected.trainer.grad_clip_norm = 1;
  expected.trainer.eval_interval = {0.1, Duration::Unit::fraction};
  expected.optimizer.name = "sgd";
  expected.optimizer.lr = 0.05;
  expected.optimizer.momentum = 0.9;
  expected.optimizer.nesterov = true;
  expected.scheduler.name = "step";
  expected.scheduler.step_size = {5, Duration::Unit::epochs};
  expected.scheduler.gamma = 0.5;
  expected.early_stopping.monitor = "val/loss";
  expected.early_stopping.mode = "min";
  expected.early_stopping.patience = 5;
  expected.logging.interval = {10, Duration::Unit::steps};
  expected.logging.tensorboard = false;
  expected.budget.seconds = 1800;
  EXPECT_EQ(job, expected);
}

TEST(GoodFiles, SurviveWritingAndReading) {
  for (const char* name : {"digits", "table", "photos", "text", "search"}) {
    const Job job = good(read_file(std::string("tests/jobs/") + name + ".yaml"));
    EXPECT_EQ(good(to_yaml(job)), job) << name;
  }
}

TEST(GoodFiles, HaveShortForms) {
  const Job job = good(
      "data: {train: x}\nmodel: resnet18\nloss: mse\noptimizer: sgd\nscheduler: cosine\n"
      "early_stopping: val/loss\n");
  EXPECT_EQ(job.model.name, "resnet18");
  EXPECT_EQ(job.loss.name, "mse");
  EXPECT_EQ(job.optimizer.name, "sgd");
  EXPECT_EQ(job.scheduler.name, "cosine");
  EXPECT_EQ(job.early_stopping.monitor, "val/loss");
  EXPECT_EQ(good("data: {train: {path: x}}").data.train.path, "x");
}

TEST(GoodFiles, MayBeJson) {
  EXPECT_EQ(good("{\"data\": {\"train\": \"x\"}, \"trainer\": {\"seed\": 18446744073709551615, \"batch_size\": 3.0}}")
                .trainer.seed,
            ~0ULL);
}

TEST(GoodFiles, MayUseAnchorsCommentsAndAByteOrderMark) {
  const Job job = good("\xEF\xBB\xBF# a job\r\ndata:\r\n  train: &x 'it''s'  # here\r\n  val: *x\r\n");
  EXPECT_EQ(job.data.val.path, "it's");
}

TEST(GoodFiles, KeepTextThatLooksOddInQuotes) {
  const Job job =
      good("data: {train: 'no', columns: {target: '5', features: ['012', \"a\\\"b\", 'y: z', '# c', été]}}");
  EXPECT_EQ(job.data.train.path, "no");
  EXPECT_EQ(job.data.columns.target, "5");
  EXPECT_EQ(job.data.columns.features, (std::vector<std::string>{"012", "a\"b", "y: z", "# c", "été"}));
}

TEST(Variables, AreReplaced) {
  const Environment environment = {{"DIR", "/data"}, {"EMPTY", ""}, {"ODD", "${DIR} $$"}};
  const std::pair<const char*, const char*> cases[] = {
      {"${DIR}/x", "/data/x"},
      {"a${DIR}${DIR}", "a/data/data"},
      {"${NONE:-b}", "b"},
      {"${EMPTY:-b}", "b"},
      {"x${EMPTY}", "x"},
      {"x${NONE:-}", "x"},
      {"$$", "$"},
      {"$${DIR}", "${DIR}"},
      {"$DIR", "$DIR"},
      {"a$", "a$"},
      {"$$$", "$$"},
      {"${NONE:-$x:-y}", "$x:-y"},
      {"${ODD}", "${DIR} $$"},
  };
  for (const auto& [text, expected] : cases) {
    EXPECT_EQ(good("data: {train: '" + std::string(text) + "'}", {}, environment).data.train.path, expected) << text;
  }
}

TEST(Variables, ProblemsQuoteTheVariable) {
  EXPECT_TRUE(problems_are(problems_of("data: {train: '${E}'}", {}, {{"E", ""}}),
                           {"job:1:15: SPEC_BAD_VARIABLE_VALUE | '${E}' | data.train.path"}));
  EXPECT_TRUE(problems_are(problems_of("data: {train: x}\nname: ${N}", {}, {{"N", "a/b"}}),
                           {"job:2:7: SPEC_BAD_VARIABLE_VALUE | name | 'a/b' | '${N}'"}));
}

// read_job refuses a value that is not UTF-8, because to_yaml would write it to resolved.yaml and make that file
// unreadable.
TEST(Variables, ValuesThatAreNotUtf8AreRefused) {
  for (const char* value : {"/data/\x96", "\xC3", "a\xED\xA0\x80z"}) {
    EXPECT_TRUE(problems_are(problems_of("data: {train: '${D}/x'}", {}, {{"D", value}}),
                             {"job:1:15: SPEC_BAD_VARIABLE_VALUE | '${D}/x' | data.train.path"}));
    EXPECT_EQ(problems_of("command: ['${D}']", {}, {{"D", value}}).size(), 1U);
    EXPECT_EQ(problems_of("command: [x]\nenv: {A: '${D}'}", {}, {{"D", value}}).size(), 1U);
  }
  EXPECT_EQ(good("data: {train: '${D}/x'}", {}, {{"D", "/Müller"}}).data.train.path, "/Müller/x");
}

TEST(Overrides, ReplaceAndAdd) {
  const std::string yaml = "data: {train: x}\nmodel: cnn\noptimizer: {name: sgd, momentum: 0.9}\n";
  EXPECT_EQ(good(yaml, {"optimizer.lr=3e-4"}).optimizer.lr, 3e-4);
  EXPECT_EQ(good(yaml, {"model.channels=[8, 16]"}).model.channels, (std::vector<int64_t>{8, 16}));
  EXPECT_EQ(good(yaml, {"optimizer=adamw"}).optimizer.momentum, 0);
  EXPECT_EQ(good(yaml, {"optimizer={name: adam, betas: [0, 0.5]}"}).optimizer.betas[1], 0.5);
  EXPECT_EQ(good(yaml, {"data.train={images: a, labels: b}"}).data.train.images, "a");
  EXPECT_EQ(good("data: {format: csv}\n", {"data.train=x=y.csv", "data.columns.target=z"}).data.train.path, "x=y.csv");
  EXPECT_EQ(good(yaml, {"objective=val/loss <= 0.1"}).objective, (Objective{"val/loss", false, 0.1}));
  EXPECT_EQ(good("data: {train: x}\ntrainer: {seed: bad}\n", {"trainer.seed=3"}).trainer.seed, 3U);
}

TEST(Overrides, AreRefusedWithTheirText) {
  const std::pair<const char*, const char*> cases[] = {
      {"optimizer.lrr=1", "override: SPEC_UNKNOWN_KEY | 'optimizer.lrr=1' | 'optimizer.lrr' | 'optimizer.lr'"},
      {"lr=1", "override: SPEC_UNKNOWN_KEY | 'lr=1' | 'lr' | 'optimizer.lr'"},
      {"learning_rate=1", "override: SPEC_UNKNOWN_KEY | 'learning_rate=1' | 'learning_rate' | 'optimizer.lr'"},
      {"trainer.zebra=1", "override: SPEC_UNKNOWN_KEY | 'trainer.zebra=1' | max_duration, batch_size"},
      {"optimizer.lr", "override: SPEC_BAD_OVERRIDE | 'optimizer.lr'"},
      {"--lr", "override: SPEC_BAD_OVERRIDE | '--lr'"},
      {"=3", "override: SPEC_BAD_OVERRIDE | '=3'"},
      {"", "override: SPEC_BAD_OVERRIDE"},
      {"optimizer.lr=", "override: SPEC_MISSING_VALUE | 'optimizer.lr=' | optimizer.lr has no value"},
      {"optimizer.lr=fast", "override: SPEC_WRONG_TYPE | 'optimizer.lr=fast' | 'fast'"},
      {"model.hidden=[1, 2", "override: SPEC_NOT_CLOSED | 'model.hidden=[1, 2'"},
      {"optimizer.momentum=0.9",
       "override: SPEC_NO_EFFECT | 'optimizer.momentum=0.9' | optimizer.name: adamw | sgd or rmsprop"},
  };
  for (const auto& [text, expected] : cases) {
    EXPECT_TRUE(problems_are(problems_of(kData, {text}), {expected})) << text;
  }
}

TEST(Overrides, RefuseAnOverrideThatUndoesAnEarlierOne) {
  EXPECT_TRUE(problems_are(problems_of(kData, {"trainer.seed=1", "trainer.seed=2"}),
                           {"override: SPEC_BAD_OVERRIDE | 'trainer.seed=2' | 'trainer.seed=1'"}));
  EXPECT_EQ(problems_of(kData, {"optimizer.lr=1", "optimizer=sgd"}).size(), 1U);
  EXPECT_EQ(problems_of(kData, {"optimizer=sgd", "optimizer.lr=1"}).size(), 0U);
}

TEST(Overrides, TheHintShowsHowToReplaceTheSection) {
  EXPECT_TRUE(problems_are(problems_of("data: {train: x}\nmodel: {name: mlp, hidden: [3]}\n", {"model.name=cnn"}),
                           {"job:2:20: SPEC_NO_EFFECT | model.hidden | model.name: cnn | model=cnn"}));
}

}  // namespace
}  // namespace sinew::spec
