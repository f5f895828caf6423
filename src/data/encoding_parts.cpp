// Encodes dates and texts.
#include <array>
#include <chrono>
#include <cmath>

#include "base/hash.h"
#include "data/encoding.h"

namespace sinew::data {
namespace {

struct Point {
  double sin, cos;
};

// The points of a circle are constants, because two builds of libm may round sin differently.
constexpr std::array<double, 7> kSinOf24 = {
    0, 0.25881904510252074, 0.5, 0.70710678118654757, 0.8660254037844386, 0.96592582628906831, 1};
constexpr std::array<Point, 7> kSevenths = {{{0, 1},
                                             {0.7818314824680298, 0.6234898018587336},
                                             {0.9749279121818236, -0.22252093395631434},
                                             {0.43388373911755823, -0.9009688679024191},
                                             {-0.43388373911755823, -0.9009688679024191},
                                             {-0.9749279121818236, -0.22252093395631434},
                                             {-0.7818314824680298, 0.6234898018587336}}};

double sin_of_24(int64_t k) {
  k = (k % 24 + 24) % 24;
  if (k > 12) return -sin_of_24(24 - k);
  return kSinOf24[static_cast<size_t>(k <= 6 ? k : 12 - k)];
}

Point point_of_24(int64_t k) {
  return {sin_of_24(k), sin_of_24(k + 6)};
}

bool is_word_byte(unsigned char c) {
  return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c >= 0x80;
}

template <typename Visit>
void each_word(std::string_view text, Visit visit) {
  for (size_t at = 0; at < text.size();) {
    size_t end = at;
    while (end < text.size() && is_word_byte(static_cast<unsigned char>(text[end]))) ++end;
    if (end > at) visit(text.substr(at, end - at));
    at = end + 1;
  }
}

}  // namespace

void encode_date(const Feature& feature, double seconds, float* out) {
  const auto days = static_cast<int64_t>(std::floor(seconds / kSecondsOfDay));
  const std::chrono::sys_days day{std::chrono::days(days)};
  const std::chrono::year_month_day date{day};
  const int year = static_cast<int>(date.year());
  const auto month = static_cast<int64_t>(static_cast<unsigned>(date.month()));
  const Point of_month = point_of_24((month - 1) * 2);
  const Point of_weekday = kSevenths[std::chrono::weekday(day).c_encoding()];
  *out++ = static_cast<float>((year - feature.year_center) / feature.year_std);
  *out++ = static_cast<float>((seconds / kSecondsOfDay - feature.center) / feature.std);
  for (const Point& point : {of_month, of_weekday}) {
    *out++ = static_cast<float>(point.sin);
    *out++ = static_cast<float>(point.cos);
  }
  if (!feature.hours) return;
  const Point hour = point_of_24(static_cast<int64_t>((seconds - static_cast<double>(days) * kSecondsOfDay) / 3600));
  *out++ = static_cast<float>(hour.sin);
  *out++ = static_cast<float>(hour.cos);
}

std::vector<uint8_t> text_inputs(std::string_view text) {
  std::vector<uint8_t> inputs;
  std::string word;
  each_word(text, [&](std::string_view found) {
    word.assign(found);
    for (char& c : word) c = c >= 'A' && c <= 'Z' ? static_cast<char>(c + 32) : c;
    inputs.push_back(static_cast<uint8_t>(digest_of(std::string_view(word)).low % kTextInputs));
  });
  return inputs;
}

int64_t count_words(std::string_view text) {
  int64_t count = 0;
  each_word(text, [&](std::string_view) { ++count; });
  return count;
}

}  // namespace sinew::data
