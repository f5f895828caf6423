// What the members of a group compute together in one collective. All members derive it from equal states. So members
// that do not have the same purpose do not have the same state, or one of them decided by a wrong number.
#pragma once

#include <cstdint>
#include <string>

#include "base/ids.h"

namespace sinew {

struct Purpose {
  enum class Kind : uint8_t { step, evaluation, comparison };
  Kind kind = Kind::step;
  Step step;
  bool operator==(const Purpose&) const = default;
};

inline std::string to_string(const Purpose& purpose) {
  const std::string step = "step " + std::to_string(purpose.step.value);
  if (purpose.kind == Purpose::Kind::step) return step;
  return (purpose.kind == Purpose::Kind::evaluation ? "the evaluation at " : "the comparison of states at ") + step;
}

}  // namespace sinew
