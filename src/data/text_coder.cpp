// Turns text into the tokens of a trained text model, and tokens into text.
#include <algorithm>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/utf8.h"
#include "data/data.h"
#include "data/inference.h"

namespace sinew::data {
namespace {

std::vector<uint32_t> vocabulary_of(const DataInfo& train, uint32_t most) {
  std::vector<uint32_t> vocabulary;
  try {
    vocabulary = nlohmann::json::parse(train.preparation).at("vocabulary").get<std::vector<uint32_t>>();
  } catch (const nlohmann::json::exception&) {
    refuse_model_info("it has no vocabulary");
  }
  const auto known = static_cast<int64_t>(vocabulary.size());
  if (vocabulary.empty() || !std::is_sorted(vocabulary.begin(), vocabulary.end()) || vocabulary.back() > most ||
      (train.classes != known && train.classes != known + 1))
    refuse_model_info("its vocabulary does not match its number of classes");
  return vocabulary;
}

}  // namespace

TextCoder::TextCoder(const spec::DataOptions& options, const DataInfo& train)
    : classes_(train.classes), bytes_(options.text.tokens == "bytes") {
  if (train.format != "text")
    throw Error("DATA_NOT_TEXT", "the model was trained on data of the format " + train.format + ", not on text",
                "train one with data: {format: text}");
  vocabulary_ = vocabulary_of(train, bytes_ ? 0xFF : 0x10FFFF);
}

TextCoder::Tokens TextCoder::encode(std::string_view text, const std::string& name) const {
  Tokens made;
  for (size_t at = 0; at < text.size();) {
    const CodePoint point = bytes_ ? CodePoint{static_cast<uint8_t>(text[at]), 1} : decode_utf8(text, at);
    if (point.size == 0) {
      throw Error("DATA_NOT_UTF8", name + ": not UTF-8 at byte " + std::to_string(at),
                  "convert it, for example with iconv");
    }
    const auto found = std::lower_bound(vocabulary_.begin(), vocabulary_.end(), static_cast<uint32_t>(point.value));
    const bool seen = found != vocabulary_.end() && *found == static_cast<uint32_t>(point.value);
    const auto unknown = static_cast<int64_t>(vocabulary_.size());
    if (!seen && classes_ == unknown) {
      throw Error("DATA_UNKNOWN_TOKEN",
                  name + ": the character at byte " + std::to_string(at) + " does not occur in the training data",
                  "replace it, or train with text that has it");
    }
    made.tokens.push_back(seen ? found - vocabulary_.begin() : unknown);
    made.offsets.push_back(at);
    at += static_cast<size_t>(point.size);
  }
  return made;
}

std::string TextCoder::decode(int64_t token) const {
  if (token < 0 || token >= static_cast<int64_t>(vocabulary_.size())) return "";
  const uint32_t point = vocabulary_[static_cast<size_t>(token)];
  if (bytes_) return {static_cast<char>(point)};
  std::string character;
  append_utf8(point, character);
  return character;
}

}  // namespace sinew::data
