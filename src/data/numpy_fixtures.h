// For the tests of data/: builds .npy and .npz files.
#pragma once

#include <zlib.h>

#include <algorithm>
#include <cstring>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "data/fixtures.h"

namespace sinew::data {

inline std::string npy(const std::string& dictionary, std::string_view data, int version = 1) {
  std::string header = dictionary;
  const size_t start = version == 1 ? 10 : 12;
  while ((start + header.size() + 1) % 64 != 0) header += ' ';
  header += '\n';
  std::string out = "\x93NUMPY" + std::string{static_cast<char>(version), '\0'};
  for (size_t i = 0; i < (version == 1 ? 2U : 4U); ++i) out.push_back(static_cast<char>(header.size() >> (8 * i)));
  return out + header + std::string(data);
}

inline std::string dict(const std::string& type, const std::string& shape, bool fortran = false) {
  return "{'descr': '" + type + "', 'fortran_order': " + (fortran ? "True" : "False") + ", 'shape': " + shape + ", }";
}

template <typename T>
std::string raw(const std::vector<T>& values, bool swap = false) {
  std::string out;
  for (const T value : values) {
    char bytes[sizeof(T)];
    std::memcpy(bytes, &value, sizeof(T));
    if (swap) std::reverse(bytes, bytes + sizeof(T));
    out.append(bytes, sizeof(T));
  }
  return out;
}

// Builds a .npz byte by byte from the definition of ZIP.
inline std::string npz(const std::vector<std::pair<std::string, std::string>>& members, bool deflated,
                       bool wide = false) {
  const auto put = [](std::string& out, uint64_t value, int bytes) {
    for (int i = 0; i < bytes; ++i) out.push_back(static_cast<char>(value >> (8 * i)));
  };
  std::string out, directory;
  for (const auto& [name, data] : members) {
    std::string packed = data;
    if (deflated) {
      packed = gzipped(data);  // a deflate stream between a 10-byte header and an 8-byte trailer
      packed = packed.substr(10, packed.size() - 18);
    }
    const auto crc =
        static_cast<uint32_t>(crc32(0, reinterpret_cast<const Bytef*>(data.data()), static_cast<uInt>(data.size())));
    const uint64_t offset = out.size();
    std::string extra;
    if (wide) {
      put(extra, 1, 2), put(extra, 24, 2), put(extra, data.size(), 8), put(extra, packed.size(), 8),
          put(extra, offset, 8);
    }
    put(out, 0x04034B50, 4), put(out, 45, 2), put(out, 0, 2), put(out, deflated ? 8 : 0, 2), put(out, 0, 4),
        put(out, crc, 4);
    put(out, packed.size(), 4), put(out, data.size(), 4), put(out, name.size(), 2), put(out, 0, 2);
    out += name + packed;
    put(directory, 0x02014B50, 4), put(directory, 45, 2), put(directory, 45, 2), put(directory, 0, 2);
    put(directory, deflated ? 8 : 0, 2), put(directory, 0, 4), put(directory, crc, 4);
    put(directory, wide ? 0xFFFFFFFF : packed.size(), 4), put(directory, wide ? 0xFFFFFFFF : data.size(), 4);
    put(directory, name.size(), 2), put(directory, extra.size(), 2), put(directory, 0, 2), put(directory, 0, 4),
        put(directory, 0, 4);
    put(directory, wide ? 0xFFFFFFFF : offset, 4);
    directory += name + extra;
  }
  const uint64_t start = out.size();
  out += directory;
  put(out, 0x06054B50, 4), put(out, 0, 4), put(out, members.size(), 2), put(out, members.size(), 2);
  put(out, directory.size(), 4), put(out, start, 4), put(out, 0, 2);
  return out;
}

}  // namespace sinew::data
