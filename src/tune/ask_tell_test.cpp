#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "tune/testing.h"

namespace sinew::tune {
namespace {

using nlohmann::json;

constexpr const char* kInit =
    R"({"cmd":"init","sampler":"random","seed":3,"budget":10,"directions":["minimize"],"unknown":[1],
        "space":[{"name":"x","type":"float","low":0,"high":1,"log":false},
                 {"name":"opt","type":"cat","choices":["sgd","adam"]},
                 {"name":"momentum","type":"float","low":0,"high":0.99,"if":{"opt":["sgd"]}}]})";

// A program that asks and tells.
class Program {
 public:
  json say(const std::string& line) {
    const auto answer = side_.answer(line);
    EXPECT_TRUE(answer);
    EXPECT_EQ(answer->find('\n'), std::string::npos);
    return json::parse(*answer);
  }

 private:
  AskTell side_;
};

TEST(AskTell, ASessionFollowsTheFormat) {
  Program program;
  EXPECT_EQ(program.say(kInit), json({{"ok", true}}));
  for (int id = 0; id < 20; ++id) {
    const json asked = program.say(R"({"cmd":"ask"})");
    EXPECT_EQ(asked["id"], id);
    EXPECT_EQ(asked["params"].contains("momentum"), asked["params"]["opt"] == "sgd");
    const json told = {{"cmd", "tell"}, {"id", id}, {"value", 0.5}};
    EXPECT_EQ(program.say(told.dump()), json({{"ok", true}}));
  }
  EXPECT_TRUE(program.say(R"({"cmd":"ask","why":true})")["why"].is_string());
  EXPECT_EQ(AskTell().answer(R"({"cmd":"quit"})"), std::nullopt);
}

TEST(AskTell, AcceptsEveryFinalState) {
  Program program;
  program.say(kInit);
  for (const char* how : {R"("value":1)", R"("values":[2],"constraints":[-1,0.5])", R"("state":"pruned")",
                          R"("state":"pruned","value":3)", R"("state":"failed")", R"("value":NaN)",
                          R"("value":-Infinity)", R"("value":"Infinity")"}) {
    const std::string id = program.say(R"({"cmd":"ask"})")["id"].dump();
    EXPECT_EQ(program.say(R"({"cmd":"tell","id":)" + id + "," + how + "}"), json({{"ok", true}})) << how;
  }
}

