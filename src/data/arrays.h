// Private to data/: samples that are rows of one array (IDX, CIFAR, NumPy). The array stays in memory in the file's own
// type; its rows are converted when a shard is loaded.
#pragma once

#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "data/data.h"
#include "data/files.h"

namespace sinew::data {

// What the header of a file says about its array. The parsers check it against the length of the file.
struct ArrayHeader {
  char kind = 'u';  // NumPy's letters: u unsigned, i signed, f floating-point, b boolean
  int width = 1;    // bytes of one element
  Shape shape;
  size_t offset = 0;  // where the first element begins in the file
  bool big_endian = false, fortran = false;
};
// Throws Error if the shape has no elements, or if the bytes after the header are not exactly the elements of the
// shape.
void check_size(const ArrayHeader& header, uint64_t file_size, const std::string& name);
ArrayHeader parse_idx(std::span<const std::byte> file, const std::string& name);
ArrayHeader parse_npy(std::span<const std::byte> file, const std::string& name);

// A file within a .npz (a ZIP archive).
struct ZipMember {
  std::string name;
  bool deflated = false;
  uint64_t offset = 0, packed = 0, size = 0;
  uint32_t crc = 0;
};
std::vector<ZipMember> parse_zip(std::span<const std::byte> file, const std::string& name);
std::vector<std::byte> unpack(std::span<const std::byte> file, const ZipMember& member, const std::string& name,
                              uint64_t limit = most_bytes());

// An array in native byte order and C order; axis 0 is the sample. Sample i begins at bytes[offset + i * stride].
struct FileArray {
  std::string name;
  DType dtype = DType::u8;
  Shape shape;
  std::vector<std::byte> bytes;
  size_t offset = 0, stride = 0;

  int64_t rows() const { return shape.empty() ? 0 : shape[0]; }
  Shape row_shape() const { return {shape.begin() + 1, shape.end()}; }
  const std::byte* row(int64_t i) const { return bytes.data() + offset + static_cast<size_t>(i) * stride; }
};
// Converts the file's bytes to native byte order and C order. It copies the array only if its order or its type
// changes.
FileArray make_array(std::vector<std::byte> file, const ArrayHeader& header, const std::string& name);

// Turns [n, height, width, channels] into [n, channels, height, width]. Leaves any other array unchanged. The channels
// are last if the last axis has size 1, 3 or 4 and the second axis has another size.
void put_channels_first(FileArray& array);

// The arrays of one split, as the reader of its format returns them.
struct ArraySplit {
  FileArray inputs, targets;
  std::vector<std::pair<int64_t, std::string>> files;  // index of the first sample of each input file, in order
  std::vector<Digest> digests;
  std::vector<std::string> class_names;  // empty if the format has no names
};

// Each function reads one split in one format, from the files that the source names.
ArraySplit read_idx(const spec::DataSource& source, Split split);
ArraySplit read_cifar(const spec::DataSource& source, Split split, bool hundred);
ArraySplit read_npy(const spec::DataSource& source, Split split);
ArraySplit read_npz(const spec::DataSource& source, Split split);

// Writes out[i] = (value i of the row - mean) * factor. The mean is in the units of the file's values. The compiler
// vectorises the loop.
void convert_row(DType dtype, const std::byte* row, int64_t count, double mean, double factor, float* out);
// Does the same as convert_row, but with a mean and a factor for each element.
void convert_columns(DType dtype, const std::byte* row, std::span<const double> mean, std::span<const double> factor,
                     float* out);
double value_at(DType dtype, const std::byte* row, int64_t index);

// Mean and standard deviation of each channel (images) or column, in the units of the file's values. A constant channel
// has std 1. If a sample holds a NaN or an infinity, moments_of throws Error, which names the first such sample.
struct Moments {
  std::vector<double> mean, std;
};
Moments moments_of(const FileArray& inputs, std::span<const int64_t> samples, int64_t channels);

std::unique_ptr<Dataset> make_array_dataset(const spec::DataOptions& options, uint64_t seed, ArraySplit train,
                                            std::optional<ArraySplit> val, std::optional<ArraySplit> test);

}  // namespace sinew::data
