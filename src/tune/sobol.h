// Makes space-filling points: Owen-scrambled Sobol points with the direction numbers of Joe and Kuo.
//
// Sobol, "On the distribution of points in a cube" (1967); Joe, Kuo, "Constructing Sobol sequences with better
// two-dimensional projections" (SIAM J. Sci. Comput. 30, 2008), the first kSobolDimensions of new-joe-kuo-6; Owen,
// "Randomly permuted (t,m,s)-nets and (t,s)-sequences" (1995). After scrambling, the first 2^k points are still a net.
// Beyond kSobolDimensions the sequence is padded as in Burley, "Practical hash-based Owen scrambling" (JCGT 9, 2020):
// each further block of dimensions repeats the sequence in a scrambled order of its own.
#pragma once

#include <cstdint>
#include <span>

#include "base/random.h"

namespace sinew::tune {

inline constexpr size_t kSobolDimensions = 21;

// Point `index` in [0, 1)^n with 32 bits for each coordinate; a function of (key, index, dimension).
void sobol_point(RandomKey key, uint32_t index, std::span<double> out);

}  // namespace sinew::tune
