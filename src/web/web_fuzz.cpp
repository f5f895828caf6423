// Any bytes as a filter, an order and a body: no crash, no hang, and what filter_judge.h asks.
#include <cstdint>
#include <string>

#include "web/filter_judge.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string text(reinterpret_cast<const char*>(data), size);
  sinew::web::judge_filter(text);
  sinew::web::judge_body(text);
  return 0;
}
