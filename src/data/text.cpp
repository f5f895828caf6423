// Reads plain text for next-token prediction, cut into fixed windows. The input of sample i of a split is the tokens [i
// * window, i * window + window) of that split. Its target is the same range shifted by one.
//
// Splits that are cut from one file are contiguous ranges of it: train is the beginning, val follows, and test is the
// end. Neighbouring windows have much in common, so a shuffled split would leak val into train.
#include <algorithm>
#include <memory>
#include <optional>

#include "base/check.h"
#include "base/error.h"
#include "base/utf8.h"
#include "data/files.h"
#include "data/formats.h"
#include "data/inference.h"

namespace sinew::data {
namespace {

constexpr char kUnknown[] = "<unk>";

// Tokens in the narrowest type that holds the vocabulary. Only one of the three vectors is used.
struct Tokens {
  std::vector<uint8_t> bytes;
  std::vector<uint16_t> words;
  std::vector<uint32_t> wide;
  template <typename Visit>
  void visit(Visit read) const {
    if (!bytes.empty()) return read(bytes);
    if (!words.empty()) return read(words);
    read(wide);
  }
};

struct TextSplit {
  std::string file;
  std::shared_ptr<const Tokens> tokens;  // the tokens of the whole file
  std::vector<uint64_t> offsets;         // byte offset of each window's first token
  int64_t first = 0, windows = 0;        // the first token of the split, and its number of samples
};

struct TextContents {
  DataInfo info;
  TextSplit splits[3];
};

class TextDataset final : public Dataset {
 public:
  explicit TextDataset(TextContents contents) : contents_(std::move(contents)) {}
  const DataInfo& info() const override { return contents_.info; }
  int64_t size(Split split) const override { return split_of(split).windows; }
  bool in_memory() const override { return true; }
  std::string describe(Split which, int64_t sample) const override {
    const TextSplit& split = split_of(which);
    SINEW_CHECK(sample >= 0 && sample < split.windows, sample, split.windows);
    return file_name(split.file) + " at byte " + std::to_string(split.offsets[static_cast<size_t>(sample)]);
  }

  Batch load(Split which, std::span<const int64_t> samples, const SampleContext&) const override {
    const TextSplit& split = split_of(which);
    const int64_t window = contents_.info.tokens_per_sample;
    Batch batch;
    batch.samples.assign(samples.begin(), samples.end());
    batch.input = Array(DType::i64, {batch.count(), window});
    batch.target = Array(DType::i64, {batch.count(), window});
    for (size_t i = 0; i < samples.size(); ++i) {
      SINEW_CHECK(samples[i] >= 0 && samples[i] < split.windows, samples[i], split.windows);
      int64_t* input = batch.input.as<int64_t>() + static_cast<int64_t>(i) * window;
      int64_t* target = batch.target.as<int64_t>() + static_cast<int64_t>(i) * window;
      split.tokens->visit([&](const auto& tokens) {
        const auto* from = tokens.data() + split.first + samples[i] * window;
        std::copy(from, from + window, input);
        std::copy(from + 1, from + window + 1, target);
      });
    }
    return batch;
  }

 private:
  const TextSplit& split_of(Split split) const { return contents_.splits[static_cast<size_t>(split)]; }
  const TextContents contents_;
};

// The content of a file. `points` has one entry for each code point, or for each byte if data.text.tokens is "bytes".
struct Decoded {
  FileBytes file;
  std::vector<uint32_t> points;
};

Decoded decode(const std::string& path, bool bytes) {
  Decoded decoded{read_file(path), {}};
  const std::string_view text = text_of(decoded.file.bytes);
  if (bytes) {
    decoded.points.assign(reinterpret_cast<const uint8_t*>(text.data()),
                          reinterpret_cast<const uint8_t*>(text.data()) + text.size());
    return decoded;
  }
  decoded.points.reserve(text.size());
  for (size_t at = 0; at < text.size();) {
    const CodePoint point = decode_utf8(text, at);
    if (point.size == 0) {
      throw Error("DATA_NOT_UTF8", path + ": not UTF-8 at byte " + std::to_string(at),
                  "convert it, for example with iconv, or set data.text.tokens: bytes");
    }
    decoded.points.push_back(point.value);
    at += static_cast<size_t>(point.size);
  }
  return decoded;
}

int utf8_size(uint32_t point) {
  return point < 0x80 ? 1 : point < 0x800 ? 2 : point < 0x10000 ? 3 : 4;
}

class TextDatasetBuilder {
 public:
  TextDatasetBuilder(const spec::DataOptions& options, uint64_t seed)
      : options_(options), seed_(seed), bytes_(options.text.tokens == "bytes"), window_(options.text.window) {}

  std::unique_ptr<Dataset> build() {
    if (window_ < 1) throw Error("DATA_BAD_OPTION", "data.text.window must be at least 1", "set it, for example to 64");
    const Decoded train = decode(path_of(options_.train, Split::train), bytes_);
    std::optional<Decoded> val, test;
    if (options_.val.given()) val = decode(path_of(options_.val, Split::val), bytes_);
    if (options_.test.given()) test = decode(path_of(options_.test, Split::test), bytes_);
    const auto size = static_cast<int64_t>(train.points.size());
    const int64_t test_tokens = test ? 0 : share(size, options_.split_test);
    const int64_t val_tokens = val ? 0 : share(size, options_.split_val),
                  train_tokens = size - val_tokens - test_tokens;
    fit_vocabulary(train.points.begin(), train.points.begin() + std::max<int64_t>(train_tokens, 0));
    const auto tokens = tokens_of(train);
    add(Split::train, train, tokens, 0, train_tokens);
    if (val_tokens > 0) add(Split::val, train, tokens, train_tokens, val_tokens);
    if (test_tokens > 0) add(Split::test, train, tokens, size - test_tokens, test_tokens);
    if (val) add(Split::val, *val, tokens_of(*val), 0, static_cast<int64_t>(val->points.size()));
    if (test) add(Split::test, *test, tokens_of(*test), 0, static_cast<int64_t>(test->points.size()));
    fill_info();
    return std::make_unique<TextDataset>(std::move(contents_));
  }

