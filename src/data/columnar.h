// Private to data/: reads Parquet and Arrow (Feather) files as CSV.
//
// Debian has no library for these formats, so a Python with pyarrow converts them: SINEW_PYTHON, or the python3 of
// PATH. The wheel sets SINEW_PYTHON to the Python in which it is installed. The package is optional: only such files
// need it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace sinew::data {

// Returns whether the name ends in .parquet, .feather or .arrow.
bool is_columnar(std::string_view path);

// Returns the table of such a file as CSV: a header line, commas, decimal points, words in quotes, nothing in place of
// a null. Throws Error if there is no pyarrow, if it cannot read the file, if a column holds lists or structures, or if
// the text has more than `limit` bytes. `size` is that of the file and bounds how long the conversion may take.
std::vector<std::byte> columnar_as_csv(const std::string& path, uint64_t size, uint64_t limit);

}  // namespace sinew::data
