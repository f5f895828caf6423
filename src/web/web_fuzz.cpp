// Fuzzes the readers of filters, orders and bodies. For any bytes, the properties in invariants.h must hold, without a
// crash or hang.
#include <cstdint>
#include <string>

#include "web/invariants.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string text(reinterpret_cast<const char*>(data), size);
  sinew::web::check_filter(text);
  sinew::web::check_body(text);
  return 0;
}
