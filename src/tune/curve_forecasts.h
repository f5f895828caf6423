// Forecasts where the learning curves of the trials of a study will end. The curve pruner uses these forecasts.
//
// A forecast extrapolates the curve (forecast/curve.h). Hindsight then corrects it. For this the class makes the same
// forecast, at the same step, for each completed trial, and measures its error. It corrects the new forecast by these
// errors. A learning-rate schedule that improves every trial near its end therefore does not mislead the forecast.
// Private to tune/.
#pragma once

#include <map>
#include <optional>
#include <utility>
#include <vector>

#include "forecast/forecast.h"
#include "tune/tune.h"

namespace sinew::tune {

// A predicted final loss.
struct Forecast {
  double mean, deviation;  // `deviation` is the standard deviation
  double optimistic() const;
};

class CurveForecasts {
 public:
  explicit CurveForecasts(const PrunerOptions& options) : options_(options), model_(options.max_resource) {}

  // Reads the completed trials and the first trials of the study. Call this with the current study before any function
  // below it.
  void follow(const Study& study);

  // wait() returns the number of steps between two pauses of a trial. first_wait() returns the step of its first pause,
  // which is infinite while the trial has too few reports.
  double wait() const;
  double first_wait(const Trial& trial) const;

  // The forecast from all reports of a trial.
  Forecast forecast(const Study& study, const Trial& trial) { return forecast(study, trial, trial.reports.size()); }
  // The best final loss of the completed trials, or infinity if there are none.
  double best_whole() const { return best_whole_; }
  // How far a loss is below the median forecast of the first trials; 0 if it is not below.
  double lead_of(double loss) const;
  // Returns whether forecasts at the first pause distinguish trials. If their error is larger than the differences
  // between trials, a sampler that treats forecasts as results learns noise, and finds worse points than one that
  // learns from completed trials only.
  bool tell_apart() const;

 private:
  // Statistics of the forecasts for the first trials, each at its first pause. The first trials are spread over the
  // space. Later trials are not used: the sampler places them close together, which would make the spread too small.
  struct FirstTrials {
    size_t count = 0;
    // median and spread of the means of the forecasts; the spread is a standard deviation
    double median = 0, spread = 0;
    double deviation = 0;  // the median of the standard deviations of the forecasts
  };
  std::optional<double> end_of(const Study& study, const Trial& trial) const;
  const Forecast& without_hindsight(const Study& study, const Trial& trial, size_t reports);
  Forecast forecast(const Study& study, const Trial& trial, size_t reports);
  FirstTrials first_trials(const Study& study);

  PrunerOptions options_;
  forecast::CurveModel model_;
  // Cached forecasts by trial and number of reports. An entry stays valid, because reports never change.
  std::map<std::pair<int64_t, size_t>, Forecast> known_;
  std::vector<int64_t> whole_;  // ids of the newest completed trials, for hindsight
  FirstTrials first_;
  double best_whole_ = 0;
};

}  // namespace sinew::tune
