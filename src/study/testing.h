// Makes a study of simulated trainings, for the tests of study/.
#pragma once

#include <gtest/gtest.h>

#include <cmath>
#include <csignal>
#include <map>
#include <string>
#include <vector>

#include "base/exit_code.h"
#include "base/random.h"
#include "study/scheduler.h"
#include "study/search_space.h"

namespace sinew::study {

inline std::vector<spec::SearchParameter> sample_search() {
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

inline tune::Space sample_space() {
  spec::TuneOptions tune;
  tune.search = sample_search();
  return space_of(tune);
}

// A study of 12 trials. Its decisions are appended to `record`.
inline SchedulerOptions sample_options(std::vector<StudyEvent>& record, int64_t slots = 2) {
  SchedulerOptions options{{sample_space(), {tune::Direction::minimize}, 7, 12, {}}};
  options.sampler = "tpe";
  options.pruner = "asha";
  options.max_resource = 9;
  options.trials = 12;
  options.slots = slots;
  options.record = [&](const StudyEvent& event) { record.push_back(event); };
  return options;
}

// Trainings of nine evaluations. The loss depends on the trial's point and on the number of the evaluation. A training
// saves a checkpoint at every evaluation, so a killed process loses nothing.
struct SampleTrainings {
  std::map<int64_t, int64_t> evaluations;  // the evaluations of each trial so far

  double loss(const tune::Study& study, int64_t id, int64_t evaluation) const {
    const double rate = std::log10(study.trial(id).point[0]) + 2;
    return rate * rate + 1.0 / static_cast<double>(evaluation);
  }
};

// Runs a study to its end. Each turn draws a running trial: its process is killed with probability `kills`, and
// otherwise evaluates. Fails the test after `most` turns.
inline void run_study(TrialScheduler& scheduler, SampleTrainings& trainings, RandomStream& random, int64_t most,
                      double kills) {
  for (int64_t turn = 0; turn < most; ++turn) {
    while (scheduler.next()) {
    }
    const auto running = scheduler.running();
    if (running.empty()) return;
    const int64_t id = running[random.below(running.size())];
    if (random.uniform() < kills) {
      scheduler.end(id, {0, SIGKILL}, {});
      continue;
    }
    const int64_t evaluation = ++trainings.evaluations[id];
    std::string why;
    const bool ends =
        scheduler.report(id, static_cast<double>(evaluation), trainings.loss(scheduler.study(), id, evaluation), why);
    if (ends) {
      EXPECT_FALSE(why.empty());
      scheduler.end(id, {kResumable, 0}, {});
    } else if (evaluation == 9) {
      scheduler.end(id, {kDone, 0}, Outcome{{trainings.loss(scheduler.study(), id, evaluation)}});
    }
  }
  FAIL() << "the study does not end";
}

}  // namespace sinew::study
