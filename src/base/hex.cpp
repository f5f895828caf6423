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
