// Points that fill a cube evenly: Sobol's sequence with the direction numbers of Joe and Kuo, Owen-scrambled.
//
// Sobol, "On the distribution of points in a cube" (1967); Joe, Kuo, "Constructing Sobol sequences with better
// two-dimensional projections" (SIAM J. Sci. Comput. 30, 2008), the first kSobolDimensions of new-joe-kuo-6; Owen,
// "Randomly permuted (t,m,s)-nets and (t,s)-sequences" (1995). Every 2^k first points stay a net after scrambling.
// Beyond kSobolDimensions the sequence is padded as by Burley, "Practical hash-based Owen scrambling" (JCGT 9, 2020):
// further blocks of dimensions are the same sequence in a scrambled order of its own.
#pragma once

#include <cstdint>
#include <span>

#include "base/random.h"

namespace sinew::tune {

inline constexpr size_t kSobolDimensions = 21;

// Point `index` in [0, 1)^n, 32 bits a coordinate; a function of (key, index, dimension).
void sobol_point(RandomKey key, uint32_t index, std::span<double> out);

}  // namespace sinew::tune
