// The line that tells how training goes: composed here, shown by the screen.
#pragma once

#include <string>

#include "report/json_text.h"
#include "report/report.h"

namespace sinew::report {

// "step 1240/2350  epoch 5.3/10 [#####-----]  loss 0.3120  84.2k samples/s  eta 12s", at most `columns` wide: parts
// are left out, the least needed first (bar, rate, epoch, later metrics, ETA), until the rest fits. 0: no bound.
std::string progress_line(const Progress& progress, int columns, bool bar, bool color);

Json progress_json(const Progress& progress);  // the facts of the line, for --log-format json

}  // namespace sinew::report
