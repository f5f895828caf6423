#include "store/packed.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>

#include "base/hash.h"

namespace sinew::store {
namespace {

// Encodes numbers as LEB128 and signed numbers as zigzag. Appends a CRC-32C of all bytes.
class Packer {
 public:
  void word(uint64_t value) {
    for (; value >= 0x80; value >>= 7U) bytes_.push_back(static_cast<char>(value | 0x80U));
    bytes_.push_back(static_cast<char>(value));
  }
  void number(int64_t value) { word((static_cast<uint64_t>(value) << 1U) ^ static_cast<uint64_t>(value >> 63U)); }
  template <typename Fixed>
  void fixed(Fixed value) {
    char raw[sizeof value];
    std::memcpy(raw, &value, sizeof value);
    bytes_.append(raw, sizeof value);
  }
  void text(std::string_view text) {
    word(text.size());
    bytes_ += text;
  }
  void reserve(size_t size) { bytes_.reserve(size); }
  std::string finished() {
    fixed(crc32c(std::as_bytes(std::span(bytes_.data(), bytes_.size()))));
    return std::move(bytes_);
  }

 private:
  std::string bytes_;
};

class Unpacker {
 public:
  Unpacker(std::string_view bytes, const char* what) : what_(what) {
    if (bytes.size() < 4) damaged();
    rest_ = bytes.substr(0, bytes.size() - 4);
    uint32_t sum = 0;
    std::memcpy(&sum, bytes.data() + rest_.size(), sizeof sum);
    if (sum != crc32c(std::as_bytes(std::span(rest_.data(), rest_.size())))) damaged();
  }
  uint64_t word() {
    uint64_t value = 0;
    for (unsigned shift = 0; shift < 64; shift += 7) {
      if (rest_.empty()) damaged();
      const auto byte = static_cast<uint8_t>(rest_.front());
      rest_.remove_prefix(1);
      value |= static_cast<uint64_t>(byte & 0x7fU) << shift;
      if (byte < 0x80) return value;
    }
    damaged();
  }
  int64_t number() {
    const uint64_t value = word();
    return static_cast<int64_t>((value >> 1U) ^ (~(value & 1U) + 1));
  }
  template <typename Fixed>
  Fixed fixed() {
    Fixed value;
    if (rest_.size() < sizeof value) damaged();
    std::memcpy(&value, rest_.data(), sizeof value);
    rest_.remove_prefix(sizeof value);
    return value;
  }
  std::string text() {
    const uint64_t size = word();
    if (size > rest_.size()) damaged();
    std::string value(rest_.substr(0, size));
    rest_.remove_prefix(size);
    return value;
  }
  // Reads the count of a list whose elements take at least `min_bytes` each. If the remaining bytes cannot hold this
  // many elements, the data is damaged. So damaged data never causes a large allocation.
  size_t count(size_t min_bytes) {
    const uint64_t value = word();
    if (value > rest_.size() / min_bytes) damaged();
    return value;
  }
  void finish() const {
    if (!rest_.empty()) damaged();
  }

