// Computes the digest of a state. Compares it with that of a checkpoint that was read.
#include "checkpoint/state_digest.h"

#include <algorithm>
#include <atomic>
#include <cstring>
#include <expected>
#include <nlohmann/json.hpp>
#include <optional>

#include "checkpoint/digest_check.h"

namespace sinew::checkpoint {
namespace {

using DigestDocument = nlohmann::json;

constexpr size_t kDigestBlock = kChunkBytes;

struct Described {
  Digest text;
  std::vector<DigestedTensor> tensors;
};

// Returns nullopt if the document does not say how its digest was made, and the reason if it says it wrongly.
std::expected<std::optional<Described>, std::string> described_in(const std::string& state_json) {
  const auto document = DigestDocument::parse(state_json, nullptr, /*allow_exceptions=*/false);
  if (!document.is_object() || !document.contains(kStateDigestKey)) return std::nullopt;
  const auto wrong = std::unexpected(std::string("has a field \"") + kStateDigestKey + "\" that is not valid");
  const auto& member = document.at(kStateDigestKey);
  if (!member.is_object() || !member.contains("text") || !member.contains("tensors")) return wrong;
  const auto &text = member.at("text"), &tensors = member.at("tensors");
  Described described;
  if (!text.is_string() || !from_hex(text.get_ref<const std::string&>(), described.text) || !tensors.is_array())
    return wrong;
  for (const auto& one : tensors) {
    if (one.is_number_unsigned()) {
      described.tensors.push_back({"", "", one.get<uint64_t>()});
      continue;
    }
    const std::string path = one.is_string() ? one.get<std::string>() : "";
    const size_t slash = path.find('/');
    if (slash == 0 || slash == std::string::npos) return wrong;
    described.tensors.push_back({path.substr(0, slash), path.substr(slash + 1), 0});
  }
  return described;
}

}  // namespace

void StateDigest::add(std::span<const std::byte> bytes, std::byte* copy) {
  for (size_t at = 0; at < bytes.size(); at += kDigestBlock) {
    blocks_.push_back(
        {bytes.data() + at, copy != nullptr ? copy + at : nullptr, std::min(kDigestBlock, bytes.size() - at)});
  }
}

void StateDigest::add_zeros(uint64_t bytes) {
  for (uint64_t at = 0; at < bytes; at += kDigestBlock)
    blocks_.push_back({nullptr, nullptr, static_cast<size_t>(std::min<uint64_t>(kDigestBlock, bytes - at))});
}

void StateDigest::add_computed(std::span<const Digest> blocks) {
  compute();  // what was added before comes first
  computed_.insert(computed_.end(), blocks.begin(), blocks.end());
}

void StateDigest::compute(const Run& run) {
  const size_t before = computed_.size();
  computed_.resize(before + blocks_.size());
  std::atomic<size_t> next = 0;
  const auto work = [&] {
    for (size_t i = next++; i < blocks_.size(); i = next++) computed_[before + i] = walk(blocks_[i]);
  };
  run ? run(work) : work();
  blocks_.clear();
}

Digest StateDigest::finish(Digest text, const Run& run) {
  compute(run);
  std::vector<Digest> parts{text};
  parts.insert(parts.end(), computed_.begin(), computed_.end());
  return digest_of(parts);
}

Digest StateDigest::walk(const Block& block) {
  constexpr size_t kCached = 64 << 10;
  static const std::vector<std::byte> zeros(kDigestBlock);
  static const Digest whole = digest_of(std::span(zeros));
  if (block.from == nullptr) return block.size == kDigestBlock ? whole : digest_of(std::span(zeros).first(block.size));
  if (block.to == nullptr) return digest_of(std::span(block.from, block.size));
  DigestStream stream;
  for (size_t at = 0; at < block.size; at += kCached) {
    const size_t size = std::min(kCached, block.size - at);
    std::memcpy(block.to + at, block.from + at, size);
    stream.update(std::span<const std::byte>(block.to + at, size));
  }
  return stream.digest();
}

DigestDocument state_digest_json(Digest text, const std::vector<DigestedTensor>& tensors) {
  DigestDocument list = DigestDocument::array();
  for (const DigestedTensor& one : tensors)
    one.part.empty() ? list.push_back(one.zeros) : list.push_back(one.part + "/" + one.name);
  return {{"text", to_hex(text)}, {"tensors", std::move(list)}};
}

std::optional<std::string> wrong_state_digest(const std::string& state_json, Digest expected, uint64_t bytes,
                                              const std::map<std::string, TensorDigests>& parts) {
  constexpr uint64_t kMostStates = 64;  // zeros stand for tensors of the optimizer, which has a few for each parameter
  const auto described = described_in(state_json);
  if (!described) return described.error();
  if (!*described) return std::nullopt;
  StateDigest digest;
  uint64_t zeros = 0;
  for (const DigestedTensor& one : (*described)->tensors) {
    if (one.part.empty()) {
      if (one.zeros > kMostStates * bytes || (zeros += one.zeros) > kMostStates * bytes)
        return "names more zeros than its tensors can have";
      digest.add_zeros(one.zeros);
      continue;
    }
    const auto part = parts.find(one.part);
    if (part == parts.end()) return "names the part " + one.part + ", which the checkpoint does not have";
    const auto found = part->second.find(one.name);
    if (found == part->second.end()) return "names the tensor " + one.name + ", which " + one.part + " does not have";
    digest.add_computed(found->second);
  }
  const Digest found = digest.finish((*described)->text);
  if (found == expected) return std::nullopt;
  return "the tensors have the state digest " + to_hex(found) + " instead of " + to_hex(expected) +
         ": memory of the machine that wrote them may have changed";
}

}  // namespace sinew::checkpoint
