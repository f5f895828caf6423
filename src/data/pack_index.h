// Private to data/: the index of packed data, which `sinew data pack` writes beside the tars: docs/formats/pack.md.
//
// It saves the scan of the tars, names the classes, and has a checksum of each sample. It is lines of text, because a
// data set may have millions of samples: it is written and read line by line, so its size costs no memory.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "base/disk.h"
#include "base/hash.h"

namespace sinew::data {

inline constexpr std::string_view kPackIndex = "pack.index";  // its name in the folder of the tars

struct PackHeader {
  std::vector<std::string> classes;  // in the order of the labels; empty: the labels are numbers to predict
};
struct PackShard {
  std::string name;  // of the tar
  uint64_t bytes = 0;
  int64_t samples = 0;
};
struct PackSample {
  uint64_t offset = 0, bytes = 0;  // of the image in its tar
  uint64_t checksum = 0;
  std::string_view label;  // class number, or the number as written
  std::string_view name;   // of the member
};

class PackIndexWriter {
 public:
  PackIndexWriter(Disk::File& file, const PackHeader& header);
  void sample(const PackSample& sample);   // of the shard that ends next
  void end_shard(const PackShard& shard);  // shard.samples is counted here
  void end(Digest source);                 // the digest of what was packed

 private:
  void put(std::string_view text);
  Disk::File& file_;
  DigestStream digest_;
  std::string rows_;
  int64_t samples_ = 0;
};

// What a reader of an index takes from it. `wanted` says whether the samples of a shard are wanted.
struct PackIndexTaker {
  std::function<void(const PackHeader&)> header;
  std::function<bool(const PackShard&)> wanted;
  std::function<void(const PackSample&)> sample;  // its texts end with the call
};
// Throws Error, which names the line, if the index is damaged or was written by another version.
void read_pack_index(const std::string& path, const PackIndexTaker& taker);

}  // namespace sinew::data
