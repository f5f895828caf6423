// Fuzzes the readers of URLs, targets, requests and responses. For any bytes, the properties in invariants.h must hold,
// without a crash or hang.
#include <cstdint>
#include <string_view>

#include "http/invariants.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace sinew::http;
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  check_url(text);
  check_target(text);
  check_requests(text);
  check_response(text, size % 2 == 0);
  return 0;
}
