// Opens new text for a trained model, cut into windows as in training. The last position of a window predicts the token
// after the window; the file need not contain that token.
#include <algorithm>

#include "base/check.h"
#include "base/error.h"
#include "base/utf8.h"
#include "data/files.h"
#include "data/inference.h"

namespace sinew::data {
namespace {

class TextInferenceData final : public Dataset {
 public:
  TextInferenceData(DataInfo info, std::string file, std::vector<int64_t> tokens, std::vector<uint64_t> offsets)
      : info_(std::move(info)), file_(std::move(file)), tokens_(std::move(tokens)), offsets_(std::move(offsets)) {}

  const DataInfo& info() const override { return info_; }
  int64_t size(Split split) const override { return split == Split::test ? info_.test_size : 0; }
  bool in_memory() const override { return true; }
  std::string describe(Split, int64_t sample) const override {
    const int64_t first = sample * info_.tokens_per_sample;
    return file_name(file_) + " at byte " + std::to_string(offsets_[static_cast<size_t>(first)]);
  }

  Batch load(Split split, std::span<const int64_t> samples, const SampleContext&) const override {
    const int64_t window = info_.tokens_per_sample, total = static_cast<int64_t>(tokens_.size());
    Batch batch;
    batch.samples.assign(samples.begin(), samples.end());
    batch.input = Array(DType::i64, {batch.count(), window});
    batch.target = blank_targets(info_, batch.count());
    for (size_t i = 0; i < samples.size(); ++i) {
      SINEW_CHECK(samples[i] >= 0 && samples[i] < size(split), samples[i], size(split));
      const int64_t first = samples[i] * window, known = std::min(window, total - first - 1);
      int64_t* input = batch.input.as<int64_t>() + static_cast<int64_t>(i) * window;
      int64_t* target = batch.target.as<int64_t>() + static_cast<int64_t>(i) * window;
      std::copy_n(tokens_.data() + first, window, input);
      std::copy_n(tokens_.data() + first + 1, known, target);
    }
    return batch;
  }

 private:
  DataInfo info_;
  std::string file_;
  std::vector<int64_t> tokens_;
  std::vector<uint64_t> offsets_;  // byte offset of each token in the file
};

}  // namespace

std::string text_preparation(const std::vector<uint32_t>& vocabulary) {
  return nlohmann::json({{"vocabulary", vocabulary}}).dump();
}

std::unique_ptr<Dataset> open_text_inference(InferenceRequest request) {
  DataInfo& info = request.info;
  const auto vocabulary = request.preprocessing.at("vocabulary").get<std::vector<uint32_t>>();
  const bool bytes = request.options.text.tokens == "bytes";
  const auto known = static_cast<int64_t>(vocabulary.size());
  const bool fits = std::is_sorted(vocabulary.begin(), vocabulary.end()) &&
                    (info.classes == known || info.classes == known + 1) && info.tokens_per_sample >= 1 &&
                    info.input_shape == Shape{info.tokens_per_sample};
  if (!fits) refuse_model_info("its vocabulary does not match its number of classes");
  const FileBytes file = read_file(request.source.path);
  const std::string_view text = text_of(file.bytes);
  std::vector<int64_t> tokens;
  std::vector<uint64_t> offsets;
  for (size_t at = 0; at < text.size();) {
    const CodePoint point = bytes ? CodePoint{static_cast<uint8_t>(text[at]), 1} : decode_utf8(text, at);
    if (point.size == 0) {
      throw Error("DATA_NOT_UTF8", file.path + ": not UTF-8 at byte " + std::to_string(at),
                  "convert it, for example with iconv");
    }
    const auto found = std::lower_bound(vocabulary.begin(), vocabulary.end(), static_cast<uint32_t>(point.value));
    const bool seen = found != vocabulary.end() && *found == static_cast<uint32_t>(point.value);
    if (!seen && info.classes == known) {
      throw Error("DATA_UNKNOWN_TOKEN",
                  file.path + ": the character at byte " + std::to_string(at) + " does not occur in the training data",
                  "replace it, or train with text that has it");
    }
    tokens.push_back(seen ? found - vocabulary.begin() : known);
    offsets.push_back(at);
    at += static_cast<size_t>(point.size);
  }
  const auto count = static_cast<int64_t>(tokens.size()) - (request.labelled ? 1 : 0);
  info.test_size = std::max<int64_t>(count, 0) / info.tokens_per_sample;
  if (info.test_size == 0) {
    throw Error("DATA_EMPTY",
                file.path + ": has " + with_commas(static_cast<int64_t>(tokens.size())) +
                    " tokens, but one sample needs " + with_commas(info.tokens_per_sample + (request.labelled ? 1 : 0)),
                "give more text");
  }
  return std::make_unique<TextInferenceData>(std::move(info), file.path, std::move(tokens), std::move(offsets));
}

}  // namespace sinew::data
