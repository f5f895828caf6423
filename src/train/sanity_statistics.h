// How alike two samples are, and what the order of a column says. Pure functions of numbers, for the checks of data.
// Private to train/.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace sinew::train::sanity {

// The largest difference between the distribution functions of two samples (Kolmogorov, Smirnov): 0 if they are
// distributed alike, 1 if all values of one are below all values of the other.
double distribution_distance(std::vector<float> a, std::vector<float> b);
// The distance that two samples of one distribution exceed with this probability.
double distance_by_chance(size_t a, size_t b, double probability);
// Half the sum of the differences between shares: 0 if both have the same shares, 1 if they have no class in common.
double share_distance(std::span<const int64_t> a, std::span<const int64_t> b);
// The share distance that two samples of one distribution hardly ever exceed.
double shares_by_chance(std::span<const int64_t> a, std::span<const int64_t> b);
// The probability that a value of `b` is above a value of `a`; equal values count half.
double share_above(std::vector<float> a, std::vector<float> b);
// Whether the values are those of a counter: all different, in equal steps, with few gaps.
bool counts_up(std::vector<float> values);
// How much the targets change between neighbours in the order of the values, as a share of the change in a random
// order: 0 if the values sort the targets, 1 if their order says nothing. For classes, a change is another class; for
// numbers, the squared difference.
double change_in_order(std::span<const float> values, std::span<const double> targets, bool classes);

}  // namespace sinew::train::sanity
