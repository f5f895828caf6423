// Parses and writes numbers and amounts with units, as users write them. Private to spec/.
//
// For each parser of this file there is a pattern for the JSON Schema that accepts the same texts.
// tests/schema/agree.py compares parsers and patterns.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "base/number_text.h"
#include "spec/spec.h"

namespace sinew::spec {

// Decimal numbers as in JSON, and ".5": "12", "-0.5", "1e-3". Refuses "1_000", "0x10", "012" and ".inf", which versions
// of YAML read differently.
bool is_number(std::string_view text);
std::optional<double> parse_number(std::string_view text);  // nullopt: no number, or too large for a double
// A number without a fractional part, as JSON Schema defines it: "3", "3.0", "1e3".
struct Whole {
  bool negative = false;
  uint64_t magnitude = 0;
};
std::optional<Whole> parse_whole(std::string_view text);  // nullopt: no whole number, or beyond 64 bits

size_t digits(std::string_view text, size_t from);  // how many ASCII digits follow

// "whole.fraction" times 10^shift as an integer; nullopt if the product has a fraction or does not fit.
std::optional<uint64_t> scaled(std::string_view whole, std::string_view fraction, int64_t shift);

std::string bytes_text(int64_t bytes);
std::string time_text(double seconds);

std::string duration_pattern(std::string_view units, bool zero);  // units separated by spaces
std::string bytes_pattern();
std::string objective_pattern();
std::string metric_pattern();

bool is_metric(std::string_view text);  // "val/loss": a split and a name

}  // namespace sinew::spec