 private:
  [[noreturn]] void damaged() const {
    throw Error("STORE_DAMAGED", std::string("the store has a damaged ") + what_, "restore the store from a backup");
  }
  std::string_view rest_;
  const char* what_;
};

// Subtracts with wrap-around, because a step may be any 64-bit number.
int64_t minus(int64_t a, int64_t b) {
  return static_cast<int64_t>(static_cast<uint64_t>(a) - static_cast<uint64_t>(b));
}
int64_t plus(int64_t a, int64_t b) {
  return static_cast<int64_t>(static_cast<uint64_t>(a) + static_cast<uint64_t>(b));
}

// Returns whether a float can store the value, so that it is restored bit for bit, including the payload of a NaN.
bool fits_float(double value) {
  const auto narrow = static_cast<float>(value);
  return std::bit_cast<uint64_t>(static_cast<double>(narrow)) == std::bit_cast<uint64_t>(value);
}

}  // namespace

std::string pack_labels(const Labels& labels) {
  Packer packer;
  packer.word(labels.size());
  for (const auto& [key, value] : labels) {
    packer.text(key);
    packer.text(value);
  }
  return packer.finished();
}

Labels unpack_labels(std::string_view bytes) {
  Unpacker unpacker(bytes, "list of labels");
  Labels labels;
  for (size_t left = unpacker.count(2); left > 0; --left) {
    std::string key = unpacker.text();
    labels[std::move(key)] = unpacker.text();
  }
  unpacker.finish();
  return labels;
}

std::string pack_points(std::span<const Point> points) {
  Packer packer;
  packer.reserve(points.size() * 12 + 16);
  const bool narrow =
      std::all_of(points.begin(), points.end(), [](const Point& point) { return fits_float(point.value); });
  packer.word(points.size());
  packer.word(narrow ? 4 : 8);
  int64_t step = 0, time = 0, interval = 0;
  for (const Point& point : points) {
    packer.number(minus(point.step, step));
    step = point.step;
  }
  for (const Point& point : points) {
    const int64_t passed = minus(point.time_ms, time);
    packer.number(minus(passed, interval));
    time = point.time_ms;
    interval = passed;
  }
  for (const Point& point : points) {
    if (narrow)
      packer.fixed(static_cast<float>(point.value));
    else
      packer.fixed(point.value);
  }
  return packer.finished();
}

void unpack_points(std::string_view bytes, std::vector<Point>& out) {
  Unpacker unpacker(bytes, "chunk of points");
  const size_t count = unpacker.count(6), begin = out.size();
  const bool narrow = unpacker.word() == 4;
  out.resize(begin + count);
  const auto points = std::span(out).subspan(begin);
  int64_t step = 0, time = 0, interval = 0;
  for (Point& point : points) point.step = step = plus(step, unpacker.number());
  for (Point& point : points) {
    interval = plus(interval, unpacker.number());
    point.time_ms = time = plus(time, interval);
  }
  for (Point& point : points)
    point.value = narrow ? static_cast<double>(unpacker.fixed<float>()) : unpacker.fixed<double>();
  unpacker.finish();
}

std::string pack_summary(std::span<const SeriesSummary> series) {
  Packer packer;
  packer.word(series.size());
  for (const SeriesSummary& one : series) {
    packer.text(one.key);
    packer.number(one.metric.count);
    packer.number(one.metric.last.step);
    packer.number(one.metric.last.time_ms);
    for (const double value : {one.metric.last.value, one.metric.min, one.metric.max}) packer.fixed(value);
    packer.number(one.chunks);
    packer.number(one.last_points);
  }
  return packer.finished();
}

std::vector<SeriesSummary> unpack_summary(std::string_view bytes) {
  Unpacker unpacker(bytes, "summary of a run");
  std::vector<SeriesSummary> series(unpacker.count(30));
  for (SeriesSummary& one : series) {
    one.key = unpacker.text();
    one.metric.count = unpacker.number();
    one.metric.last.step = unpacker.number();
    one.metric.last.time_ms = unpacker.number();
    for (double* value : {&one.metric.last.value, &one.metric.min, &one.metric.max}) *value = unpacker.fixed<double>();
    one.chunks = unpacker.number();
    one.last_points = unpacker.number();
  }
  unpacker.finish();
  return series;
}

int64_t bytes_of(const std::vector<SeriesSummary>& series) {
  size_t bytes = series.size() * sizeof(SeriesSummary);
  for (const SeriesSummary& one : series) bytes += one.key.size();
  return static_cast<int64_t>(bytes);
}

std::string pack_tail(std::span<const TailPoint> points) {
  Packer packer;
  packer.reserve(points.size() * 24 + 16);
  packer.word(points.size());
  int64_t run = 0, time = 0;
  for (const TailPoint& one : points) {
    packer.number(minus(one.run, run));
    packer.number(one.series);
    packer.number(one.point.step);
    packer.number(minus(one.point.time_ms, time));
    packer.fixed(one.point.value);
    run = one.run;
    time = one.point.time_ms;
  }
  return packer.finished();
}

void unpack_tail(std::string_view bytes, std::vector<TailPoint>& out) {
  Unpacker unpacker(bytes, "tail of points");
  int64_t run = 0, time = 0;
  for (size_t left = unpacker.count(12); left > 0; --left) {
    TailPoint one;
    one.run = run = plus(run, unpacker.number());
    one.series = unpacker.number();
    one.point.step = unpacker.number();
    one.point.time_ms = time = plus(time, unpacker.number());
    one.point.value = unpacker.fixed<double>();
    out.push_back(one);
  }
  unpacker.finish();
}

bool comes_before(const Point& a, const Point& b) {
  if (a.step != b.step) return a.step < b.step;
  if (a.time_ms != b.time_ms) return a.time_ms < b.time_ms;
  const auto number = [](double value) { return std::isnan(value) ? 0 : value; };
  if (number(a.value) != number(b.value)) return number(a.value) < number(b.value);
  return std::bit_cast<uint64_t>(a.value) < std::bit_cast<uint64_t>(b.value);
}

void sort_unique(std::vector<Point>& points) {
  if (!std::is_sorted(points.begin(), points.end(), comes_before))
    std::sort(points.begin(), points.end(), comes_before);
  const auto same = [](const Point& a, const Point& b) { return !comes_before(a, b) && !comes_before(b, a); };
  points.erase(std::unique(points.begin(), points.end(), same), points.end());
}

void count_in(Metric& metric, std::span<const Point> points) {
  for (const Point& point : points) {
    if (metric.count == 0 || comes_before(metric.last, point)) metric.last = point;
    ++metric.count;
    if (std::isnan(point.value)) continue;
    if (!(metric.min <= point.value)) metric.min = point.value;
    if (!(metric.max >= point.value)) metric.max = point.value;
  }
}

}  // namespace sinew::store
