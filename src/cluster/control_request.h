// Defines a user's request to a running training, and the one table of the kinds of requests.
//
// The coordinator, the HTTP API, `sinew control` and `sinew scale` all check a request by this table.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

namespace sinew::cluster {

constexpr int64_t kMostWorkers = 4096;  // the most workers of one run

// When the leader takes the request, it becomes an entry of the control log.
struct ControlRequest {
  int64_t number = 0;
  std::string kind;  // a name in request_kinds() that is logged
  double value = 0;
  std::string reason;
  bool operator==(const ControlRequest&) const = default;
};

struct RequestKind {
  const char* name;
  const char* value = "";  // what the value is, with its limits; "": users give no value
  double least = 0, most = 0;
  bool whole = false;  // the value is a whole number
  // true: the request is sent to POST /v2/control and becomes an entry of the control log. false: it is the number of
  // workers, which does not change the result and has its own call, POST /v2/scale.
  bool logged = true;

  bool takes_value() const { return most > 0; }
  bool accepts(double number) const;
};
std::span<const RequestKind> request_kinds();
const RequestKind* request_kind(std::string_view name);  // null: there is no such kind

}  // namespace sinew::cluster
