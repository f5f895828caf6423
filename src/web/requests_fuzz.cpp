// Fuzzes the routes. The fuzzer's bytes are read as choices that make up to 20 requests; their answers must satisfy
// request_fuzz.h.
#include <cstddef>
#include <cstdint>

#include "web/request_fuzz.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  static sinew::web::RequestFuzzer fuzzer;
  size_t at = 0;
  const auto choose = [&](uint32_t below) -> uint32_t {
    uint32_t number = at < size ? data[at++] : 0;
    if (below > 256 && at < size) number = number << 8U | data[at++];
    return number % below;
  };
  for (int i = 0; i < 20 && at < size; ++i) fuzzer.step(choose);
  return 0;
}
