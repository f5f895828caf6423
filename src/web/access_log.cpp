#include "web/access_log.h"

#include <cmath>
#include <nlohmann/json.hpp>

#include "base/json_text.h"

namespace sinew::web {
namespace {

constexpr size_t kLongestPath = 1000;

}  // namespace

AccessEntry::AccessEntry(const Options& options, const http::Request& request)
    : options_(options),
      address_(request.peer),
      method_(request.method),
      path_(request.path.substr(0, kLongestPath)),
      began_(options.clock->monotonic_seconds()) {}

void AccessEntry::finish(int status) {
  if (!options_.access_log || finished_.exchange(true)) return;
  const double ms = (options_.clock->monotonic_seconds() - began_) * 1000;
  const nlohmann::ordered_json line{{"at", utc_iso(options_.clock->wall_seconds())},
                                    {"address", address_},
                                    {"token", token_},
                                    {"method", method_},
                                    {"path", path_},
                                    {"status", status},
                                    {"ms", std::round(ms * 10) / 10}};
  options_.access_log(dump_json(line));
}

}  // namespace sinew::web
