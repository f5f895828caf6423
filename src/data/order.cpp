#include <algorithm>
#include <bit>

#include "base/check.h"
#include "base/error.h"
#include "data/data.h"
#include "data/formats.h"

namespace sinew::data {
namespace {

constexpr int kRounds = 8;
// A Feistel network over fewer than 2^8 points reaches only few of the possible orders. So small sizes use a network
// over 2^8 points; the cycle walking costs little there.
constexpr int kMinHalfBits = 4;

uint64_t mix(uint64_t value) {  // the finaliser of SplitMix64 (Steele, Lea, Flood 2014)
  value = (value ^ (value >> 30)) * 0xBF58476D1CE4E5B9;
  value = (value ^ (value >> 27)) * 0x94D049BB133111EB;
  return value ^ (value >> 31);
}

}  // namespace

Permutation::Permutation(RandomKey key, int64_t size) : key_(key), size_(size) {
  SINEW_CHECK(size >= 0 && size <= (int64_t{1} << 62), size);
  const int bits = std::bit_width(static_cast<uint64_t>(std::max<int64_t>(size - 1, 0)));
  half_bits_ = std::max(kMinHalfBits, (bits + 1) / 2);
}

int64_t Permutation::operator[](int64_t position) const {
  SINEW_CHECK(position >= 0 && position < size_, position, size_);
  const uint64_t mask = (uint64_t{1} << half_bits_) - 1;
  auto value = static_cast<uint64_t>(position);
  do {  // a point outside of 0..size-1 is encrypted again; its cycle leads back inside
    uint64_t left = value >> half_bits_, right = value & mask;
    for (uint64_t round = 0; round < kRounds; ++round) {
      const uint64_t counter =
          (round << 32) | right;  // distinct for each (round, right), as halves have at most 31 bits
      const uint64_t next = left ^ (mix(key_.value + counter * 0x9E3779B97F4A7C15) & mask);
      left = right;
      right = next;
    }
    value = (left << half_bits_) | right;
  } while (value >= static_cast<uint64_t>(size_));
  return static_cast<int64_t>(value);
}

Permutation epoch_order(uint64_t seed, int64_t epoch, int64_t size) {
  return {derive(derive(random_key({seed}), "order"), static_cast<uint64_t>(epoch)), size};
}

int64_t steps_per_epoch(int64_t train_size, int64_t batch_size, bool drop_last) {
  SINEW_CHECK(train_size >= 0 && batch_size > 0, train_size, batch_size);
  return drop_last ? train_size / batch_size : train_size / batch_size + (train_size % batch_size != 0 ? 1 : 0);
}

StepRange step_range(const Cursor& cursor, int64_t train_size, int64_t batch_size, bool drop_last) {
  if (steps_per_epoch(train_size, batch_size, drop_last) == 0) {
    throw Error("DATA_NO_STEP",
                "an epoch has no complete step: " + std::to_string(train_size) + " training samples, batch_size " +
                    std::to_string(batch_size) + (drop_last ? ", drop_last" : ""),
                drop_last ? "lower trainer.batch_size or set trainer.drop_last: false" : "add training samples");
  }
  // The batch size may have changed since the cursor was written, so the rest of the epoch may be too short for a step.
  const int64_t left = train_size - cursor.offset;
  if (left <= 0 || (drop_last && left < batch_size)) return {cursor.epoch + 1, 0, std::min(batch_size, train_size)};
  return {cursor.epoch, cursor.offset, std::min(batch_size, left)};
}

Cursor after(const StepRange& range, int64_t train_size, int64_t batch_size, bool drop_last) {
  const int64_t offset = range.first + range.count, left = train_size - offset;
  if (left <= 0 || (drop_last && left < batch_size)) return {range.epoch + 1, 0};
  return {range.epoch, offset};
}

std::vector<std::pair<int64_t, int64_t>> split_into_shards(int64_t count, int64_t batch_size, int64_t shards) {
  SINEW_CHECK(count >= 0 && count <= batch_size && shards > 0, count, batch_size, shards);
  // ceil(count * shards / batch_size), but at most one shard for each sample.
  const auto wide = static_cast<__int128>(count) * shards;
  const auto used = std::min(count, static_cast<int64_t>((wide + batch_size - 1) / std::max<int64_t>(batch_size, 1)));
  std::vector<std::pair<int64_t, int64_t>> ranges(static_cast<size_t>(shards), {count, count});
  int64_t first = 0;
  for (int64_t i = 0; i < used; ++i) {
    const int64_t size = count / used + (i < count % used ? 1 : 0);
    ranges[static_cast<size_t>(i)] = {first, first + size};
    first += size;
  }
  return ranges;
}

int64_t evaluation_part(int64_t size, int64_t batch_size, int64_t shards, int64_t most_parts) {
  SINEW_CHECK(size >= 0 && batch_size > 0 && shards > 0 && most_parts > 0, size, batch_size, shards, most_parts);
  const auto divided = [](int64_t whole, int64_t by) { return whole / by + (whole % by == 0 ? 0 : 1); };
  return std::max(divided(batch_size, shards), divided(size, most_parts));
}

int64_t default_shards(int64_t batch_size) {
  return std::clamp<int64_t>(batch_size / 16, 1, 8);
}

}  // namespace sinew::data
