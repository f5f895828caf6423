// For tests: random damage to requests, which a parser must report or survive.
#pragma once

#include <algorithm>
#include <string>
#include <vector>

#include "base/random.h"

namespace sinew::http {

inline std::string sample_request(RandomStream& random) {
  static const std::vector<std::string> samples = {
      "GET / HTTP/1.1\r\nHost: x\r\n\r\n",
      "GET /a%20b?x=1&y=%41&z HTTP/1.1\r\nhost: x\r\nAccept: */*\r\nCookie: a=b\r\n\r\n",
      "HEAD http://x:1/a?b HTTP/1.1\r\nHost: x:1\r\nConnection: close, x\r\n\r\n",
      "POST /p HTTP/1.1\r\nHost: x\r\nContent-Length: 11\r\n\r\nhello world",
      "POST /p HTTP/1.1\r\nHost: x\r\nExpect: 100-continue\r\nContent-Length: 3\r\n\r\nabc",
      "PUT /c HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n6;n=\"v\"\r\n world\r\n0\r\n\r\n",
      "PUT /c HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n1\r\nh\r\n0;a=b\r\nX-Trailer: 1\r\nY: 2\r\n\r\n",
      "OPTIONS * HTTP/1.0\r\nConnection: keep-alive\r\nUpgrade: h2c\r\nX: a\r\n b\r\n\r\n",
  };
  std::string text = samples[random.below(samples.size())];
  while (random.below(3) == 0) text += samples[random.below(samples.size())];
  return text;
}

inline std::string mutated(std::string text, RandomStream& random) {
  static const std::vector<std::string> words = {"\r\n",
                                                 "\r\n\r\n",
                                                 "\n",
                                                 "\r",
                                                 " ",
                                                 "\t",
                                                 ":",
                                                 ",",
                                                 ";",
                                                 "%",
                                                 "%00",
                                                 "%4",
                                                 "?",
                                                 "&",
                                                 "=",
                                                 "#",
                                                 "/",
                                                 "*",
                                                 "\"",
                                                 "\\",
                                                 std::string(1, '\0'),
                                                 "\xff",
                                                 "0",
                                                 "00000000000000000001",
                                                 "ffffffffffffffff",
                                                 "18446744073709551616",
                                                 "-1",
                                                 "HTTP/1.1",
                                                 "HTTP/1.0",
                                                 "HTTP/9.9",
                                                 "GET ",
                                                 "Host: y\r\n",
                                                 "Content-Length: 5\r\n",
                                                 "Content-Length: 5, 5\r\n",
                                                 "Transfer-Encoding: chunked\r\n",
                                                 "Transfer-Encoding: identity\r\n",
                                                 "Connection: upgrade\r\n",
                                                 std::string(5000, 'a'),
                                                 std::string(300, '\r'),
                                                 "0\r\n\r\n",
                                                 "0\r\n",
                                                 "5\r\n"};
  for (uint64_t left = random.below(5); left > 0 && !text.empty(); --left) {
    const size_t at = random.below(text.size()), size = random.below(std::min<size_t>(text.size() - at, 20) + 1);
    switch (random.below(6)) {
      case 0: text[at] = static_cast<char>(random.below(256)); break;
      case 1: text.erase(at, size); break;
      case 2: text.insert(at, words[random.below(words.size())]); break;
      case 3: text.replace(at, size, words[random.below(words.size())]); break;
      case 4: text.insert(random.below(text.size()), text.substr(at, size)); break;
      default: text.resize(at); break;
    }
  }
  return text;
}

inline std::string mutated_request(RandomStream& random) {
  return mutated(sample_request(random), random);
}

}  // namespace sinew::http
