// Tests that budget.time holds: whole runs of numbers, on a clock that their steps, evaluations and saves move.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <stdlib.h>

#include <filesystem>
#include <fstream>
#include <random>
#include <sstream>

#include "base/exit_code.h"
#include "base/hand_clock.h"
#include "loop/number_trainer.h"

namespace sinew::loop {
namespace {

using testing::HasSubstr;
using testing::Not;

class TimeBudget : public testing::Test {
 protected:
  TimeBudget() {
    std::string pattern = (std::filesystem::temp_directory_path() / "sinew-budget-XXXXXX").string();
    folder_ = mkdtemp(pattern.data());
    plan_.job.name = "budget";
    plan_.job.trainer.max_duration = {1000, spec::Duration::Unit::steps};
    plan_.job.trainer.batch_size = 1;
    plan_.job.trainer.eval_interval = {10, spec::Duration::Unit::steps};
    plan_.job.logging.tensorboard = false;
    plan_.job.checkpoint.monitor = "val/loss";
    plan_.job.early_stopping.monitor = "val/loss";
    plan_.job.early_stopping.patience = 1'000'000;
    plan_.resolved_yaml = "name: budget\n";
    plan_.data.train_size = 1000;
    plan_.data.val_size = 6;  // an evaluation counts half as much as steps with as many samples
    plan_.data.test_size = 6;
    plan_.model = "numbers";
  }
  ~TimeBudget() override { std::filesystem::remove_all(folder_); }

  // Trains, with the durations in seconds of each step and of each evaluation. Returns what the run said. `took_` is
  // then the time of the run.
  std::string train(const std::function<double()>& step, const std::function<double()>& evaluation,
                    bool resume = false) {
    const double began = clock_.seconds;
    trainer_.before_step = [&, step](int64_t) { clock_.seconds = clock_.seconds + step(); };
    trainer_.before_evaluation = [&, evaluation] { clock_.seconds = clock_.seconds + evaluation(); };
    std::string said;
    RunOptions options{.run_directory = folder_, .resume = resume};
    options.began = begin_time(clock_);
    if (watts_) options.joules = [this, began] { return (clock_.seconds - began) * watts_(clock_.seconds - began); };
    options.screen.output = [&](std::string_view text) { said += text; };
    options.screen.errors = [&](std::string_view text) { said += text; };
    options.in_background = [&](const std::function<void()>& work) {
      clock_.seconds = clock_.seconds + save_seconds_;
      work();
    };
    WriteFence disk(system_disk(), folder_, WriteFence::free_number(system_disk(), folder_));
    result_ = run(plan_, options, trainer_, nullptr, disk, clock_);
    took_ = clock_.seconds - began;
    return said;
  }
  void begin_anew() {
    std::filesystem::remove_all(folder_);
    std::filesystem::create_directory(folder_);
    trainer_ = NumberTrainer();
  }
  nlohmann::json report() const {
    std::ifstream file(folder_ + "/report.json");
    return nlohmann::json::parse(file);
  }
  static std::function<double()> always(double seconds) {
    return [seconds] { return seconds; };
  }

