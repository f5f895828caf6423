// One metric of a running trial, read as its metrics.jsonl grows.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/disk.h"

namespace sinew::cli {

class TrialMetric {
 public:
  TrialMetric(Disk& disk, std::string path, std::string metric)
      : disk_(disk), path_(std::move(path)), metric_(std::move(metric)) {}

  // Its values since the last call, in their order; an evaluation's number counts from 1. A file that was cut back (a
  // resumed training) is read from its beginning: numbers then come again.
  struct Value {
    int64_t number = 0;
    double value = 0;
  };
  std::vector<Value> next();

 private:
  Disk& disk_;
  std::string path_, metric_, rest_;
  uint64_t read_ = 0;
  int64_t number_ = 0;
};

}  // namespace sinew::cli
