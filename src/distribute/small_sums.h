// Inside distribute/: everything of a contribution but its gradients, as bytes and back.
#pragma once

#include <string>
#include <string_view>

#include "train/train.h"

namespace sinew::distribute {

// Exact: decoded(encoded(c)) has every bit of c. The order of bytes is the machine's: members share a kind of machine.
std::string encoded(const train::Contribution& contribution);
train::Contribution decoded(std::string_view bytes);  // throws Error for what encoded() did not make

// The tree's arithmetic (train::add) on encoded contributions.
std::string merged(std::string_view left, std::string_view right);

}  // namespace sinew::distribute
