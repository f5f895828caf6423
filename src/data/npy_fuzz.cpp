// Fuzzes the readers of .npy and .npz. They must throw Error, or give arrays that can be read to their end.
#include "base/check.h"
#include "base/error.h"
#include "data/arrays.h"

using namespace sinew;
using namespace sinew::data;

namespace {

void read_array(std::vector<std::byte> bytes) {
  const ArrayHeader header = parse_npy(bytes, "fuzz");
  const FileArray array = make_array(std::move(bytes), header, "fuzz");
  const auto width = array.rows() == 0 ? 0 : static_cast<size_t>(element_count(array.row_shape()));
  std::vector<float> row(width);
  for (int64_t i = 0; i < array.rows() && width > 0; ++i) {
    convert_row(array.dtype, array.row(i), static_cast<int64_t>(width), 0, 1, row.data());
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::span bytes(reinterpret_cast<const std::byte*>(data), size);
  try {
    if (size > 0 && data[0] == 'P') {
      for (const ZipMember& member : parse_zip(bytes, "fuzz")) read_array(unpack(bytes, member, "fuzz"));
    } else {
      read_array({bytes.begin(), bytes.end()});
    }
  } catch (const Error&) {
  }
  return 0;
}
