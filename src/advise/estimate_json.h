// Private to advise/: an estimate as JSON.
#pragma once

#include <nlohmann/json.hpp>

#include "advise/advise.h"
#include "base/json_text.h"

namespace sinew::advise {

inline nlohmann::ordered_json json_of(const Estimate& estimate) {
  return {{"expected", json_number(estimate.expected)},
          {"low", json_number(estimate.low)},
          {"high", json_number(estimate.high)}};
}

}  // namespace sinew::advise
