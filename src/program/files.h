// Inside the room: what program.h promises, on a disk that a test can fail.
#pragma once

#include "base/disk.h"
#include "program/program.h"

namespace sinew::program {

Program read_program(Disk& disk, const std::string& path);
Array read_tensor(Disk& disk, const Program& program, const Stored& stored);
void write_program(Disk& disk, const Program& program, const std::vector<Replacement>& replacements,
                   const std::string& to);

}  // namespace sinew::program
