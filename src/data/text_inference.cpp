// Opens new text for a trained model, cut into windows as in training. The last position of a window predicts the token
// after the window; the file need not contain that token.
#include <algorithm>

#include "base/check.h"
#include "base/error.h"
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
  const TextCoder coder(request.options, info);
  if (info.tokens_per_sample < 1 || info.input_shape != Shape{info.tokens_per_sample})
    refuse_model_info("its input_shape is not tokens_per_sample");
  const FileBytes file = read_file(request.source.path);
  TextCoder::Tokens text = coder.encode(text_of(file.bytes), file.path);
  const auto size = static_cast<int64_t>(text.tokens.size()), count = size - (request.labelled ? 1 : 0);
  info.test_size = std::max<int64_t>(count, 0) / info.tokens_per_sample;
  if (info.test_size == 0) {
    throw Error("DATA_EMPTY",
                file.path + ": has " + with_commas(size) + " tokens, but one sample needs " +
                    with_commas(info.tokens_per_sample + (request.labelled ? 1 : 0)),
                "give more text");
  }
  return std::make_unique<TextInferenceData>(std::move(info), file.path, std::move(text.tokens),
                                             std::move(text.offsets));
}

}  // namespace sinew::data
