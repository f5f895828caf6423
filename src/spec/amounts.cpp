#include "spec/amounts.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>

namespace sinew::spec {
namespace {

// ---- units ---------------------------------------------------------------------------------------------------------

struct DurationUnit {
  const char* text;
  Duration::Unit unit;
  int power;       // >= 0: the amount times 10^power is a count, so it must be whole; -1: a real number
  double seconds;  // seconds in one unit of time; 0: not a time
};

constexpr DurationUnit kDurations[] = {
    {"ep", Duration::Unit::epochs, -1, 0},    {"dur", Duration::Unit::fraction, -1, 0},
    {"st", Duration::Unit::steps, 0, 0},      {"kst", Duration::Unit::steps, 3, 0},
    {"Mst", Duration::Unit::steps, 6, 0},     {"Gst", Duration::Unit::steps, 9, 0},
    {"sp", Duration::Unit::samples, 0, 0},    {"ksp", Duration::Unit::samples, 3, 0},
    {"Msp", Duration::Unit::samples, 6, 0},   {"Gsp", Duration::Unit::samples, 9, 0},
    {"tok", Duration::Unit::tokens, 0, 0},    {"ktok", Duration::Unit::tokens, 3, 0},
    {"Mtok", Duration::Unit::tokens, 6, 0},   {"Gtok", Duration::Unit::tokens, 9, 0},
    {"s", Duration::Unit::seconds, -1, 1},    {"m", Duration::Unit::seconds, -1, 60},
    {"h", Duration::Unit::seconds, -1, 3600}, {"d", Duration::Unit::seconds, -1, 86400},
};

// The most digits of a counted amount. A double holds every number of so many digits exactly.
constexpr size_t kMostDigits = 15;
constexpr size_t kMostRealDigits = 9;  // the most digits before the decimal point of epochs and times
constexpr size_t kMostFraction = 40;   // the most digits after the decimal point; to_string never writes more

struct ByteUnit {
  const char* text;
  uint64_t bytes;
  size_t digits;  // the most digits of a number whose product with `bytes` fits into 64 bits
};

constexpr ByteUnit kBytes[] = {
    {"", 1, 18},
    {"B", 1, 18},
    {"kB", 1000, 15},
    {"KB", 1000, 15},
    {"MB", 1000000, 12},
    {"GB", 1000000000, 9},
    {"TB", 1000000000000, 6},
    {"KiB", 1ULL << 10, 15},
    {"MiB", 1ULL << 20, 12},
    {"GiB", 1ULL << 30, 9},
    {"TiB", 1ULL << 40, 6},
};

struct Amount {
  std::string_view whole, fraction, unit;
};

std::optional<Amount> split_amount(std::string_view text) {
  Amount amount;
  amount.whole = text.substr(0, digits(text, 0));
  size_t at = amount.whole.size();
  if (at == 0) return std::nullopt;
  if (at < text.size() && text[at] == '.') {
    amount.fraction = text.substr(at + 1, digits(text, at + 1));
    if (amount.fraction.empty() || amount.fraction.size() > kMostFraction) return std::nullopt;
    at += 1 + amount.fraction.size();
  }
  amount.unit = text.substr(at);
  return amount;
}

std::string fixed_text(double value) {
  std::array<char, 400> buffer;
  const auto end = std::to_chars(buffer.data(), buffer.data() + buffer.size(), value, std::chars_format::fixed).ptr;
  return {buffer.data(), end};
}

}  // namespace

// ---- durations -----------------------------------------------------------------------------------------------------

std::optional<Duration> parse_duration(std::string_view text) {
  const std::optional<Amount> amount = split_amount(text);
  if (!amount) return std::nullopt;
  for (const DurationUnit& unit : kDurations) {
    if (amount->unit != unit.text) continue;
    if (unit.power >= 0) {
      if (amount->whole.size() > kMostDigits - static_cast<size_t>(unit.power)) return std::nullopt;
      const auto value = scaled(amount->whole, amount->fraction, unit.power);
      if (!value) return std::nullopt;
      return Duration{static_cast<double>(*value), unit.unit};
    }
    if (amount->whole.size() > kMostRealDigits) return std::nullopt;
    double value = 0;
    const std::string_view number = text.substr(0, text.size() - amount->unit.size());
    std::from_chars(number.data(), number.data() + number.size(), value);
    if (unit.unit == Duration::Unit::fraction && value > 1) return std::nullopt;
    return Duration{unit.seconds > 0 ? value * unit.seconds : value, unit.unit};
  }
  return std::nullopt;
}

std::string time_text(double seconds) {
  for (const auto& [size, unit] : {std::pair{86400.0, "d"}, {3600.0, "h"}, {60.0, "m"}}) {
    const double count = seconds / size;
    if (seconds > 0 && count == std::floor(count) && count * size == seconds) return fixed_text(count) + unit;
  }
  return fixed_text(seconds) + "s";
}

std::string to_string(const Duration& duration) {
  const auto counted = [&](const char* unit) {
    for (const auto& [size, prefix] : {std::pair{1e9, "G"}, {1e6, "M"}, {1e3, "k"}}) {
      const double count = duration.amount / size;
      const bool short_form = duration.unit != Duration::Unit::steps && duration.amount > 0;
      if (short_form && count == std::floor(count) && count * size == duration.amount) {
        return fixed_text(count) + prefix + unit;
      }
    }
    return fixed_text(duration.amount) + unit;
  };
  switch (duration.unit) {
    case Duration::Unit::epochs: return fixed_text(duration.amount) + "ep";
    case Duration::Unit::steps: return counted("st");
    case Duration::Unit::samples: return counted("sp");
    case Duration::Unit::tokens: return counted("tok");
    case Duration::Unit::seconds: return time_text(duration.amount);
    case Duration::Unit::fraction: return fixed_text(duration.amount) + "dur";
  }
  return "";
}

namespace {

std::string count_pattern(size_t most_digits, int most_fraction) {
  const std::string fraction = most_fraction == 0 ? "(\\.0{1," + std::to_string(kMostFraction) + "})?"
                                                  : "(\\.(?=[0-9]{1," + std::to_string(kMostFraction) +
                                                        "}[A-Za-z])[0-9]{1," + std::to_string(most_fraction) + "}0*)?";
  return "[0-9]{1," + std::to_string(most_digits) + "}" + fraction;
}

bool has_word(std::string_view words, std::string_view word) {
  return (" " + std::string(words) + " ").find(" " + std::string(word) + " ") != std::string::npos;
}

// The unit without its prefix: "st" for "kst".
std::string base_unit(const DurationUnit& unit) {
  return unit.power > 0 ? unit.text + 1 : unit.text;
}

}  // namespace

std::string duration_pattern(std::string_view units, bool zero) {
  std::string any;
  for (const DurationUnit& unit : kDurations) {
    if (!has_word(units, base_unit(unit))) continue;
    any += any.empty() ? "" : "|";
    if (unit.power >= 0) {
      any += count_pattern(kMostDigits - static_cast<size_t>(unit.power), unit.power) + unit.text;
    } else if (unit.unit == Duration::Unit::fraction) {
      any += "(0{1,9}(\\.[0-9]{1,40})?|0{0,8}1(\\.0{1,40})?)dur";
    } else {
      any += "[0-9]{1,9}(\\.[0-9]{1,40})?" + std::string(unit.text);
    }
  }
  return (zero ? "^(" : "^(?![0.]+[A-Za-z])(") + any + ")$";
}

// ---- sizes ---------------------------------------------------------------------------------------------------------

std::optional<int64_t> parse_bytes(std::string_view text) {
  const std::optional<Amount> amount = split_amount(text);
  if (!amount) return std::nullopt;
  for (const ByteUnit& unit : kBytes) {
    if (amount->unit != unit.text) continue;
    if (amount->whole.size() > unit.digits || !amount->fraction.empty()) return std::nullopt;
    return static_cast<int64_t>(*scaled(amount->whole, "", 0) * unit.bytes);
  }
  return std::nullopt;
}

std::string bytes_text(int64_t bytes) {
  for (size_t i = std::size(kBytes); i-- > 7;) {  // the binary units, largest first
    const auto size = static_cast<int64_t>(kBytes[i].bytes);
    if (bytes >= size && bytes % size == 0) return std::to_string(bytes / size) + kBytes[i].text;
  }
  return std::to_string(bytes) + "B";
}

std::string bytes_pattern() {
  std::string any;
  for (const ByteUnit& unit : kBytes) {
    any += any.empty() ? "" : "|";
    any += "[0-9]{1," + std::to_string(unit.digits) + "}" + unit.text;
  }
  return "^(?!0+[A-Za-z]*$)(" + any + ")$";
}

// ---- metrics and objectives ----------------------------------------------------------------------------------------

bool is_metric(std::string_view text) {
  const auto is_name = [](std::string_view part) {
    return !part.empty() && std::all_of(part.begin(), part.end(), [](char letter) {
      return std::isalnum(static_cast<unsigned char>(letter)) != 0 || letter == '_' || letter == '@' || letter == '.' ||
             letter == '-';
    });
  };
  const size_t slash = text.find('/');
  return slash != std::string_view::npos && is_name(text.substr(0, slash)) && is_name(text.substr(slash + 1));
}

std::string metric_pattern() {
  return "^[A-Za-z0-9_@.-]+/[A-Za-z0-9_@.-]+$";
}

std::optional<Objective> parse_objective(std::string_view text) {
  const size_t sign = text.find_first_of("<>");
  if (sign == std::string_view::npos || sign + 1 >= text.size() || text[sign + 1] != '=') return std::nullopt;
  const auto trimmed = [](std::string_view part) {
    while (!part.empty() && part.front() == ' ') part.remove_prefix(1);
    while (!part.empty() && part.back() == ' ') part.remove_suffix(1);
    return part;
  };
  const std::string_view metric = trimmed(text.substr(0, sign));
  const std::optional<double> value = parse_number(trimmed(text.substr(sign + 2)));
  if (!is_metric(metric) || !value) return std::nullopt;
  return Objective{std::string(metric), text[sign] == '>', *value};
}

std::string to_string(const Objective& objective) {
  return objective.metric + (objective.at_least ? " >= " : " <= ") + number_text(objective.value);
}

std::string objective_pattern() {
  return "^ *[A-Za-z0-9_@.-]+/[A-Za-z0-9_@.-]+ *[<>]= *[-+]?((0|[1-9][0-9]*)(\\.[0-9]*)?|\\.[0-9]+)([eE][-+]?[0-9]+)? "
         "*$";
}

}  // namespace sinew::spec
