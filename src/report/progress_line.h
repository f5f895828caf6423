// Inside report/: makes the text of the progress line. Screen shows it.
#pragma once

#include <nlohmann/json.hpp>
#include <string>

#include "base/json_text.h"
#include "report/report.h"

namespace sinew::report {

// Returns for example "step 1240/2350  epoch 5.3/10 [#####-----]  loss 0.3120  84.2k samples/s  eta 12s  best
// val/accuracy 0.92-0.93", at most
// `columns` wide (0: any width). Leaves out parts until the line fits, in this order: bar, rate, forecast, epoch, all
// metrics but the first, ETA, first metric.
std::string progress_line(const Progress& progress, int columns, bool bar, bool color);

nlohmann::ordered_json progress_json(const Progress& progress);  // returns the values of the progress line

}  // namespace sinew::report
