#include "base/hex.h"

#include <sys/random.h>

#include <cerrno>
#include <cstring>
#include <vector>

#include "base/error.h"

namespace sinew {
namespace {

constexpr std::string_view kHexDigits = "0123456789abcdef";

}  // namespace

std::string hex_of(std::span<const unsigned char> bytes) {
  std::string text;
  for (const unsigned char byte : bytes) {
    text += kHexDigits[byte >> 4];
    text += kHexDigits[byte & 15];
  }
  return text;
}

bool is_hex(std::string_view text, size_t digits) {
  return text.size() == digits && text.find_first_not_of(kHexDigits) == std::string_view::npos;
}

bool read_hex(std::string_view text, std::span<unsigned char> bytes) {
  if (!is_hex(text, 2 * bytes.size())) return false;
  for (size_t i = 0; i < bytes.size(); ++i)
    bytes[i] = static_cast<unsigned char>(16 * kHexDigits.find(text[2 * i]) + kHexDigits.find(text[2 * i + 1]));
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