  std::string folder_;
  Plan plan_;
  HandClock clock_;
  NumberTrainer trainer_;
  RunResult result_;
  std::function<double(double)> watts_;  // the mean power until a second of the attempt; null: nothing measures it
  double took_ = 0, save_seconds_ = 0;
};

TEST_F(TimeBudget, EndsWithAnEvaluationOfTheLastStepAndATestInsideTheTime) {
  plan_.job.budget.seconds = 100;
  const std::string said = train(always(1), always(3));
  EXPECT_EQ(result_.exit_code, kBudget);
  EXPECT_LE(took_, 100);
  EXPECT_GE(took_, 90) << "most of the time is used";
  EXPECT_THAT(said, HasSubstr(", the last:"));
  const auto outcome = report();
  EXPECT_TRUE(outcome.at("last").contains("test/loss"));
  EXPECT_EQ(outcome.at("best").at("step"), outcome.at("steps")) << "the loss falls with each step";
  EXPECT_THAT(said, Not(HasSubstr("the model is that of step"))) << "no earlier state is restored";
}

TEST_F(TimeBudget, RestoresTheBestStateIfTheLastOneIsWorse) {
  plan_.job.budget.seconds = 100;
  trainer_.loss_at = [](int64_t step) { return step == 20 ? 0.1 : 1.0; };
  const std::string said = train(always(1), always(3));
  EXPECT_LE(took_, 100);
  EXPECT_THAT(said, HasSubstr("the model is that of step 20, the best"));
  EXPECT_EQ(report().at("best").at("step"), 20);
}

TEST_F(TimeBudget, TheLastEvaluationIsNoPartOfTheState) {
  plan_.job.budget.seconds = 30;
  plan_.job.early_stopping.patience = 3;
  trainer_.loss_at = [](int64_t step) { return static_cast<double>(step); };
  train(always(1), always(1));
  const int64_t stopped_at = result_.step.value;
  EXPECT_GT(stopped_at % 10, 0) << "the last evaluation came between two that are due";
  plan_.job.budget.seconds = 1000;
  train(always(1), always(1), true);
  const RunResult resumed = result_;
  begin_anew();
  trainer_.loss_at = [](int64_t step) { return static_cast<double>(step); };
  train(always(1), always(1));
  EXPECT_EQ(resumed.step, result_.step) << "patience counts the same evaluations";
  EXPECT_EQ(resumed.digest, result_.digest);
}

TEST_F(TimeBudget, DoesNotBeginAnEvaluationThatWouldNotFit) {
  plan_.job.budget.seconds = 100;
  plan_.job.trainer.eval_interval = {10, spec::Duration::Unit::steps};
  plan_.data.val_size = 90;
  plan_.data.test_size = 0;
  const std::string said = train(always(1), always(45));
  EXPECT_LE(took_, 100);
  EXPECT_EQ(result_.step.value, 19) << "the first evaluation fits, the second one does not";
  EXPECT_THAT(said, HasSubstr("budget.time leaves no time"));
}

TEST_F(TimeBudget, AnEvaluationThatTakesMostOfTheBudgetDoesNotEndTheTrainingAtOnce) {
  plan_.job.budget.seconds = 100;
  plan_.job.trainer.eval_interval = {1000, spec::Duration::Unit::steps};
  plan_.data.val_size = 100'000'000;  // by the time of a step, years
  plan_.data.test_size = 100'000'000;
  train(always(1), always(1));
  EXPECT_LE(took_, 100);
  EXPECT_GE(result_.step.value, 90);
}

TEST_F(TimeBudget, ATestThatIsTooSlowIsLeftOutAndSaysHowToMakeIt) {
  plan_.job.budget.seconds = 100;
  bool trained = false;
  const std::string said = train(always(1), [&] {
    const double seconds = result_.step.value > 0 || trained ? 30.0 : 2.0;
    trained = clock_.seconds > 1090;
    return seconds;
  });
  EXPECT_LE(took_, 130);  // the evaluation of this trainer has one part, which is always finished
  EXPECT_THAT(said, HasSubstr("sinew eval " + folder_));
  EXPECT_FALSE(report().at("last").contains("test/loss"));
  EXPECT_EQ(report().at("status"), "budget");
}

TEST_F(TimeBudget, WarnsOnceThatTheBudgetWillNotDo) {
  plan_.job.budget.seconds = 200;
  plan_.job.scheduler.name = "cosine";
  const std::string said = train(always(1), always(1));
  const std::string warning = "budget.time of 3m20s will end the training at step ";
  const size_t at = said.find(warning);
  ASSERT_NE(at, said.npos) << said;
  EXPECT_EQ(said.find("will end the training", at + warning.size()), said.npos);
  EXPECT_THAT(said, HasSubstr("The schedule of the learning rate is made for all steps"));
  int64_t low = 0, high = 0;
  char dash = 0;
  std::istringstream(said.substr(at + warning.size())) >> low >> dash >> high;
  EXPECT_LE(low, result_.step.value);
  EXPECT_GE(high, result_.step.value);
}

TEST_F(TimeBudget, ARunThatGoesOnDoesNotRepeatTheWarning) {
  plan_.job.budget.seconds = 200;
  plan_.job.checkpoint.interval = "5st";
  const auto count = [](const std::string& said) {
    size_t times = 0;
    for (size_t at = said.find("will end the training"); at != said.npos;
         at = said.find("will end the training", at + 1))
      ++times;
    return times;
  };
  int64_t steps = 0;
  bool changed = false;
  const std::string said = train(
      [&] {
        if (++steps == 60 && !std::exchange(changed, true)) throw MemoryChanged("a bit changed");
        return 1.0;
      },
      always(1));
  EXPECT_TRUE(changed) << "the run went back to a checkpoint";
  EXPECT_EQ(count(said), 1U);
  plan_.job.budget.seconds = 300;
  EXPECT_EQ(count(train(always(1), always(1), true)), 1U) << "another limit that will not do";
}

TEST_F(TimeBudget, AWarningSaysWhatToDo) {
  plan_.job.budget = {.seconds = 1000, .cost = 0.1, .price = 1.8};  // enough for 200 s
  plan_.job.scheduler.name = "cosine";
  const std::string said = train(always(1), always(1));
  EXPECT_THAT(said, HasSubstr("budget.cost of 0.1, enough for 3m20s, will end the training at step "));
  EXPECT_THAT(said, HasSubstr("begin with trainer.max_duration=1"));
  const std::string command = "sinew resume " + folder_ + " budget.cost=";
  ASSERT_THAT(said, HasSubstr(command));
  EXPECT_GE(std::stod(said.substr(said.find(command) + command.size())), 0.55) << "1000 steps, 100 evaluations: 1100 s";
}

TEST_F(TimeBudget, WithoutEarlyStoppingTheUserLearnsOnceThatNothingBetterComes) {
  plan_.job.early_stopping.monitor.clear();
  trainer_.loss_at = [](int64_t step) { return 1 + std::abs(static_cast<double>(step) - 200) / 100; };
  const std::string said = train(always(0.01), always(0.01));
  const std::string note = "90 % likely that no better val/loss comes than 1 at step 200.";
  const size_t at = said.find(note);
  ASSERT_NE(at, said.npos) << said;
  EXPECT_EQ(said.find("90 % likely", at + note.size()), said.npos);
  begin_anew();
  plan_.job.early_stopping.monitor = "val/loss";
  trainer_.loss_at = [](int64_t step) { return 1 + std::abs(static_cast<double>(step) - 200) / 100; };
  EXPECT_THAT(train(always(0.01), always(0.01)), Not(HasSubstr("90 % likely"))) << "early stopping ends it";
}

TEST_F(TimeBudget, SaysNothingIfTheBudgetSuffices) {
  plan_.job.budget.seconds = 2000;
  const std::string said = train(always(1), always(1));
  EXPECT_EQ(result_.exit_code, kDone);
  EXPECT_THAT(said, Not(HasSubstr("will end the training")));
}

TEST_F(TimeBudget, AScheduleReachesItsEndWithTheTime) {
  plan_.job.trainer.max_duration = {200, spec::Duration::Unit::seconds};
  plan_.job.scheduler = {.name = "cosine", .warmup = {0.1, spec::Duration::Unit::fraction}};
  plan_.job.optimizer.lr = 1;
  bool slow = false;
  train([&] { return (slow = slow || clock_.seconds > 1120) ? 1.5 : 0.5; }, always(2));  // the machine gets slower
  EXPECT_EQ(result_.exit_code, kDone);
  const std::vector<double>& rates = trainer_.rates;
  ASSERT_GT(rates.size(), 100U);
  EXPECT_LT(rates[2], 0.01) << "nothing is known yet, so the warm-up hardly begins";
  EXPECT_GT(*std::ranges::max_element(rates), 0.95);
  EXPECT_LT(rates.back(), 0.03);
  EXPECT_GE(took_, 200);
}

TEST_F(TimeBudget, TheScheduleOfATimeIsPartOfTheState) {
  plan_.job.trainer.max_duration = {100, spec::Duration::Unit::seconds};
  plan_.job.scheduler.name = "linear";
  plan_.job.optimizer.lr = 1;
  plan_.job.early_stopping.monitor.clear();  // otherwise the trainer ends with the state of the best step
  train(always(1), always(1));
  const std::vector<ControlEntry> log = trainer_.state().control.entries();
  const std::vector<double> rates = trainer_.rates;
  EXPECT_GT(log.size(), 0U);
  // whoever has the log computes the same rates, however fast it is
  ControlLog control;
  for (const ControlEntry& entry : log) control.append(entry);
  for (size_t step = 0; step < rates.size(); ++step) {
    Lengths lengths = lengths_of(plan_.job, plan_.data.train_size, 1);
    lengths.total_steps = control.schedule_steps(Step(static_cast<int64_t>(step)));
    EXPECT_EQ(Schedule(plan_.job.scheduler, lengths).factor(static_cast<int64_t>(step)), rates[step]) << step;
  }
  EXPECT_NE(control.digest_text(Step(1000)), ControlLog().digest_text(Step(1000))) << "it changes numbers";
  EXPECT_EQ(entries_json(entries_of_json(entries_json(log))), entries_json(log));
}

TEST_F(TimeBudget, HoldsWithRandomDurations) {
  std::mt19937_64 random(3);
  const auto any = [&](double low, double high) { return std::uniform_real_distribution<double>(low, high)(random); };
  int ended = 0, tested = 0;
  for (int story = 0; story < 40; ++story) {
    begin_anew();
    const double budget = any(30, 200), step = budget * std::exp(any(-6, -4)), evaluation = budget * any(0.001, 0.1);
    plan_.data.val_size = static_cast<int64_t>(evaluation / step / any(0.2, 0.6)) + 1;
    plan_.data.test_size = plan_.data.val_size;
    save_seconds_ = any(0, 0.5);
    plan_.job.budget.seconds = budget;
    plan_.job.trainer.eval_interval = {std::floor(any(1, 60)), spec::Duration::Unit::steps};
    plan_.job.trainer.max_duration = {std::floor(any(10, 1000)), spec::Duration::Unit::steps};
    train([&] { return step * any(0.8, 1.2); }, [&] { return evaluation * any(0.8, 1.2); });
    EXPECT_LE(took_, std::max(budget * 1.01, budget + 2)) << story << ": steps of " << step << " s, evaluations of "
                                                          << evaluation << " s, saves of " << save_seconds_ << " s";
    if (result_.exit_code != kBudget) continue;
    EXPECT_GE(took_, 0.9 * budget - 4 * evaluation - 4 * save_seconds_) << story;
    ++ended;
    tested += report().at("last").contains("test/loss") ? 1 : 0;
  }
  EXPECT_GT(ended, 20);
  EXPECT_GE(tested, ended * 9 / 10) << "what was never measured may not fit";
}

TEST_F(TimeBudget, AnAmountOfMoneyIsATime) {
  plan_.job.budget = {.seconds = 1000, .cost = 0.05, .price = 1.8};  // enough for 100 s
  const std::string said = train(always(1), always(3));
  EXPECT_EQ(result_.exit_code, kBudget);
  EXPECT_LE(took_, 100);
  EXPECT_GE(took_, 90) << "most of the money is used";
  const auto outcome = report();
  EXPECT_EQ(outcome.at("status"), "budget");
  EXPECT_TRUE(outcome.at("last").contains("test/loss")) << "the test is inside the budget";
  EXPECT_NEAR(outcome.at("cost").get<double>(), took_ / 3600 * 1.8, 1e-3);
  EXPECT_LE(outcome.at("cost"), 0.05);
  EXPECT_THAT(said, HasSubstr("of budget.cost; "));
  EXPECT_THAT(said, HasSubstr("; cost 0.04"));
  EXPECT_THAT(said, HasSubstr(" budget.cost=0.1\n"));
}

TEST_F(TimeBudget, ATimeThatIsTighterThanTheMoneyEndsTheTraining) {
  plan_.job.budget = {.seconds = 50, .cost = 0.05, .price = 1.8};
  const std::string said = train(always(1), always(3));
  EXPECT_LE(took_, 50);
  EXPECT_THAT(said, HasSubstr("of budget.time; "));
  EXPECT_TRUE(report().contains("cost")) << "what it has cost is said in any case";
}

TEST_F(TimeBudget, AMeasuredEnergyEndsTheTrainingInside) {
  plan_.job.budget = {.kilowatt_hours = 0.01};  // 36 kJ: 120 s at 300 W
  watts_ = [](double) { return 300; };
  const std::string said = train(always(1), always(3));
  EXPECT_EQ(result_.exit_code, kBudget);
  EXPECT_LE(took_, 120);
  EXPECT_GE(took_, 105);
  EXPECT_TRUE(report().at("last").contains("test/loss"));
  EXPECT_NEAR(report().at("energy_kwh").get<double>(), took_ * 300 / 3.6e6, 1e-5);
  EXPECT_THAT(said, HasSubstr("of budget.energy; "));
  EXPECT_THAT(said, HasSubstr(" kWh; digest"));
}

TEST_F(TimeBudget, APowerThatRisesEndsTheTrainingEarlier) {
  plan_.job.budget = {.kilowatt_hours = 0.01};
  watts_ = [](double second) { return second < 40 ? 300 : 300 + 10 * (second - 40); };
  train(always(1), always(3));
  EXPECT_LT(took_, 80) << "at 300 W it would last 120 s";
  EXPECT_LE(report().at("energy_kwh").get<double>(), 0.01);
}

TEST_F(TimeBudget, AGivenPowerNeedsNoCounter) {
  plan_.job.budget = {.kilowatt_hours = 0.01, .watts = 600};  // 60 s
  train(always(1), always(3));
  EXPECT_LE(took_, 60);
  EXPECT_GE(took_, 50);
  EXPECT_LE(report().at("energy_kwh"), 0.01);
}

TEST_F(TimeBudget, EarlierAttemptsCountForTheEnergy) {
  plan_.job.budget = {.kilowatt_hours = 0.01};
  watts_ = [](double) { return 300; };
  train(always(1), always(3));
  const double first = report().at("energy_kwh");
  plan_.job.budget.kilowatt_hours = 0.02;
  train(always(1), always(3), true);
  EXPECT_GE(took_, 100) << "the second half of the energy lasts as long as the first";
  EXPECT_LE(took_, 130);
  const double both = report().at("energy_kwh");
  EXPECT_NEAR(both, 2 * first, 0.2 * first);
  EXPECT_LE(both, 0.02);
}

TEST_F(TimeBudget, ACounterThatStandsStillGetsAWarning) {
  plan_.job.budget = {.kilowatt_hours = 0.01};
  plan_.job.trainer.max_duration = {30, spec::Duration::Unit::steps};
  watts_ = [](double) { return 0; };
  const std::string said = train(always(1), always(3));
  EXPECT_EQ(result_.exit_code, kDone);
  EXPECT_THAT(said, HasSubstr("have not moved for"));
  EXPECT_EQ(said.find("have not moved for"), said.rfind("have not moved for")) << "it is said once";
}

TEST_F(TimeBudget, TheOptionToGoOnIsANumberEvenIfNoPowerIsKnown) {
  plan_.job.budget = {.kilowatt_hours = 0.01};
  watts_ = [](double) { return 300; };
  train(always(1), always(3));
  plan_.job.budget.kilowatt_hours = 0.001;  // earlier attempts have used more
  const std::string said = train(always(0.01), always(0.01), true);
  EXPECT_EQ(result_.exit_code, kBudget);
  EXPECT_THAT(said, HasSubstr(" budget.energy=0.002\n"));
}

TEST_F(TimeBudget, CostAndEnergyOfTheReportAreThoseOfItsTime) {
  plan_.job.budget = {.cost = 0.05, .price = 1.8, .kilowatt_hours = 1, .watts = 360};
  train(always(1), always(3));
  const double seconds = report().at("seconds");
  EXPECT_DOUBLE_EQ(report().at("cost").get<double>(), seconds / 3600 * 1.8);
  EXPECT_DOUBLE_EQ(report().at("energy_kwh").get<double>(), seconds * 360 / 3.6e6);
}

TEST_F(TimeBudget, TheEnergyIsReadDuringALongEvaluation) {
  plan_.job.budget = {.kilowatt_hours = 1};
  plan_.job.trainer.max_duration = {10, spec::Duration::Unit::steps};
  int reads = 0, before = 0, evaluations = 0;
  watts_ = [&](double) { return ++reads, 300; };
  trainer_.loss_at = [&](int64_t) {
    EXPECT_GT(reads, before);
    return ++evaluations, 1.0;
  };
  train(always(0.01), [&] { return before = reads, 3000.0; });
  EXPECT_GT(evaluations, 0);
  EXPECT_GT(report().at("energy_kwh").get<double>(), 0.2);
}

TEST_F(TimeBudget, GoingBackCountsNoEnergyTwice) {
  plan_.job.budget = {.kilowatt_hours = 1};
  plan_.job.trainer.max_duration = {20, spec::Duration::Unit::steps};
  plan_.job.checkpoint.interval = "5st";
  watts_ = [](double) { return 300; };
  bool changed = false;
  train(
      [&] {
        if (trainer_.state().step == Step(12) && !std::exchange(changed, true)) throw MemoryChanged("a bit changed");
        return 1.0;
      },
      always(3));
  EXPECT_TRUE(changed);
  const double seconds = report().at("seconds");
  EXPECT_NEAR(report().at("energy_kwh").get<double>(), seconds * 300 / 3.6e6, 1 * 300 / 3.6e6);
}

TEST_F(TimeBudget, AJobWithoutALimitOfMoneyOrEnergySaysNothingOfThem) {
  watts_ = [](double) { return 300; };
  const std::string said = train(always(0.001), always(0.001));
  EXPECT_FALSE(report().contains("cost"));
  EXPECT_FALSE(report().contains("energy_kwh"));
  EXPECT_THAT(said, Not(HasSubstr("kWh")));
}

}  // namespace
}  // namespace sinew::loop
