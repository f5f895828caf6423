// Files that are accepted, and what they mean.
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

TEST(GoodFiles, LeaveEverythingNotGivenAtItsDefault) {
  Job expected;
  expected.data.train.path = "x";
  EXPECT_EQ(good("data: {train: x}"), expected);
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

TEST(Variables, OfferTheirCulprit) {
  EXPECT_EQ(
      problems_of("data: {train: '${E}'}", {}, {{"E", ""}}),
      std::vector<std::string>{"job:1:15: data.train.path is empty, from '${E}' / to mean 'images and labels are given "
                               "instead', leave the key out"});
  EXPECT_EQ(problems_of("data: {train: x}\nname: ${N}", {}, {{"N", "a/b"}}).at(0).substr(0, 45),
            "job:2:7: name can not be 'a/b', from '${N}' /");
}

// Written to resolved.yaml, such a value would make it a file that nothing reads.
TEST(Variables, AreTextOrRefused) {
  for (const char* value : {"/data/\x96", "\xC3", "a\xED\xA0\x80z"}) {
    EXPECT_EQ(problems_of("data: {train: '${D}/x'}", {}, {{"D", value}}),
              std::vector<std::string>{"job:1:15: data.train.path is not UTF-8 text, from '${D}/x' / set the variable "
                                       "to UTF-8 text"});
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
      {"optimizer.lrr=1", "override: 'optimizer.lrr=1': unknown key 'optimizer.lrr' / did you mean 'optimizer.lr'?"},
      {"lr=1", "override: 'lr=1': unknown key 'lr' / did you mean 'optimizer.lr'?"},
      {"learning_rate=1", "override: 'learning_rate=1': unknown key 'learning_rate' / did you mean 'optimizer.lr'?"},
      {"trainer.zebra=1",
       "override: 'trainer.zebra=1': unknown key 'trainer.zebra' / keys here: max_duration, batch_size, shards, lanes, "
       "precision, memory_format, device, grad_clip_norm, ema_decay, drop_last, seed, eval_interval, eval_batch_size, "
       "batch_size_ramp, "
       "batch_size_ramp_interval"},
      {"optimizer.lr", "override: 'optimizer.lr': an override is key=value / for example optimizer.lr=3e-4"},
      {"--lr", "override: '--lr': an override is key=value / for example optimizer.lr=3e-4"},
      {"=3", "override: '=3': an override is key=value / for example optimizer.lr=3e-4"},
      {"", "override: '': an override is key=value / for example optimizer.lr=3e-4"},
      {"optimizer.lr=",
       "override: 'optimizer.lr=': optimizer.lr has no value / write a number above 0 and at most 1000000, or "
       "leave the key out"},
      {"optimizer.lr=fast",
       "override: 'optimizer.lr=fast': optimizer.lr needs a number above 0 and at most 1000000, got the "
       "string 'fast' / for example lr: 0.001"},
      {"model.hidden=[1, 2",
       "override: 'model.hidden=[1, 2': this bracket is not closed / close it with ']' or '}', and put a "
       "',' between its items"},
      {"optimizer.momentum=0.9",
       "override: 'optimizer.momentum=0.9': optimizer.momentum has no effect with optimizer.name: adamw (the default) "
       "/ "
       "delete it, or choose optimizer.name: sgd or rmsprop"},
  };
  for (const auto& [text, expected] : cases) {
    EXPECT_EQ(problems_of(kData, {text}), std::vector<std::string>{expected}) << text;
  }
}

TEST(Overrides, SayWhenOneUndoesAnother) {
  EXPECT_EQ(problems_of(kData, {"trainer.seed=1", "trainer.seed=2"}),
            std::vector<std::string>{
                "override: 'trainer.seed=2': it undoes 'trainer.seed=1' given before it / keep one of the "
                "two, or give the section first"});
  EXPECT_EQ(problems_of(kData, {"optimizer.lr=1", "optimizer=sgd"}).size(), 1U);
  EXPECT_EQ(problems_of(kData, {"optimizer=sgd", "optimizer.lr=1"}).size(), 0U);
}

TEST(Overrides, OfferToReplaceTheWholeSection) {
  EXPECT_EQ(problems_of("data: {train: x}\nmodel: {name: mlp, hidden: [3]}\n", {"model.name=cnn"}),
            std::vector<std::string>{"job:2:20: model.hidden has no effect with model.name: cnn / delete it, or choose "
                                     "model.name: mlp; or replace the whole section: model=cnn"});
}

}  // namespace
}  // namespace sinew::spec
