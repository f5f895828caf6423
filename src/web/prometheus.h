// Inside web/: writes Prometheus' text format 0.0.4 (https://prometheus.io/docs/instrumenting/exposition_formats/).
// Pure.
#pragma once

#include <map>
#include <string>
#include <utility>
#include <vector>

namespace sinew::web {

class PrometheusText {
 public:
  using Labels = std::vector<std::pair<std::string, std::string>>;  // valid label names; any text as values
  // Starts a family of samples. `name` and `help` must be valid in the format; `type` is "gauge" or "counter".
  void family(const std::string& name, const std::string& type, const std::string& help);
  void sample(const Labels& labels, double value);
  const std::string& text() const { return text_; }

 private:
  std::string text_, name_;
};

}  // namespace sinew::web
