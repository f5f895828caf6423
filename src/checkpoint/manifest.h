// Private to checkpoint/: writes and parses manifest.json, the list of the files in a checkpoint directory and their
// checksums (docs/formats/checkpoint.md, "manifest.json").
#pragma once

#include <expected>
#include <map>
#include <optional>
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
  std::map<std::string, FileChecksums> files;
  bool operator==(const Manifest&) const = default;
};

std::string manifest_text(const Manifest& manifest);
// Refuses every manifest in which a byte was changed, and every text that version 1 of the format does not allow
// exactly. Uses memory in proportion to the length of the text.
std::expected<Manifest, std::string> parse_manifest(std::string_view text);

// the body, over which the checksum is computed, ends with this text
inline constexpr std::string_view kChecksumKey = " \"checksum\": \"";

// Appends the checksum and the closing bytes to `body`. Tests use this to make a wrong manifest with a right checksum.
std::string with_checksum(std::string body);
// Returns why the text does not end with the checksum of its body, or nullopt if it does.
std::optional<std::string> wrong_checksum(std::string_view text);

}  // namespace sinew::checkpoint