TEST(AskTell, AnInvalidRequestIsAnErrorAndChangesNothing) {
  Program program;
  EXPECT_EQ(program.say(R"({"cmd":"ask"})")["code"], "ASK_TELL_NO_STUDY");
  program.say(kInit);
  program.say(R"({"cmd":"ask"})");
  const std::pair<const char*, std::string> requests[] = {
      {"", "ASK_TELL_BAD_LINE"},
      {"{", "ASK_TELL_BAD_LINE"},
      {"null", "ASK_TELL_BAD_LINE"},
      {"[]", "ASK_TELL_BAD_LINE"},
      {"42", "ASK_TELL_BAD_LINE"},
      {"\xff\xfe", "ASK_TELL_BAD_LINE"},
      {R"({"cmd":"dance"})", "ASK_TELL_UNKNOWN_COMMAND"},
      {R"({"cmd":7})", "ASK_TELL_BAD_VALUE"},
      {R"({})", "ASK_TELL_UNKNOWN_COMMAND"},
      {R"({"cmd":"tell"})", "ASK_TELL_BAD_VALUE"},
      {R"({"cmd":"tell","id":"x","value":1})", "ASK_TELL_BAD_VALUE"},
      {R"({"cmd":"tell","id":7,"value":1})", "TUNE_UNKNOWN_TRIAL"},
      {R"({"cmd":"tell","id":-1,"value":1})", "TUNE_UNKNOWN_TRIAL"},
      {R"({"cmd":"tell","id":0})", "TUNE_BAD_VALUES"},
      {R"({"cmd":"tell","id":0,"value":"high"})", "ASK_TELL_BAD_VALUE"},
      {R"({"cmd":"tell","id":0,"values":[1,2]})", "TUNE_BAD_VALUES"},
      {R"({"cmd":"tell","id":0,"values":1})", "ASK_TELL_BAD_VALUE"},
      {R"({"cmd":"tell","id":0,"value":1,"state":"lost"})", "ASK_TELL_BAD_VALUE"},
      {R"({"cmd":"tell","id":0,"value":1,"constraints":[{}]})", "ASK_TELL_BAD_VALUE"},
      {R"({"cmd":"tell","id":1e300,"value":1})", "ASK_TELL_BAD_VALUE"},
      {R"({"cmd":"ask","no_new":1})", "ASK_TELL_BAD_VALUE"},
      {R"({"cmd":"ask","why":"yes"})", "ASK_TELL_BAD_VALUE"},
      {R"({"cmd":"report","id":0,"step":1,"value":1,"why":"yes"})", "ASK_TELL_BAD_VALUE"},
      {R"({"cmd":"report","id":0,"value":1})", "ASK_TELL_BAD_VALUE"},
      {R"({"cmd":"report","id":0,"step":NaN,"value":1})", "TUNE_BAD_STEP"},
      {R"({"cmd":"report","id":9,"step":1,"value":1})", "TUNE_UNKNOWN_TRIAL"},
      {R"({"cmd":"init"})", "ASK_TELL_BAD_VALUE"},
      {R"({"cmd":"init","space":[]})", "TUNE_EMPTY_SPACE"},
      {R"({"cmd":"init","space":"x"})", "TUNE_BAD_SPACE"},
      {R"({"cmd":"init","sampler":"none of ours","space":[{"name":"x","type":"float","low":0,"high":1}]})",
       "TUNE_UNKNOWN_SAMPLER"},
      {R"({"cmd":"init","pruner":{"name":"nobody"},"space":[{"name":"x","type":"float","low":0,"high":1}]})",
       "TUNE_UNKNOWN_PRUNER"},
      {R"({"cmd":"init","pruner":3,"space":[{"name":"x","type":"float","low":0,"high":1}]})", "ASK_TELL_BAD_VALUE"},
      {R"({"cmd":"init","directions":["up"],"space":[{"name":"x","type":"float","low":0,"high":1}]})",
       "ASK_TELL_BAD_VALUE"},
      {R"({"cmd":"init","directions":[],"space":[{"name":"x","type":"float","low":0,"high":1}]})", "TUNE_NO_OBJECTIVE"},
      {R"({"cmd":"init","sampler":"cmaes","directions":["minimize","minimize"],"space":[{"name":"x","type":"float","low":0,"high":1}]})",
       "TUNE_ONE_OBJECTIVE_ONLY"},
      {R"({"cmd":"init","parameter_constraints":"x < 1","space":[{"name":"x","type":"float","low":0,"high":1}]})",
       "ASK_TELL_BAD_VALUE"},
      {R"({"cmd":"init","parameter_constraints":[1],"space":[{"name":"x","type":"float","low":0,"high":1}]})",
       "ASK_TELL_BAD_VALUE"},
      {R"({"cmd":"init","parameter_constraints":["x <"],"space":[{"name":"x","type":"float","low":0,"high":1}]})",
       code_of([] { Comparison("x <"); })},
      {R"({"cmd":"init","parameter_constraints":["y < 1"],"space":[{"name":"x","type":"float","low":0,"high":1}]})",
       "TUNE_BAD_CONSTRAINT"},
      {R"({"cmd":"init","parameter_constraints":["x < 0.5"],"first":[{"x":0.7}],"space":[{"name":"x","type":"float","low":0,"high":1}]})",
       "TUNE_BAD_POINT"},
      {R"({"cmd":"init","budget":-1,"space":[{"name":"x","type":"float","low":0,"high":1}]})", "TUNE_BAD_BUDGET"},
      {R"({"cmd":"init","seed":1.5,"space":[{"name":"x","type":"float","low":0,"high":1}]})", "ASK_TELL_BAD_VALUE"},
      {R"({"cmd":"init","prefill":[{"params":{"x":3},"value":1}],"space":[{"name":"x","type":"float","low":0,"high":1}]})",
       "TUNE_BAD_POINT"},
      {R"({"cmd":"init","prefill":[3],"space":[{"name":"x","type":"float","low":0,"high":1}]})", "ASK_TELL_BAD_VALUE"},
  };
  for (const auto& [line, code] : requests) {
    const json answer = program.say(line);
    EXPECT_EQ(answer.value("code", "none"), code) << line << " -> " << answer;
  }
  // The refused requests did not change trial 0, and started no trial.
  EXPECT_EQ(program.say(R"({"cmd":"report","id":0,"step":1,"value":1})"), json({{"stop", false}}))
      << "the first of step 1";
  EXPECT_EQ(program.say(R"({"cmd":"tell","id":0,"value":1})"), json({{"ok", true}}));
  EXPECT_EQ(program.say(R"({"cmd":"ask"})")["id"], 1);
}

TEST(AskTell, PrefilledTrialsCount) {
  Program program;
  json init = json::parse(kInit);
  for (int i = 0; i < 5; ++i) init["prefill"].push_back({{"params", {{"x", 0.1 * i}, {"opt", "adam"}}}, {"value", i}});
  EXPECT_EQ(program.say(init.dump()), json({{"ok", true}}));
  EXPECT_EQ(program.say(R"({"cmd":"ask"})")["id"], 5);
}

