// How many trainings of a study run side by side: as many as the machine has cores free for, at any time.
//
// What others use is what the cores were busy with, less what this study's own processes used. A short burst changes
// nothing: several looks in a row have to agree. Then as many places are given up, or taken, as all of them would have.
// Decides by what it is told; the machine is read by the caller (base/proc.h).
#pragma once

#include <cstdint>
#include <deque>
#include <optional>
#include <string>

#include "base/proc.h"

namespace sinew::study {

struct PlacesOptions {
  int64_t most = 1;      // trainings side by side; of a study that is given a number always so many
  bool follows = false;  // what is free
  double cores = 1;      // that this process may run on
  double allowed = 1;    // cores that it may use at a time
  double each = 1;       // cores of one training
  double every = 10;     // seconds between two looks
  size_t looks = 3;      // in a row that must agree
};

class StudyPlaces {
 public:
  explicit StudyPlaces(const PlacesOptions& options) : options_(options), places_(options.most) {}

  int64_t now() const { return places_; }
  int64_t most() const { return options_.most; }
  bool follows() const { return options_.follows; }
  // Whether the machine should be looked at.
  bool due(double seconds) const;
  // What was used until now. A sentence where the number of places changes.
  std::optional<std::string> look(double seconds, const CpuTimes& used);

 private:
  PlacesOptions options_;
  int64_t places_;
  std::optional<double> looked_;
  CpuTimes before_;
  std::deque<int64_t> wishes_;  // by the newest looks
};

}  // namespace sinew::study
