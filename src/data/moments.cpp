#include <algorithm>
#include <cmath>
#include <limits>

#include "base/error.h"
#include "data/arrays.h"
#include "data/formats.h"

namespace sinew::data {
namespace {

struct Sums {  // exact: 64 bits hold the sum of the squares of 10^14 bytes
  uint64_t sum = 0, squares = 0;
};

Sums sums_of(const std::byte* bytes, int64_t count) {
  constexpr int64_t kBlock = 32;
  Sums total;
  int64_t i = 0;
  while (i + kBlock <= count) {
    uint32_t sum[kBlock] = {}, squares[kBlock] = {};
    for (int64_t blocks = 0; blocks < 256 && i + kBlock <= count; ++blocks, i += kBlock) {
      for (int64_t j = 0; j < kBlock; ++j) {
        const auto value = static_cast<uint16_t>(bytes[i + j]);
        sum[j] += value;
        squares[j] += static_cast<uint16_t>(value * value);
      }
    }
    for (int64_t j = 0; j < kBlock; ++j) {
      total.sum += sum[j];
      total.squares += squares[j];
    }
  }
  for (; i < count; ++i) {
    const auto value = static_cast<uint64_t>(bytes[i]);
    total.sum += value;
    total.squares += value * value;
  }
  return total;
}

// Returns the standard deviation, or 1 for a constant channel. The variance of a constant channel is only rounding
// error, and dividing by it would turn that error into noise.
double deviation_or_one(double variance, double mean) {
  const double deviation = std::sqrt(std::max(variance, 0.0));
  return deviation > 1e-12 * std::abs(mean) && deviation > 0 ? deviation : 1.0;
}

void byte_moments(const FileArray& inputs, std::span<const int64_t> samples, int64_t channels, Moments& moments) {
  const int64_t area = element_count(inputs.row_shape()) / channels;
  std::vector<Sums> totals(static_cast<size_t>(channels));
  for (const int64_t sample : samples) {
    for (int64_t c = 0; c < channels; ++c) {
      const Sums sums = sums_of(inputs.row(sample) + c * area, area);
      totals[static_cast<size_t>(c)].sum += sums.sum;
      totals[static_cast<size_t>(c)].squares += sums.squares;
    }
  }
  const auto count = static_cast<uint64_t>(samples.size()) * static_cast<uint64_t>(area);
  for (const Sums& total : totals) {
    const double mean = static_cast<double>(total.sum) / static_cast<double>(count);
    const auto spread =
        static_cast<unsigned __int128>(count) * total.squares - static_cast<unsigned __int128>(total.sum) * total.sum;
    const double variance = static_cast<double>(spread) / static_cast<double>(count) / static_cast<double>(count);
    moments.mean.push_back(mean);
    moments.std.push_back(deviation_or_one(variance, mean));
  }
}

}  // namespace

Moments moments_of(const FileArray& inputs, std::span<const int64_t> samples, int64_t channels) {
  Moments moments;
  if (samples.empty())
    return {std::vector(static_cast<size_t>(channels), 0.0), std::vector(static_cast<size_t>(channels), 1.0)};
  if (inputs.dtype == DType::u8) {
    byte_moments(inputs, samples, channels, moments);
    return moments;
  }
  const int64_t area = element_count(inputs.row_shape()) / channels;
  const double count = static_cast<double>(samples.size()) * static_cast<double>(area);
  std::vector<double> sums(static_cast<size_t>(channels)), squares(static_cast<size_t>(channels));
  const auto each = [&](auto&& visit) {  // always in file order, so that equal files give equal bits
    for (const int64_t sample : samples) {
      for (int64_t c = 0; c < channels; ++c) {
        for (int64_t i = 0; i < area; ++i) visit(sample, c, value_at(inputs.dtype, inputs.row(sample), c * area + i));
      }
    }
  };
  each([&](int64_t sample, int64_t c, double value) {
    if (!std::isfinite(value)) {
      throw Error(
          "DATA_BAD_VALUE",
          inputs.name + '[' + std::to_string(sample) + "]: holds " + (std::isnan(value) ? "NaN" : "an infinity"),
          "leave the sample out, or replace the value");
    }
    sums[static_cast<size_t>(c)] += value;
  });
  for (const double sum : sums) moments.mean.push_back(sum / count);
  each([&](int64_t, int64_t c, double value) {
    const double distance = value - moments.mean[static_cast<size_t>(c)];
    squares[static_cast<size_t>(c)] += distance * distance;
  });
  for (size_t c = 0; c < squares.size(); ++c) {
    moments.std.push_back(deviation_or_one(squares[c] / count, moments.mean[c]));
  }
  return moments;
}

void set_target_moments(std::span<const float> targets, DataInfo& info) {
  const auto width = static_cast<size_t>(element_count(info.target_shape));
  std::vector<double> sums(width), squares(width);
  for (size_t i = 0; i < targets.size(); ++i) sums[i % width] += targets[i];
  info.target_low.assign(width, std::numeric_limits<double>::infinity());
  info.target_high.assign(width, -std::numeric_limits<double>::infinity());
  for (size_t i = 0; i < targets.size(); ++i) {
    double &low = info.target_low[i % width], &high = info.target_high[i % width];
    low = std::min<double>(low, targets[i]);
    high = std::max<double>(high, targets[i]);
  }
  const double count = static_cast<double>(targets.size()) / static_cast<double>(width);
  info.target_mean.clear();
  for (const double sum : sums) info.target_mean.push_back(sum / count);
  for (size_t i = 0; i < targets.size(); ++i) {
    const double distance = targets[i] - info.target_mean[i % width];
    squares[i % width] += distance * distance;
  }
  info.target_std.clear();
  for (const double square : squares) info.target_std.push_back(square > 0 ? std::sqrt(square / count) : 1);
}

}  // namespace sinew::data
