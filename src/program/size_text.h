// Private to program/: says in words how a size depends on symbols.
#pragma once

#include <string>

#include "program/program.h"

namespace sinew::program {

std::string size_text(const Dim& dim);  // "6", "s77", "2*s39"; "computed" if Sinew cannot read the expression

}  // namespace sinew::program
