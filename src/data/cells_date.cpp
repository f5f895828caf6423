// Reads dates and times.
#include <algorithm>
#include <array>
#include <chrono>

#include "data/cells.h"
#include "data/files.h"

namespace sinew::data {
namespace {

constexpr auto kMonths =
    std::to_array<std::string_view>({"january", "february", "march", "april", "may", "june", "july", "august",
                                     "september", "october", "november", "december"});

// Takes parts from the beginning of a text. Every function returns whether it found its part.
class Parts {
 public:
  explicit Parts(std::string_view text) : text_(text) {}

  bool number(size_t least, size_t most, int& value) {
    size_t size = 0;
    value = 0;
    while (size < text_.size() && size < most && text_[size] >= '0' && text_[size] <= '9') {
      value = value * 10 + (text_[size++] - '0');
    }
    last_size_ = size;
    if (size < least) return false;
    text_.remove_prefix(size);
    return true;
  }
  size_t last_size() const { return last_size_; }  // digits of the last number

  bool one_of(std::string_view characters) {
    if (text_.empty() || characters.find(text_.front()) == std::string_view::npos) return false;
    last_ = text_.front();
    text_.remove_prefix(1);
    return true;
  }
  char last() const { return last_; }  // the character that one_of() found

  bool month(int& value) {
    size_t size = 0;
    while (size < text_.size() && size < 12 && ((text_[size] | 0x20) >= 'a' && (text_[size] | 0x20) <= 'z')) ++size;
    const std::string word = lower_case(std::string(text_.substr(0, size)));
    if (size < 3) return false;
    for (size_t i = 0; i < kMonths.size(); ++i) {
      if (word != kMonths[i] && word != kMonths[i].substr(0, 3) && word != "sept") continue;
      if (word == "sept" && i != 8) continue;
      value = static_cast<int>(i) + 1;
      text_.remove_prefix(size);
      return true;
    }
    return false;
  }

  void spaces() {
    while (!text_.empty() && text_.front() == ' ') text_.remove_prefix(1);
  }
  bool ended() const { return text_.empty(); }
  bool word(std::string_view lower) {
    if (lower_case(std::string(text_.substr(0, lower.size()))) != lower) return false;
    text_.remove_prefix(lower.size());
    return true;
  }
  // Returns the digits of a fraction as a number in [0, 1).
  double fraction() {
    double value = 0, scale = 0.1;
    for (; !text_.empty() && text_.front() >= '0' && text_.front() <= '9'; text_.remove_prefix(1), scale /= 10) {
      value += scale * (text_.front() - '0');
    }
    return value;
  }

 private:
  std::string_view text_;
  size_t last_size_ = 0;
  char last_ = '\0';
};

struct Day {
  int year = 0, month = 0, day = 0;
};

// Reads a year of four digits, or of two.
bool year_of(Parts& parts, int& year) {
  if (!parts.number(2, 4, year) || parts.last_size() == 3) return false;
  if (parts.last_size() == 2) year += year < 69 ? 2000 : 1900;
  return true;
}

bool numeric_day(Parts& parts, bool day_first, Day& day) {
  int first = 0, second = 0;
  if (!parts.number(1, 2, first) || !parts.one_of("./-")) return false;
  const char separator = parts.last();
  if (!parts.number(1, 2, second) || !parts.one_of(std::string_view(&separator, 1)) || !year_of(parts, day.year))
    return false;
  day.day = day_first ? first : second;
  day.month = day_first ? second : first;
  return true;
}

bool named_day(Parts& parts, Day& day) {
  if (parts.month(day.month)) {  // May 1, 2024
    (void)parts.one_of(".");
    parts.spaces();
    if (!parts.number(1, 2, day.day)) return false;
    (void)parts.one_of(",");
    parts.spaces();
    return year_of(parts, day.year);
  }
  if (!parts.number(1, 2, day.day)) return false;  // 1 May 2024, 01-May-24
  (void)parts.one_of(".-/");
  parts.spaces();
  if (!parts.month(day.month)) return false;
  (void)parts.one_of(".,-/");
  parts.spaces();
  return year_of(parts, day.year);
}

bool day_of(Parts& parts, DateForm form, Day& day) {
  switch (form) {
    case DateForm::iso: {
      if (!parts.number(4, 4, day.year) || !parts.one_of("-/.")) return false;
      const char separator = parts.last();
      return parts.number(1, 2, day.month) && parts.one_of(std::string_view(&separator, 1)) &&
             parts.number(1, 2, day.day);
    }
    case DateForm::day_first: return numeric_day(parts, true, day);
    case DateForm::month_first: return numeric_day(parts, false, day);
    case DateForm::named: return named_day(parts, day);
    case DateForm::compact:
      return parts.number(4, 4, day.year) && parts.number(2, 2, day.month) && parts.number(2, 2, day.day);
  }
  return false;
}

// Reads an offset ("+02:00", "-0500", "+02", "Z") as seconds to subtract.
bool offset_of(Parts& parts, double& seconds) {
  if (parts.word("z") || parts.word("utc") || parts.word("gmt")) return true;
  if (!parts.one_of("+-")) return true;  // no offset
  const double sign = parts.last() == '-' ? -1 : 1;
  int hours = 0, minutes = 0;
  if (!parts.number(2, 2, hours) || hours > 14) return false;
  if ((parts.one_of(":") || !parts.ended()) && (!parts.number(2, 2, minutes) || minutes > 59)) return false;
  seconds = sign * (hours * 3600.0 + minutes * 60.0);
  return true;
}

// Reads the time of day after the date, if there is more text.
bool time_of(Parts& parts, double& seconds) {
  if (parts.ended()) return true;
  if (!parts.one_of("T t")) return false;
  parts.spaces();
  int hour = 0, minute = 0, second = 0;
  if (!parts.number(1, 2, hour) || !parts.one_of(":") || !parts.number(2, 2, minute)) return false;
  double fraction = 0;
  if (parts.one_of(":")) {
    if (!parts.number(2, 2, second)) return false;
    if (parts.one_of(".,")) fraction = parts.fraction();
  }
  parts.spaces();
  const bool morning = parts.word("am"), afternoon = !morning && parts.word("pm");
  if ((morning || afternoon) && (hour < 1 || hour > 12)) return false;
  if (morning || afternoon) hour = hour % 12 + (afternoon ? 12 : 0);
  if (hour > 23 || minute > 59 || second > 60) return false;
  parts.spaces();
  double offset = 0;
  if (!offset_of(parts, offset)) return false;
  seconds = hour * 3600.0 + minute * 60.0 + second + fraction - offset;
  return parts.ended();
}

}  // namespace

std::optional<double> parse_date(std::string_view text, DateForm form) {
  if (text.size() < 6 || text.size() > 48) return std::nullopt;
  Parts parts(text);
  Day day;
  double seconds = 0;
  if (!day_of(parts, form, day) || !time_of(parts, seconds)) return std::nullopt;
  const std::chrono::year_month_day date{std::chrono::year(day.year),
                                         std::chrono::month(static_cast<unsigned>(day.month)),
                                         std::chrono::day(static_cast<unsigned>(day.day))};
  if (day.year < 1 || !date.ok()) return std::nullopt;
  const auto days = std::chrono::sys_days(date).time_since_epoch().count();
  return static_cast<double>(days) * kSecondsOfDay + seconds;
}

}  // namespace sinew::data
