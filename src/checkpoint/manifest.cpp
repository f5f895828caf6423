#include "checkpoint/manifest.h"

#include <cmath>
#include <nlohmann/json.hpp>
#include <set>
#include <utility>
#include <vector>

#include "base/check.h"
#include "checkpoint/names.h"

namespace sinew::checkpoint {
namespace {

using Json = nlohmann::json;

constexpr std::string_view kEnd = "\"\n}\n";
constexpr size_t kTail = 32 + kEnd.size();
constexpr int kMaxDepth = 4;  // {files: {name: {chunks: [

// Only this file throws it; parse_manifest catches it.
struct Refused {
  std::string why;
};

// Refuses repeated keys and deep nesting, which the JSON library accepts silently.
class Guard {
 public:
  bool operator()(int depth, Json::parse_event_t event, Json& value) {
    if (depth > kMaxDepth) throw Refused{"is nested too deeply"};
    if (event == Json::parse_event_t::object_start) keys_.emplace_back();
    if (event == Json::parse_event_t::object_end) keys_.pop_back();
    if (event == Json::parse_event_t::key && !keys_.back().insert(value.get<std::string>()).second) {
      throw Refused{"has the field \"" + value.get<std::string>().substr(0, 80) + "\" twice"};
    }
    return true;
  }

 private:
  std::vector<std::set<std::string>> keys_;
};

void expect_fields(const Json& object, std::initializer_list<const char*> fields, const std::string& where) {
  if (!object.is_object()) throw Refused{where + " is not an object"};
  for (const char* field : fields) {
    if (!object.contains(field)) throw Refused{where + " has no field \"" + field + "\""};
  }
  if (object.size() != fields.size()) throw Refused{where + " has a field that version 1 does not allow"};
}

Digest digest_in(const Json& value, const std::string& where) {
  Digest digest;
  if (!value.is_string() || !from_hex(value.get_ref<const std::string&>(), digest)) {
    throw Refused{where + " is not 32 hex digits"};
  }
  return digest;
}

uint64_t count_in(const Json& value, const std::string& where) {
  if (!value.is_number_unsigned()) throw Refused{where + " is not a whole number"};
  return value.get<uint64_t>();
}

FileChecksums checksums_in(const Json& value, const std::string& name) {
  expect_fields(value, {"bytes", "xxh3_128", "chunks"}, name);
  FileChecksums checksums;
  checksums.bytes = count_in(value["bytes"], name + ".bytes");
  checksums.whole = digest_in(value["xxh3_128"], name + ".xxh3_128");
  const Json& chunks = value["chunks"];
  const uint64_t expected = checksums.bytes / kChunkBytes + (checksums.bytes % kChunkBytes != 0 ? 1 : 0);
  if (!chunks.is_array() || chunks.size() != expected) {
    throw Refused{name + ".chunks is not a list of " + std::to_string(expected) + " checksums"};
  }
  for (const Json& chunk : chunks) checksums.chunks.push_back(digest_in(chunk, "one of " + name + ".chunks"));
  return checksums;
}

Manifest manifest_in(const Json& root) {
  if (!root.is_object() || root.value("format", Json()) != "sinew-checkpoint")
    throw Refused{"is not the manifest of a checkpoint"};
  if (const Json version = root.value("version", Json()); !version.is_number_unsigned() || version != 1U) {
    throw Refused{"has a version other than 1: another version of Sinew wrote it"};
  }
  expect_fields(root, {"format", "version", "step", "digest", "written_seconds", "chunk_bytes", "files", "checksum"},
                "it");
  Manifest manifest;
  const uint64_t step = count_in(root["step"], "step");
  if (step > static_cast<uint64_t>(INT64_MAX)) throw Refused{"step is too large"};
  manifest.step = Step(static_cast<int64_t>(step));
  manifest.digest = digest_in(root["digest"], "digest");
  if (!root["written_seconds"].is_number()) throw Refused{"written_seconds is not a number"};
  manifest.written_seconds = root["written_seconds"].get<double>();
  if (count_in(root["chunk_bytes"], "chunk_bytes") != kChunkBytes) throw Refused{"chunk_bytes is not 1048576"};
  if (!root["files"].is_object()) throw Refused{"files is not an object"};
  for (const auto& [name, checksums] : root["files"].items()) {
    if (!is_listed_name(name))
      throw Refused{"files lists a name that no part can have: \"" + name.substr(0, 80) + "\""};
    manifest.files.emplace(name, checksums_in(checksums, name));
  }
  if (!manifest.files.contains(std::string(kStateFile))) throw Refused{"files does not list state.json"};
  return manifest;
}

void append_checksums(std::string& text, const std::string& name, const FileChecksums& checksums) {
  text += "  \"" + name + "\": {\n   \"bytes\": " + std::to_string(checksums.bytes) + ",\n   \"xxh3_128\": \"" +
          to_hex(checksums.whole) + "\",\n   \"chunks\": [";
  for (size_t i = 0; i < checksums.chunks.size(); ++i)
    text += (i == 0 ? "\"" : ", \"") + to_hex(checksums.chunks[i]) + "\"";
  text += "]\n  }";
}

}  // namespace

std::string with_checksum(std::string body) {
  const Digest digest = digest_of(std::string_view(body));
  return body.append(to_hex(digest)).append(kEnd);
}

std::string manifest_text(const Manifest& manifest) {
  SINEW_CHECK(std::isfinite(manifest.written_seconds), manifest.written_seconds);
  std::string text =
      "{\n \"format\": \"sinew-checkpoint\",\n \"version\": 1,\n \"step\": " + std::to_string(manifest.step.value) +
      ",\n \"digest\": \"" + to_hex(manifest.digest) +
      "\",\n \"written_seconds\": " + Json(manifest.written_seconds).dump() +
      ",\n \"chunk_bytes\": " + std::to_string(kChunkBytes) + ",\n \"files\": {\n";
  bool first = true;
  for (const auto& [name, checksums] : manifest.files) {
    SINEW_CHECK(is_listed_name(name), name);
    if (!std::exchange(first, false)) text += ",\n";
    append_checksums(text, name, checksums);
  }
  return with_checksum(text.append("\n },\n").append(kChecksumKey));
}

std::optional<std::string> wrong_checksum(std::string_view text) {
  if (text.size() < kTail + kChecksumKey.size() || !text.ends_with(kEnd))
    return "does not end like a manifest: it is truncated or overwritten";
  const std::string_view body = text.substr(0, text.size() - kTail);
  Digest told;
  if (!body.ends_with(kChecksumKey) || !from_hex(text.substr(body.size(), 32), told))
    return "has no checksum at its end";
  if (const Digest found = digest_of(body); found != told)
    return "has checksum " + to_hex(found) + ", but says " + to_hex(told);
  return std::nullopt;
}

std::expected<Manifest, std::string> parse_manifest(std::string_view text) {
  if (text.size() > kMaxManifestBytes) return std::unexpected("is larger than 64 MiB");
  if (auto wrong = wrong_checksum(text)) return std::unexpected(std::move(*wrong));
  // a zero byte would end the JSON parser's input
  if (text.find('\0') != std::string_view::npos) return std::unexpected("has a zero byte");
  try {
    return manifest_in(Json::parse(text.begin(), text.end(), Guard()));
  } catch (const Refused& refused) {
    return std::unexpected(refused.why);
  } catch (const Json::exception& error) {
    return std::unexpected("is not JSON: " + std::string(error.what()).substr(0, 200));
  }
}

}  // namespace sinew::checkpoint
