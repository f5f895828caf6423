// Forecasts of the trials of a study: where their learning curves will end. For the curve pruner.
//
// A forecast extrapolates the curve (tune/curve.h). Then hindsight corrects it: by the errors that the same forecast,
// made at the same step, would have had for the whole trials, that is, for those that ran to their end. So a schedule
// that lets every trial improve at its end does not mislead it. For tune/ only.
#pragma once

#include <map>
#include <optional>
#include <utility>
#include <vector>

#include "tune/curve.h"

namespace sinew::tune {

// A predicted final loss.
struct Forecast {
  double mean, deviation;
  double optimistic() const;
};

class CurveForecasts {
 public:
  explicit CurveForecasts(const PrunerOptions& options) : options_(options), model_(options.max_resource) {}

  // Updates what the whole trials tell. Call it with the current study before any function below.
  void follow(const Study& study);

  // The number of steps between two pauses of a trial, and the step of its first pause: infinite while it has too few
  // reports.
  double wait() const;
  double first_wait(const Trial& trial) const;

  // The forecast from all reports of a trial.
  Forecast forecast(const Study& study, const Trial& trial) { return forecast(study, trial, trial.reports.size()); }
  // The best final loss of the whole trials; infinite if there is none.
  double best_whole() const { return best_whole_; }
  // How far a loss is below the median of the first trials.
  double lead_of(double loss) const;
  // Whether forecasts at the first pause distinguish trials. If their noise is larger than the differences between
  // trials, a sampler that takes forecasts for results learns the noise and finds less than one that learns from whole
  // trials only.
  bool tell_apart() const;

 private:
  // Forecasts of the first trials at their first pause. No sampler has drawn these trials together yet.
  struct FirstTrials {
    size_t count = 0;
    double median = 0, spread = 0;  // of the means
    double deviation = 0;           // of a typical forecast
  };
  std::optional<double> end_of(const Study& study, const Trial& trial) const;
  const Forecast& without_hindsight(const Study& study, const Trial& trial, size_t reports);
  Forecast forecast(const Study& study, const Trial& trial, size_t reports);
  FirstTrials first_trials(const Study& study);

  PrunerOptions options_;
  CurveModel model_;
  // By trial and number of reports; valid forever, because reports never change.
  std::map<std::pair<int64_t, size_t>, Forecast> known_;
  std::vector<int64_t> whole_;  // the newest whole trials, for hindsight
  FirstTrials first_;
  double best_whole_ = 0;
};

}  // namespace sinew::tune
