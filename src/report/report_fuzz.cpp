// Gives any bytes to the parsers of a run directory's files. Each parser must accept them or report an error. The two
// parsers of metric lines must agree.
#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "base/error.h"
#include "base/printable.h"
#include "report/curves.h"
#include "report/metric_lines.h"
#include "report/report.h"
#include "report/text_format.h"
#include "rundir/rundir.h"

namespace {

using namespace sinew;
using namespace sinew::report;

void require(bool condition) {
  if (!condition) std::abort();
}

bool same(double a, double b) {
  return a == b || (std::isnan(a) && std::isnan(b));
}

void try_line(std::string_view text) {
  const auto fast = parse_metrics_line(text), slow = parse_metrics_line_slowly(text);
  require(fast.has_value() == slow.has_value());
  if (!fast) return;
  require(fast->step == slow->step && fast->samples == slow->samples && same(fast->wall_seconds, slow->wall_seconds));
  require(fast->values.size() == slow->values.size());
  for (const auto& [name, value] : slow->values) require(same(fast->values.at(name), value));
  const auto step = step_of_line(text);
  require(!step || *step == fast->step);
}

void try_outcome(std::string_view text) {
  std::string why;
  const auto outcome = rundir::parse_outcome(text, &why);
  if (!outcome) return require(!why.empty());
  const std::string written = rundir::outcome_json(*outcome);
  const auto again = rundir::parse_outcome(written);
  require(again && rundir::outcome_json(*again) == written);
}

void try_evaluation(std::string_view text) {
  const auto record = parse_evaluation(text);
  if (!record) return;
  const std::string written = evaluation_json(*record);
  const auto again = parse_evaluation(written);
  require(again && evaluation_json(*again) == written);
  for (const NamedChart& one : evaluation_charts({*record})) require(!plot::svg(plot::draw(one.chart)).empty());
}

void try_options(std::string_view text) {
  try {
    rundir::flat_options(std::string(text));
  } catch (const sinew::Error&) {
  }
}

void try_text(std::string_view text) {
  const std::string clean = printable(text);
  require(printable(clean) == clean && clean.find('\x1b') == std::string::npos);
  for (const int columns : {0, 1, 7, 40}) require(display_width(fit(clean, columns)) <= columns);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size == 0) return 0;
  const std::string_view text(reinterpret_cast<const char*>(data + 1), size - 1);
  switch (data[0] % 5) {
    case 0: try_line(text); break;
    case 1: try_outcome(text); break;
    case 2: try_options(text); break;
    case 3: try_evaluation(text); break;
    default: try_text(text);
  }
  return 0;
}
