// Numbers and amounts as users write them. Private to spec/.
//
// Every rule here has its twin in the JSON Schema as a pattern, which these functions hand out beside the parser, so
// that the two cannot drift apart unseen (tests/schema/agree.py compares them).
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "spec/spec.h"

namespace sinew::spec {

// JSON-like decimal numbers: "12", "-0.5", ".5", "1e-3". No "1_000", "0x10", "012", ".inf": YAML versions differ on
// them.
bool is_number(std::string_view text);
std::optional<double> parse_number(std::string_view text);  // nullopt: not a number, or too large for a double
// A number without a fractional part: "3", "3.0", "1e3" as in JSON Schema. `negative` for the sign.
struct Whole {
  bool negative = false;
  uint64_t magnitude = 0;
};
std::optional<Whole> parse_whole(std::string_view text);  // nullopt: no whole number, or larger than 2^64

size_t digits(std::string_view text, size_t from);  // how many stand there, ASCII ones

// The digits "whole.fraction" times 10^shift as an integer; nullopt when it has a fraction or does not fit.
std::optional<uint64_t> scaled(std::string_view whole, std::string_view fraction, int64_t shift);

std::string number_text(double value);  // shortest text that reads back as the same double
std::string bytes_text(int64_t bytes);
std::string time_text(double seconds);

std::string duration_pattern(std::string_view units, bool zero);  // units separated by spaces
std::string bytes_pattern();
std::string objective_pattern();
std::string metric_pattern();

bool is_metric(std::string_view text);  // "val/loss": part and name

}  // namespace sinew::spec
