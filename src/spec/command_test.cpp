// Tests of jobs with a command: read_job accepts valid ones and refuses others, and to_yaml and read_job agree.
#include "spec/expect_problems.h"

namespace sinew::spec {
namespace {

Job good_command(const std::string& yaml, const std::vector<std::string>& overrides = {}) {
  const Reading reading = read_job(yaml, "job", overrides, {{"WHO", "me"}});
  EXPECT_TRUE(reading.problems.empty()) << to_string(reading.problems[0]);
  return reading.job;
}

constexpr const char* kJob = R"(name: forest
command: [python, train.py, --lr, "{params.lr}", 10, true, "", "${WHO}", "{x}"]
workdir: src
grace: 1m
params: {lr: 1e-3, kind: small, fast: true, label: "7"}
env: {PATH: "/x:$$PATH", N: 3}
early_stopping: val/loss
budget: {time: 2h, attempt: 1h}
resources: {nproc: 2, cpus: 1.5, memory: 4GiB, pids: 100}
retries: {crash: 2, exit: 1, exit_codes: [3, 4], backoff: 5s}
metrics: {from: file, file: out.jsonl}
tune: {search: {params.lr: {low: 1e-4, high: 1e-1, log: true}, params.kind: [small, large], params.n: {low: 1, high: 8}}}
)";

TEST(Command, IsReadWithAllItsOptions) {
  const Job job = good_command(std::string(kJob) + "", {"params.n=4"});
  const CommandOptions& command = job.command;
  EXPECT_EQ(command.words,
            (std::vector<std::string>{"python", "train.py", "--lr", "{params.lr}", "10", "true", "", "me", "{x}"}));
  EXPECT_EQ(command.workdir, "src");
  EXPECT_EQ(command.grace_seconds, 60);
  using Kind = NamedValue::Kind;
  EXPECT_EQ(command.params, (std::vector<NamedValue>{{"lr", "1e-3", Kind::number},
                                                     {"kind", "small", Kind::text},
                                                     {"fast", "true", Kind::flag},
                                                     {"label", "7", Kind::text},
                                                     {"n", "4", Kind::number}}));
  EXPECT_EQ(command.env, (std::vector<NamedValue>{{"PATH", "/x:$PATH", Kind::text}, {"N", "3", Kind::number}}));
  EXPECT_EQ(command.resources, (ResourceOptions{2, 1.5, 4LL << 30, 100}));
  EXPECT_EQ(command.retries.exit_codes, (std::vector<int64_t>{3, 4}));
  EXPECT_EQ(command.attempt_seconds, 3600);
  EXPECT_EQ(command.metrics.file, "out.jsonl");
  ASSERT_EQ(job.tune.search.size(), 3U);
  EXPECT_EQ(job.tune.search[0].kind, SearchParameter::Kind::real);
  EXPECT_EQ(job.tune.search[1].choices, (std::vector<std::string>{"small", "large"}));
  EXPECT_EQ(job.tune.search[2].kind, SearchParameter::Kind::whole);
}

TEST(Command, ValuesOfVariablesInEnvAreNotWritten) {
  const std::string yaml = "command: [a, '${TOKEN}']\nparams: {p: '${TOKEN}'}\nenv: {A: 'x${TOKEN}', B: '$$5'}\n";
  const Environment environment = {{"TOKEN", "se$cret"}};
  const Reading reading = read_job(yaml, "job", {"env.C=${TOKEN}"}, environment);
  ASSERT_TRUE(reading.problems.empty()) << to_string(reading.problems[0]);
  const std::vector<NamedValue>& env = reading.job.command.env;
  ASSERT_EQ(env.size(), 3U);
  EXPECT_EQ(env[0].value, "xse$cret");
  EXPECT_EQ(env[1].value, "$5");
  EXPECT_EQ(env[2].value, "se$cret");
  const std::string written = to_yaml(reading.job);
  const size_t section = written.find("\nenv: ");
  ASSERT_NE(section, std::string::npos) << written;
  EXPECT_EQ(written.find("cret", section), std::string::npos) << written;
  EXPECT_EQ(read_job(written, "job", {}, environment).job, reading.job);
  EXPECT_EQ(read_job("command: [a]\nenv: {A: 'x$${TOKEN}'}\n", "job").job.command.env[0].given, "");
  EXPECT_FALSE(read_job(written, "job").problems.empty()) << "whoever goes on with it has to have it";
}

TEST(Command, ReadsBackAsItIsWritten) {
  const Job job = good_command(kJob, {"params.n=4"});
  const std::string yaml = to_yaml(job);
  EXPECT_EQ(good_command(yaml), job) << yaml;
  EXPECT_EQ(yaml.find("model"), std::string::npos) << yaml;
  EXPECT_EQ(to_yaml(good_command("data: {train: x}")).find("retries"), std::string::npos);
}

TEST(Command, MayHaveArgumentsOfSeveralLines) {
  Job job = good_command("command: [sh, -c, \"a\\tb\\nc\"]");
  EXPECT_EQ(job.command.words[2], "a\tb\nc");
  EXPECT_EQ(good_command(to_yaml(job)), job);
  EXPECT_EQ(problems_of("command: [\"a\\x01\"]").size(), 1U);
  EXPECT_EQ(problems_of("command: [a]\nparams: {a: \"b\\nc\"}").size(), 1U);
}

TEST(Command, RefusesOptionsOfATraining) {
  EXPECT_EQ(
      problems_of(
          "command: [a]\nmodel: mlp\ndata: {train: x, format: csv}\ntrainer: {seed: 1}\nlogging: {interval: 1ep}\n"
          "early_stopping: {monitor: val/loss, restore_best: true}\n")
          .size(),
      5U);
  EXPECT_TRUE(problems_are(problems_of("command: [a]\nmodel: mlp\n"), {"job:2:1: SPEC_NO_EFFECT | model "}));
  EXPECT_EQ(problems_of("data: {train: x}\nparams: {a: 1}\nretries: {crash: 1}\nmetrics: stdout\n").size(), 3U);
  EXPECT_EQ(problems_of("command: [a]", {"optimizer.lr=1"}).size(), 1U);
}

TEST(Command, RefusesInvalidValues) {
  const std::pair<const char*, const char*> cases[] = {
      {"command: []", "job:1:10: SPEC_BAD_LENGTH | command | 10000"},
      {"command: a b", "job:1:10: SPEC_WRONG_TYPE | command | list | 'a b'"},
      {"command: [a, [b]]", "job:1:14: SPEC_WRONG_TYPE | command | list"},
      {"command: ['{params.lt}']\nparams: {lr: 1}", "job:1:10: SPEC_UNKNOWN_NAME | {params.lt} | 'lr'"},
      {"command: [a]\nparams: {a: [1]}", "job:2:13: SPEC_WRONG_TYPE | params.a | list"},
      {"command: [a]\nparams: {a-b: 1}", "job:2:10: SPEC_BAD_NAME | 'a-b'"},
      {"command: [a]\nparams: {a: 1, A: 2}", "job:2:9: SPEC_CONFLICT | params | : A"},
      {"command: [a]\nparams: {}", "job:2:9: SPEC_WRONG_TYPE | params | section"},
      {"command: [a]\nparams: {a: no}", "job:2:13: SPEC_WRONG_TYPE | params"},
      {"command: [a]\nenv: {RANK: 1}", "job:2:6: SPEC_NO_EFFECT | env.RANK"},
      {"command: [a]\nmetrics: {file: x}", "job:2:11: SPEC_NO_EFFECT | metrics.file | metrics.from: stdout"},
      {"command: [a]\nresources: {memory: 0}", "job:2:21: SPEC_OUT_OF_RANGE | resources.memory"},
      {"command: [a]\ntune: {search: {params.a: [1]}}", "job:2:16: SPEC_UNKNOWN_NAME | params.a"},
      {"command: [a]\nparams: {a: 1}\ntune: {search: {params.a: {low: 2, high: 1}}}",
       "job:3:27: SPEC_BAD_RANGE | low is 2"},
  };
  for (const auto& [yaml, wanted] : cases) {
    const std::vector<std::string> found = problems_of(yaml);
    ASSERT_FALSE(found.empty()) << yaml;
    EXPECT_TRUE(is_problem(found[0], wanted)) << yaml << "\n" << found[0];
  }
}

TEST(Placeholders, OnlyParamsAreReplaced) {
  const std::vector<NamedValue> params = {{"a", "1"}, {"b_2", "x y"}};
  const std::pair<const char*, const char*> cases[] = {
      {"{params.a}", "1"},
      {"-{params.a}{params.b_2}-", "-1x y-"},
      {"{params.c} {a} {} {params.} {params.a", "{params.c} {a} {} {params.} {params.a"},
      {"{{params.a}}", "{1}"},
      {"{params.{params.a}", "{params.1"},
      {"", ""}};
  for (const auto& [text, wanted] : cases) EXPECT_EQ(fill_in(text, params), wanted) << text;
  EXPECT_EQ(names_to_fill_in("{params.a} {params.c}"), (std::vector<std::string>{"a", "c"}));
}

}  // namespace
}  // namespace sinew::spec
