// Private to program/: the functions of program.h on a given Disk, so that tests can inject failures.
#pragma once

#include "base/disk.h"
#include "program/program.h"

namespace sinew::program {

Program read_program(Disk& disk, const std::string& path);
Array read_tensor(Disk& disk, const Program& program, const StoredTensor& stored);
void write_program(Disk& disk, const Program& program, const std::vector<Replacement>& replacements,
                   const std::string& to);

}  // namespace sinew::program
