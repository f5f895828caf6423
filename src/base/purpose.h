// What the members of a group compute together in one collective. All members derive it from equal states. So members
// that do not have the same purpose do not have the same state, or one of them decided by a wrong number.
#pragma once

#include <cstdint>
#include <string>

#include "base/ids.h"

namespace sinew {

struct Purpose {
  enum class Kind : uint8_t { step, evaluation, comparison, copies };
  Kind kind = Kind::step;
  Step step;
  bool operator==(const Purpose&) const = default;
};

inline std::string to_string(const Purpose& purpose) {
  const std::string step = "step " + std::to_string(purpose.step.value);
  switch (purpose.kind) {
    case Purpose::Kind::step: return step;
    case Purpose::Kind::evaluation: return "the evaluation at " + step;
    case Purpose::Kind::comparison: return "the comparison of states at " + step;
    case Purpose::Kind::copies: return "the test of copies of the data at " + step;
  }
  return step;
}

}  // namespace sinew
