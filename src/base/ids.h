// Defines distinct integer types, so that the compiler refuses a Step where a ShardIndex is expected.
#pragma once

#include <compare>
#include <cstdint>
#include <ostream>

namespace sinew {

template <typename Tag>
struct Number {
  int64_t value = 0;
  constexpr Number() = default;
  constexpr explicit Number(int64_t number) : value(number) {}
  constexpr auto operator<=>(const Number&) const = default;
  constexpr Number next() const { return Number(value + 1); }
  friend std::ostream& operator<<(std::ostream& out, Number number) { return out << number.value; }
};

using Step = Number<struct StepTag>;              // steps committed so far; step t turns state t into state t+1
using ShardIndex = Number<struct ShardIndexTag>;  // index of a shard in its step, 0..S-1
using Epoch = Number<struct EpochTag>;            // passes over the training set, from 0
using MemberId = Number<struct MemberTag>;        // one membership of a worker in a group; never reused in a run
using Generation = Number<struct GenerationTag>;  // number of a view; later views have higher numbers

}  // namespace sinew
