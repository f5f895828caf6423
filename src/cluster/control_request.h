// A user's request to a running training.
#pragma once

#include <cstdint>
#include <string>

namespace sinew::cluster {

// When the leader takes the request, it becomes an entry of the control log.
struct ControlRequest {
  int64_t number = 0;
  std::string kind;  // stop | checkpoint | evaluate | learning_rate | batch_size
  double value = 0;
  std::string reason;
  bool operator==(const ControlRequest&) const = default;
};

}  // namespace sinew::cluster
