// Prometheus' text format 0.0.4 (https://prometheus.io/docs/instrumenting/exposition_formats/). Pure.
#pragma once

#include <map>
#include <string>
#include <utility>
#include <vector>

namespace sinew::web {

class PrometheusText {
 public:
  using Labels = std::vector<std::pair<std::string, std::string>>;  // names are as the format has them, values any text
  // A family of samples. Its name and help are the program's own; type is "gauge" or "counter".
  void family(const std::string& name, const std::string& type, const std::string& help);
  void sample(const Labels& labels, double value);
  const std::string& text() const { return text_; }

 private:
  std::string text_, name_;
};

}  // namespace sinew::web
