// Any bytes, as an address, a target, requests and a response: no crash, no hang, and what judge.h asks.
#include <cstdint>
#include <string_view>

#include "http/judge.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace sinew::http;
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  judge_url(text);
  judge_target(text);
  judge_requests(text);
  judge_response(text, size % 2 == 0);
  return 0;
}
