// Fuzzes the routes. The fuzzer's bytes are read as choices that make up to 20 requests; their answers must satisfy
// request_fuzz.h.
#include <openssl/ssl.h>

#include <cstddef>
#include <cstdint>

#include "web/request_fuzz.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  // OpenSSL registers its clean-up before `fuzzer` is made, and so cleans up after the destructor of `fuzzer`. In the
  // other order, what the destructor frees through OpenSSL would seem to leak.
  static const int ready = ::OPENSSL_init_ssl(0, nullptr);
  static sinew::web::RequestFuzzer fuzzer;
  if (ready != 1) return 0;
  size_t at = 0;
  const auto choose = [&](uint32_t below) -> uint32_t {
    uint32_t number = at < size ? data[at++] : 0;
    if (below > 256 && at < size) number = number << 8U | data[at++];
    return number % below;
  };
  for (int i = 0; i < 20 && at < size; ++i) fuzzer.step(choose);
  return 0;
}
