#include "base/hex.h"

#include <sys/random.h>

#include <cerrno>
#include <cstring>
#include <vector>

#include "base/error.h"

namespace sinew {

std::string hex_of(std::span<const unsigned char> bytes) {
  std::string text;
  for (const unsigned char byte : bytes) {
    text += "0123456789abcdef"[byte >> 4];
    text += "0123456789abcdef"[byte & 15];
  }
  return text;
}

bool read_hex(std::string_view text, std::span<unsigned char> bytes) {
  constexpr std::string_view kDigits = "0123456789abcdef";
  if (text.size() != 2 * bytes.size()) return false;
  for (size_t i = 0; i < bytes.size(); ++i) {
    const size_t high = kDigits.find(text[2 * i]), low = kDigits.find(text[2 * i + 1]);
    if (high == std::string_view::npos || low == std::string_view::npos) return false;
    bytes[i] = static_cast<unsigned char>(16 * high + low);
  }
  return true;
}

std::string random_hex(size_t bytes) {
  std::vector<unsigned char> random(bytes);
  for (size_t done = 0; done < bytes;) {
    const ssize_t got = ::getrandom(random.data() + done, bytes - done, 0);
    if (got < 0 && errno != EINTR)
      throw Error("RANDOM_UNAVAILABLE", std::string("getrandom failed: ") + std::strerror(errno),
                  "check whether a sandbox forbids the system call getrandom");
    if (got > 0) done += static_cast<size_t>(got);
  }
  return hex_of(random);
}

}  // namespace sinew
