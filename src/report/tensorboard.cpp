#include "report/tensorboard.h"

#include <unistd.h>

#include <charconv>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <optional>
#include <utility>
#include <vector>

#include "base/hash.h"
#include "base/protobuf.h"
#include "report/lines.h"

namespace sinew::report {
namespace {

using protobuf::Message;

constexpr std::string_view kPrefix = "events.out.tfevents.";
constexpr std::string_view kEndTag = "_hparams_/session_end_info";

uint32_t masked_crc(std::string_view bytes) {
  const uint32_t crc = crc32c(std::as_bytes(std::span(bytes.data(), bytes.size())));
  return ((crc >> 15) | (crc << 17)) + 0xa282ead8U;
}

template <typename Number>
void put_little_endian(std::string& out, Number number) {
  char bytes[sizeof number];
  std::memcpy(bytes, &number, sizeof number);
  out.append(bytes, sizeof number);
}

Message event_at(double wall_seconds, int64_t step) {
  Message event;
  event.real(1, wall_seconds);
  if (step != 0) event.integer(2, step);
  return event;
}

// Returns an option as a google.protobuf.Value. `text` is the option as the user wrote it.
Message value_of(const std::string& text) {
  Message value;
  double number = 0;
  const auto [end, code] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (code == std::errc() && end == text.data() + text.size() && std::isfinite(number)) return value.real(2, number);
  if (text == "true" || text == "false") return value.integer(4, text == "true" ? 1 : 0);
  return value.bytes(3, text);
}

// The hparams plugin reads its data from the metadata of a summary. The format requires a tensor beside the metadata,
// so this writes an empty one.
std::string hparams_summary_record(double wall_seconds, std::string_view tag, const Message& plugin_data) {
  Message metadata, plugin, tensor, shape, value;
  plugin.bytes(1, "hparams").message(2, plugin_data);
  metadata.message(1, plugin);
  shape.message(2, Message().integer(1, 0));
  tensor.integer(1, 1).message(2, shape);  // DT_FLOAT, shape [0]
  value.bytes(1, tag).message(8, tensor).message(9, metadata);
  return tfrecord(event_at(wall_seconds, 0).message(5, Message().message(1, value)).wire());
}

std::vector<std::string> event_files(Disk& disk, const std::string& directory) {
  std::vector<std::string> names;  // sorted, as Disk::list returns them
  for (const Disk::Entry& entry : disk.list(directory)) {
    if (entry.name.starts_with(kPrefix)) names.push_back(entry.name);
  }
  return names;
}

// Reads a file from its beginning to its end.
class FileReader {
 public:
  FileReader(Disk& disk, std::string path) : disk_(disk), path_(std::move(path)), piece_(kPiece) {}
  // Returns the next `size` bytes, or nullopt if the file has fewer.
  std::optional<std::string> take(size_t size) {
    while (held_.size() - used_ < size) {
      const size_t got = disk_.read_at(path_, at_, piece_);
      if (got == 0) return std::nullopt;
      held_.erase(0, std::exchange(used_, 0));
      held_.append(reinterpret_cast<const char*>(piece_.data()), got);
      at_ += got;
    }
    return held_.substr(std::exchange(used_, used_ + size), size);
  }

 private:
  static constexpr size_t kPiece = 256 << 10;

  Disk& disk_;
  const std::string path_;
  std::vector<std::byte> piece_;
  std::string held_;  // read and not yet taken, from used_ on
  size_t used_ = 0;
  uint64_t at_ = 0;
};

// Returns the offset at which to cut the file: before an incomplete record, and before the last record if that ends a
// session.
uint64_t end_without_session_end(Disk& disk, const std::string& path) {
  constexpr uint64_t kMaxBytes = 64 << 20;  // far larger than any record that this file writes
  constexpr size_t kHeader = 12, kCrc = 4;
  FileReader reader(disk, path);
  uint64_t end = 0, last = 0;
  std::string data;
  while (const auto header = reader.take(kHeader)) {
    uint64_t length = 0;
    std::memcpy(&length, header->data(), sizeof length);
    if (length > kMaxBytes) break;
    auto body = reader.take(static_cast<size_t>(length) + kCrc);
    if (!body) break;
    last = end;
    end += kHeader + length + kCrc;
    body->resize(static_cast<size_t>(length));
    data = std::move(*body);
  }
  return data.find(kEndTag) != std::string::npos ? last : end;
}

}  // namespace

std::string tfrecord(std::string_view data) {
  std::string record;
  record.reserve(data.size() + 16);
  put_little_endian(record, static_cast<uint64_t>(data.size()));
  put_little_endian(record, masked_crc(record));
  record.append(data);
  put_little_endian(record, masked_crc(data));
  return record;
}

std::string version_record(double wall_seconds) {
  Message writer;
  writer.bytes(1, "sinew");
  return tfrecord(event_at(wall_seconds, 0).bytes(3, "brain.Event:2").message(10, writer).wire());
}

std::string session_start_record(double wall_seconds, int64_t first_step) {
  return tfrecord(event_at(wall_seconds, first_step).message(7, Message().integer(1, 1)).wire());
}

std::string scalars_record(double wall_seconds, int64_t step, const Metrics& values) {
  Message summary, value;
  for (const auto& [name, number] : values) {
    value.clear();
    value.bytes(1, name).single(2, static_cast<float>(number));
    summary.message(1, value);
  }
  return tfrecord(event_at(wall_seconds, step).message(5, summary).wire());
}

std::string hparams_record(double wall_seconds, const std::map<std::string, std::string>& values) {
  Message start;
  for (const auto& [name, text] : values) start.message(1, Message().bytes(1, name).message(2, value_of(text)));
  start.real(5, wall_seconds);
  return hparams_summary_record(wall_seconds, "_hparams_/session_start_info", Message().message(3, start));
}

std::string session_end_record(double wall_seconds, bool success) {
  Message end;
  end.integer(1, success ? 1 : 2).real(2, wall_seconds);
  return hparams_summary_record(wall_seconds, kEndTag, Message().message(4, end));
}

std::string new_event_path(Disk& disk, const std::string& directory, double wall_seconds) {
  auto second = static_cast<long long>(wall_seconds);
  // The newest file may be of the same second, or of a time when the clock was fast.
  for (const std::string& name : event_files(disk, directory)) {
    long long there = 0;
    const auto [end, code] = std::from_chars(name.data() + kPrefix.size(), name.data() + name.size(), there);
    if (code == std::errc() && there >= second && there < 9'999'999'999LL) second = there + 1;
  }
  char host[256] = "localhost";
  ::gethostname(host, sizeof host - 1);
  char name[400];
  std::snprintf(name, sizeof name, "%010lld.%s.%d.0", second, host, static_cast<int>(::getpid()));
  return (std::filesystem::path(directory) / (std::string(kPrefix) + name)).string();
}

void cut_session_end(Disk& disk, const std::string& directory) {
  const std::vector<std::string> names = event_files(disk, directory);
  if (names.empty()) return;
  const std::string path = (std::filesystem::path(directory) / names.back()).string();
  const bool copies = must_copy(disk, path);
  const uint64_t end = end_without_session_end(disk, path);
  if (copies || end < disk.size(path)) keep_ranges(disk, path, {{0, end}});
}

}  // namespace sinew::report
