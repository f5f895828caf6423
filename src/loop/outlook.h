// Forecasts from the evaluations of a run. All functions are pure. Private to loop/.
#pragma once

#include <string>

#include "loop/state.h"
#include "spec/spec.h"

namespace sinew::loop {

// The part of the training that comes after an evaluation, as it is expected then.
struct Ahead {
  int64_t last_step = 0;                                    // of the training; 0: not known
  double evaluations = 0;                                   // to come
  double lowest_rate = 0, mean_rate = 0, highest_rate = 0;  // of the learning rates to come
  double seconds_low = -1, seconds_high = -1;               // of the whole run; < 0: not known
};

// Returns the outlook after an evaluation of report::monitored_metric. It begins anew if that metric is another one
// than before.
Outlook look_ahead(Outlook before, const forecast::Monitored& monitored, const forecast::Evaluation& evaluation,
                   const Ahead& ahead);

// Returns the newest forecast if it is worth showing: it promises no more than what was reached since the first
// evaluation.
std::optional<forecast::BestValue> forecast_to_show(const Outlook& outlook);

// Returns what to tell the user of a run without early stopping, as soon as no better evaluation is likely to come, and
// "" if there is nothing to tell. `directory` is that of the run; `keeps`: the best state by this metric has a
// checkpoint.
std::string none_better_text(const Outlook& outlook, const std::string& directory, bool keeps);

// What report.json gets; nullopt if there was no forecast.
std::optional<rundir::MetricForecasts> forecasts_of(const Outlook& outlook);

}  // namespace sinew::loop
