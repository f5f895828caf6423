// Fuzzes the IDX reader. It must throw Error, or give a header that matches the file and an array that can be read to
// its end.
#include "base/check.h"
#include "base/error.h"
#include "data/arrays.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace sinew;
  using namespace sinew::data;
  const auto* bytes = reinterpret_cast<const std::byte*>(data);
  try {
    const ArrayHeader header = parse_idx({bytes, size}, "fuzz");
    const auto count = static_cast<size_t>(element_count(header.shape));
    SINEW_CHECK(header.offset + count * static_cast<size_t>(header.width) == size);
    FileArray array = make_array({bytes, bytes + size}, header, "fuzz");
    put_channels_first(array);
    const auto width = array.rows() == 0 ? 0 : static_cast<size_t>(element_count(array.row_shape()));
    std::vector<float> row(width);
    for (int64_t i = 0; i < array.rows() && width > 0; ++i) {
      convert_row(array.dtype, array.row(i), static_cast<int64_t>(width), 0, 1, row.data());
    }
  } catch (const Error&) {
  }
  return 0;
}
