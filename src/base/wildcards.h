// Matches texts against patterns with wildcards, as in a list of parameters ("encoder.*") and in SQL's LIKE.
#pragma once

#include <string_view>

namespace sinew {

struct Wildcards {
  char any;      // matches any text, including the empty one
  char one = 0;  // matches one character of UTF-8; 0: the patterns have no such wildcard
};

// Returns whether the whole text matches. Backtracks only to the last `any`, so the time is at most proportional to the
// product of both lengths. Throws Error if the thread's CostLimit ends meanwhile.
bool fits_wildcards(std::string_view text, std::string_view pattern, Wildcards wildcards);

}  // namespace sinew
