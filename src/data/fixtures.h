// For the tests of data/: builds small files, and reads whole splits.
#pragma once

#include <gtest/gtest.h>
#include <zlib.h>

#include <cstring>
#include <string>
#include <vector>

#include "base/expected_error.h"
#include "base/random.h"
#include "data/data.h"
#include "data/scratch_folder.h"

namespace sinew::data {

inline std::string gzipped(std::string_view bytes) {
  z_stream stream{};
  deflateInit2(&stream, 6, Z_DEFLATED, 15 + 16, 8, Z_DEFAULT_STRATEGY);
  std::string out(deflateBound(&stream, bytes.size()), '\0');
  stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(bytes.data()));
  stream.avail_in = static_cast<uInt>(bytes.size());
  stream.next_out = reinterpret_cast<Bytef*>(out.data());
  stream.avail_out = static_cast<uInt>(out.size());
  deflate(&stream, Z_FINISH);
  out.resize(stream.total_out);
  deflateEnd(&stream);
  return out;
}

inline std::string idx_bytes(uint8_t type, const std::vector<uint32_t>& dims, std::string_view data) {
  std::string out{'\0', '\0', static_cast<char>(type), static_cast<char>(dims.size())};
  for (const uint32_t size : dims) {
    for (int shift = 24; shift >= 0; shift -= 8) out.push_back(static_cast<char>(size >> shift));
  }
  return out + std::string(data);
}

inline std::string random_bytes(uint64_t seed, size_t size, uint64_t bound = 256) {
  RandomStream draws(random_key({seed}));
  std::string out;
  for (size_t i = 0; i < size; ++i) out.push_back(static_cast<char>(draws.below(bound)));
  return out;
}

inline Batch load_all(const Dataset& dataset, Split split) {
  std::vector<int64_t> samples;
  for (int64_t i = 0; i < dataset.size(split); ++i) samples.push_back(i);
  return dataset.load(split, samples, {});
}

#define EXPECT_HAS(text, word) EXPECT_NE((text).find(word), std::string::npos) << (text)

}  // namespace sinew::data
