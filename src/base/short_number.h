// Formats numbers and durations for people: short, and with as many digits as they can use.
#pragma once

#include <string>

namespace sinew {

std::string short_number(double value);              // about four digits: 0.3120, 12.34, 1.20e-05, nan
std::string short_count(double value);               // 84.2k, 1.20M
std::string short_seconds(double seconds);           // 12s, 3m05s, 2h14m, 5d03h
std::string short_seconds(double low, double high);  // 12s-14s; 12s if both are the same text
// 0.921-0.935: with as many digits as the width of the range allows, and rounded outwards; one number if both are
// equal.
std::string short_range(double low, double high);

}  // namespace sinew
