// Encodes a contribution, except its gradients, as bytes. Also adds encoded contributions. Private to distribute/.
#pragma once

#include <string>
#include <string_view>

#include "train/train.h"

namespace sinew::distribute {

// The encoding is exact: decoded(encoded(c)) has every bit of c. Numbers have the byte order of the machine, because
// all members run on the same kind of machine.
std::string encoded(const train::Contribution& contribution);
train::Contribution decoded(std::string_view bytes);  // throws Error if encoded() cannot have made the bytes

// Adds two encoded contributions as the tree does (train::add).
std::string merged(std::string_view left, std::string_view right);

}  // namespace sinew::distribute
