// What must be in a checkpoint directory (docs/formats/checkpoint.md, "manifest.json").
#pragma once

#include <expected>
#include <map>
#include <string>
#include <string_view>

#include "base/hash.h"
#include "base/ids.h"
#include "checkpoint/checksums.h"

namespace sinew::checkpoint {

inline constexpr uint64_t kMaxManifestBytes = 64 << 20;

struct Manifest {
  Step step;
  Digest digest;
  double written_seconds = 0;
  std::map<std::string, FileFacts> files;
  bool operator==(const Manifest&) const = default;
};

std::string manifest_text(const Manifest& manifest);
// Refuses every text in which a byte was changed, and every text that is not exactly what version 1 allows. Memory is
// in proportion to the text.
std::expected<Manifest, std::string> parse_manifest(std::string_view text);

// `body` with the checksum that makes it a manifest; for tests that need a wrong one with a right checksum.
std::string with_checksum(std::string body);

}  // namespace sinew::checkpoint
