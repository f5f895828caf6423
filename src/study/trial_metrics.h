// Some metrics of a running trial, read as its metrics.jsonl grows.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/disk.h"

namespace sinew::study {

class TrialMetrics {
 public:
  TrialMetrics(Disk& disk, std::string path, std::vector<std::string> metrics)
      : disk_(disk), path_(std::move(path)), metrics_(std::move(metrics)) {
    begin_anew();
  }

  // The values of the first metric since the last call, in their order; an evaluation's number counts from 1. A file
  // that was cut back (a resumed training) is read from its beginning: numbers then come again.
  struct Value {
    int64_t number = 0;
    double value = 0;
  };
  std::vector<Value> next();
  // What each metric had measured last when the first one came for the number-th time; NaN: nothing yet.
  const std::vector<double>& at(int64_t number) const { return rows_[static_cast<size_t>(number - 1)]; }
  // And by now.
  const std::vector<double>& last() const { return last_; }
  // What was measured when the last of the metrics was best; what was measured only after that, as it was last.
  std::vector<double> at_best(bool least) const;
  int64_t count() const { return static_cast<int64_t>(rows_.size()); }

 private:
  void begin_anew();
  void take(const std::string& line, std::vector<Value>& values);
  Disk& disk_;
  std::string path_, rest_;
  std::vector<std::string> metrics_;
  uint64_t read_ = 0;
  std::vector<std::vector<double>> rows_;
  std::vector<double> last_;
};

}  // namespace sinew::study