 private:
  static std::string path_of(const spec::DataSource& source, Split split) {
    if (source.path.empty()) {
      throw Error("DATA_BAD_SOURCE", "data." + to_string(split) + ": text needs a path:", "name its file");
    }
    return source.path;
  }
  static int64_t share(int64_t size, double fraction) {
    return static_cast<int64_t>(static_cast<double>(size) * fraction);
  }

  template <typename Iterator>
  void fit_vocabulary(Iterator first, Iterator last) {
    if (bytes_) {
      for (uint32_t byte = 0; byte < 256; ++byte) vocabulary_.push_back(byte);
    } else {
      std::vector<bool> seen(0x110000);
      for (; first != last; ++first) seen[*first] = true;
      for (uint32_t point = 0; point < seen.size(); ++point) {
        if (seen[point]) vocabulary_.push_back(point);
      }
    }
    token_of_.assign(0x110000, kNone);
    for (size_t i = 0; i < vocabulary_.size(); ++i) token_of_[vocabulary_[i]] = static_cast<uint32_t>(i);
  }

  // Returns the tokens of a text. A character that train does not have becomes the extra token <unk>.
  std::shared_ptr<const Tokens> tokens_of(const Decoded& text) {
    const auto fill = [&]<typename Token>(std::vector<Token>& tokens) {
      tokens.reserve(text.points.size());
      for (const uint32_t point : text.points) {
        const bool unseen = token_of_[point] == kNone;
        if (unseen && unknown_++ == 0) first_unknown_ = text.file.path;
        tokens.push_back(static_cast<Token>(unseen ? vocabulary_.size() : token_of_[point]));
      }
    };
    digests_.push_back(text.file.digest);
    auto tokens = std::make_shared<Tokens>();
    if (vocabulary_.size() <= 0xFF || bytes_) {
      fill(tokens->bytes);
    } else if (vocabulary_.size() <= 0xFFFF) {
      fill(tokens->words);
    } else {
      fill(tokens->wide);
    }
    return tokens;
  }

  void add(Split which, const Decoded& text, std::shared_ptr<const Tokens> tokens, int64_t first, int64_t count) {
    TextSplit& split = contents_.splits[static_cast<size_t>(which)];
    split.file = text.file.path;
    split.tokens = std::move(tokens);
    split.first = first;
    split.windows = count > 0 ? (count - 1) / window_ : 0;
    if (split.windows == 0) {
      throw Error("DATA_EMPTY",
                  text.file.path + ": the " + to_string(which) + " split has " +
                      with_commas(std::max<int64_t>(count, 0)) + " tokens, but one sample needs " +
                      with_commas(window_ + 1),
                  "lower data.text.window, or give more text");
    }
    uint64_t offset = 0;
    for (int64_t i = 0; i < first + split.windows * window_; ++i) {
      if (i >= first && (i - first) % window_ == 0) split.offsets.push_back(offset);
      offset += bytes_ ? 1 : static_cast<uint64_t>(utf8_size(text.points[static_cast<size_t>(i)]));
    }
  }

  void fill_info() {
    DataInfo& info = contents_.info;
    info.task = Task::next_token;
    info.preparation = text_preparation(vocabulary_);
    info.format = options_.format;
    info.input_shape = info.target_shape = {window_};
    info.input_dtype = DType::i64;
    info.tokens_per_sample = window_;
    if (!bytes_) {
      for (const uint32_t point : vocabulary_) append_utf8(point, info.class_names.emplace_back());
    }
    if (unknown_ > 0) {
      info.class_names.push_back(kUnknown);
      info.reasons["data.text.tokens"] = with_commas(unknown_) + " characters of val or test (the first in " +
                                         file_name(first_unknown_) + ") do not occur in train; they share the token " +
                                         kUnknown;
    }
    info.classes = bytes_ ? 256 : static_cast<int64_t>(info.class_names.size());
    info.train_size = contents_.splits[0].windows;
    info.val_size = contents_.splits[1].windows;
    info.test_size = contents_.splits[2].windows;
    digests_.push_back(options_digest(options_, seed_));
    info.digest = digest_of(digests_);
  }

  static constexpr uint32_t kNone = ~0U;
  const spec::DataOptions& options_;
  const uint64_t seed_;
  const bool bytes_;
  const int64_t window_;
  std::vector<uint32_t> vocabulary_;  // code points, sorted
  std::vector<uint32_t> token_of_;    // token of each code point; kNone: not in the vocabulary
  int64_t unknown_ = 0;
  std::string first_unknown_;
  std::vector<Digest> digests_;
  TextContents contents_;
};

}  // namespace

std::unique_ptr<Dataset> open_text(const spec::DataOptions& options, uint64_t seed) {
  return TextDatasetBuilder(options, seed).build();
}

}  // namespace sinew::data