TEST(AskTell, InitialPointsComeFirstDespitePrefilledTrials) {
  Program program;
  json init = json::parse(kInit);
  init["first"] = {{{"x", 0.5}, {"opt", "adam"}}, {{"x", 0.625}, {"opt", "adam"}}};
  for (int i = 0; i < 3; ++i) init["prefill"].push_back({{"params", {{"x", 0.1 * i}, {"opt", "adam"}}}, {"value", i}});
  EXPECT_EQ(program.say(init.dump()), json({{"ok", true}}));
  for (const json& params : init["first"]) EXPECT_EQ(program.say(R"({"cmd":"ask"})")["params"], params);
  EXPECT_NE(program.say(R"({"cmd":"ask","why":true})")["why"].get<std::string>().substr(0, 5), "first");
}

TEST(AskTell, TheSameLinesGetTheSameAnswers) {
  for (const SamplerMaker& maker : samplers()) {
    std::string lines[2];
    for (std::string& all : lines) {
      Program program;
      json init = json::parse(kInit);
      init["sampler"] = maker.name;
      program.say(init.dump());
      for (int id = 0; id < 25; ++id) {
        const json asked = program.say(R"({"cmd":"ask","why":true})");
        all += asked.dump() + "\n";
        program.say(json({{"cmd", "tell"}, {"id", id}, {"value", asked["params"]["x"]}}).dump());
      }
    }
    EXPECT_EQ(lines[0], lines[1]) << maker.name;
  }
}

TEST(AskTell, AFailedTrialHasNoValue) {
  Program program;
  program.say(kInit);
  program.say(R"({"cmd":"ask"})");
  const json answer = program.say(R"({"cmd":"tell","id":0,"state":"failed","value":3})");
  EXPECT_EQ(answer["code"], "TUNE_BAD_VALUES");
  EXPECT_EQ(program.say(R"({"cmd":"tell","id":0,"state":"failed"})"), json({{"ok", true}}));
}

TEST(AskTell, AStepMayBeAnyNumber) {
  for (const double step : {3.0, 2.5, 2e17, 2e299}) {
    Program program;
    json init = json::parse(kInit);
    init["pruner"] = {{"name", "asha"}, {"min_resource", step}, {"max_resource", 1e305}, {"reduction_factor", 1e300}};
    ASSERT_EQ(program.say(init.dump()), json({{"ok", true}, {"resume", true}}));
    const json id = program.say(R"({"cmd":"ask"})")["id"];
    const json answer =
        program.say(json({{"cmd", "report"}, {"id", id}, {"step", step}, {"value", 1}, {"why", true}}).dump());
    EXPECT_EQ(answer["pause"], true);
    EXPECT_EQ(answer["why"].get<std::string>().find('-'), std::string::npos) << answer;
    EXPECT_EQ(program.say(R"({"cmd":"ask","no_new":true})")["resume_from"], step);
  }
}

TEST(AskTell, ADeeplyNestedLineGetsAnAnswer) {
  const std::string deep = std::string(300'000, '[') + std::string(300'000, ']');
  Program program;
  program.say(kInit);
  for (const char* line :
       {R"({"cmd":"init","space":)", R"({"cmd":"init","pruner":{"name":)", R"({"cmd":"tell","id":)"}) {
    const std::string end = std::string(line).find("pruner") == std::string::npos ? "}" : "}}";
    EXPECT_EQ(program.say(line + deep + end)["code"], "ASK_TELL_BAD_LINE") << line;
  }
  EXPECT_EQ(program.say(deep.substr(0, 300'000))["code"], "ASK_TELL_BAD_LINE");
}

// A line that is damaged at random never crashes the server and always gets exactly one response.
TEST(AskTell, DamagedLinesGetAnAnswer) {
  RandomStream random(random_key({11}));
  const std::string lines[] = {kInit, R"({"cmd":"ask"})", R"({"cmd":"tell","id":0,"value":1,"constraints":[1]})",
                               R"({"cmd":"report","id":0,"step":1,"value":1})"};
  Program program;
  for (int round = 0; round < 4000; ++round) {
    std::string line = lines[random.below(4)];
    for (uint64_t i = random.below(4); i > 0; --i) {
      const size_t at = random.below(line.size());
      if (random.below(2) == 0)
        line.erase(at, 1 + random.below(4));
      else
        line[at] = static_cast<char>(random.below(2) == 0 ? random.below(256) : "{}[]\",:019eE-"[random.below(13)]);
      if (line.empty()) break;
    }
    program.say(line);
  }
}

}  // namespace
}  // namespace sinew::tune
