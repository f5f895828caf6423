#include "data/pack_index.h"

#include <algorithm>
#include <charconv>
#include <cstdio>
#include <cstring>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>

#include "base/error.h"
#include "base/printable.h"

namespace sinew::data {
namespace {

using nlohmann::json;

constexpr std::string_view kFirstLine = "sinew-pack\t1\n";
constexpr size_t kLongestLine = 16 << 20;  // that of the classes

std::string hex_of(uint64_t number) {
  char text[20];
  std::snprintf(text, sizeof text, "%016llx", static_cast<unsigned long long>(number));
  return text;
}

// Returns the lines of a file, one after the other, and the digest of the lines before.
class Lines {
 public:
  explicit Lines(const std::string& path) : path_(path) {}

  [[noreturn]] void fail(const std::string& what) const {
    throw Error("DATA_DAMAGED_FILE", path_ + ": line " + std::to_string(number_) + " of the index " + what,
                "pack the data again, or remove the index: the tars are then read without it");
  }
  // Returns the next line without its end. The text ends with the next call. Throws Error at the end of the file.
  std::string_view next() {
    digest_.update(std::as_bytes(std::span(buffer_).subspan(line_, begin_ - line_)));
    line_ = begin_;
    ++number_;
    size_t end = buffer_.find('\n', begin_);
    while (end == std::string::npos) {
      const size_t scanned = buffer_.size() - begin_;
      if (scanned > kLongestLine) fail("is too long");
      read_more();
      end = buffer_.find('\n', begin_ + scanned);
    }
    const std::string_view line = std::string_view(buffer_).substr(begin_, end - begin_);
    begin_ = end + 1;
    return line;
  }
  bool at_end() {
    if (begin_ == buffer_.size() && !exhausted_) fill();
    return begin_ == buffer_.size();
  }
  Digest digest_before() const { return digest_.digest(); }  // of the lines before the one that was returned last

 private:
  void read_more() {
    if (exhausted_) fail("is cut off");
    fill();
    if (exhausted_ && buffer_.find('\n', begin_) == std::string::npos) fail("is cut off");
  }
  void fill() {
    constexpr size_t kPiece = 1 << 17;
    buffer_.erase(0, line_);
    begin_ -= line_;
    line_ = 0;
    const size_t before = buffer_.size();
    buffer_.resize(before + kPiece);
    const size_t got =
        system_disk().read_at(path_, offset_, std::as_writable_bytes(std::span(buffer_).subspan(before)));
    buffer_.resize(before + got);
    offset_ += got;
    exhausted_ = got < kPiece;
  }

  const std::string& path_;
  std::string buffer_;
  size_t line_ = 0, begin_ = 0;  // of the line that was returned last, and of the next one
  uint64_t offset_ = 0;
  bool exhausted_ = false;
  int64_t number_ = 0;
  DigestStream digest_;
};

// Takes the text up to the next tab.
std::string_view take_field(std::string_view& line) {
  const size_t tab = std::min(line.find('\t'), line.size());
  const std::string_view field = line.substr(0, tab);
  line.remove_prefix(std::min(line.size(), tab + 1));
  return field;
}

std::optional<uint64_t> number_of(std::string_view text, int base = 10) {
  uint64_t number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number, base);
  if (text.empty() || error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return number;
}

PackHeader header_of(const Lines& lines, std::string_view line) {
  const json document = json::parse(line, nullptr, false);
  const auto classes = document.is_object() ? document.find("classes") : document.end();
  if (!document.is_object() || classes == document.end() || !classes->is_array()) lines.fail("is no list of classes");
  PackHeader header;
  for (const json& name : *classes) {
    if (!name.is_string()) lines.fail("is no list of classes");
    header.classes.push_back(name.get<std::string>());
  }
  if (std::set<std::string_view>(header.classes.begin(), header.classes.end()).size() < header.classes.size())
    lines.fail("names a class twice");
  return header;
}

PackShard shard_of(const Lines& lines, std::string_view line) {
  const std::string_view name = take_field(line);
  const auto bytes = number_of(take_field(line)), samples = number_of(line);
  if (name.empty() || name.find('/') != std::string_view::npos || !bytes || !samples || *bytes > INT64_MAX ||
      *samples > *bytes)
    lines.fail("is no tar with its size and its samples");
  return {std::string(name), *bytes, static_cast<int64_t>(*samples)};
}

PackSample sample_of(const Lines& lines, std::string_view line, const PackShard& shard) {
  const auto offset = number_of(take_field(line)), bytes = number_of(take_field(line)),
             checksum = number_of(take_field(line), 16);
  const std::string_view label = take_field(line);
  if (!offset || !bytes || !checksum || label.empty() || line.empty()) lines.fail("is no sample");
  if (*bytes > shard.bytes || *offset > shard.bytes - *bytes) lines.fail("is a sample outside of its tar");
  return {*offset, *bytes, *checksum, label, line};
}

// A longer line could be written, but never be read.
void check_length(std::string_view line) {
  if (line.size() <= kLongestLine) return;
  throw Error("DATA_BAD_SOURCE",
              "a line of " + std::string(kPackIndex) + " would have " + std::to_string(line.size()) +
                  " bytes, more than the limit of 16 MiB: " + printable_start(line, 200),
              "give the classes and the images shorter names");
}

}  // namespace

PackIndexWriter::PackIndexWriter(Disk::File& file, const PackHeader& header) : file_(file) {
  const std::string classes = json{{"classes", header.classes}}.dump();
  check_length(classes);
  put(std::string(kFirstLine) + classes + '\n');
}

void PackIndexWriter::put(std::string_view text) {
  digest_.update(std::as_bytes(std::span(text)));
  file_.write(std::as_bytes(std::span(text)));
}

void PackIndexWriter::sample(const PackSample& sample) {
  check_length(sample.name);
  rows_ += std::to_string(sample.offset) + '\t' + std::to_string(sample.bytes) + '\t' + hex_of(sample.checksum) + '\t';
  rows_.append(sample.label).append("\t").append(sample.name).append("\n");
  ++samples_;
}

void PackIndexWriter::end_shard(const PackShard& shard) {
  put("shard\t" + shard.name + '\t' + std::to_string(shard.bytes) + '\t' + std::to_string(samples_) + '\n');
  put(rows_);
  rows_.clear();
  samples_ = 0;
}

void PackIndexWriter::end(Digest source) {
  put("source\t" + to_hex(source) + '\n');
  put("end\t" + to_hex(digest_.digest()) + '\n');
}

void read_pack_index(const std::string& path, const PackIndexTaker& taker) {
  Lines lines(path);
  const std::string_view first = lines.next();
  if (std::string(first) + '\n' != kFirstLine)
    lines.fail(first.starts_with("sinew-pack\t") ? "is of another version of Sinew" : "is no index of packed data");
  taker.header(header_of(lines, lines.next()));
  std::string_view line = lines.next();
  while (line.starts_with("shard\t")) {
    const PackShard shard = shard_of(lines, line.substr(6));
    const bool wanted = taker.wanted(shard);
    for (int64_t i = 0; i < shard.samples; ++i) {
      line = lines.next();
      if (wanted) taker.sample(sample_of(lines, line, shard));
    }
    line = lines.next();
  }
  if (!line.starts_with("source\t")) lines.fail("is neither a tar nor the source");
  line = lines.next();
  Digest said;
  if (!line.starts_with("end\t") || !from_hex(line.substr(4), said)) lines.fail("is not the end");
  if (said != lines.digest_before()) lines.fail("has the checksum of another index: it is damaged");
  if (!lines.at_end()) lines.fail("is not the last one");
}

}  // namespace sinew::data
