// Parses any bytes as a safetensors file. The parser must not crash, hang, or use memory out of proportion. The tensors
// of an accepted file must cover its data exactly. TensorSink, which gets the file in pieces, must accept the same
// files.
#include <cstdint>

#include "base/check.h"
#include "checkpoint/safetensors.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace sinew;
  using namespace sinew::checkpoint;
  const std::span file(reinterpret_cast<const std::byte*>(data), size);
  const auto index = parse_safetensors(file);
  TensorSink sink(size, true);
  for (size_t at = 0; at < size; at += 13) sink.take(file.subspan(at, std::min<size_t>(13, size - at)));
  const auto whole = sink.finish();
  SINEW_CHECK(index.has_value() == whole.has_value());
  if (!index) {
    SINEW_CHECK(!index.error().empty());
    return 0;
  }
  SINEW_CHECK(whole->tensors.size() == index->tensors.size());
  uint64_t end = 0;
  std::vector<TensorBytes> tensors;
  for (const TensorEntry& entry : index->tensors) {
    SINEW_CHECK(entry.begin == end);
    end = entry.end;
    tensors.push_back({entry.name, entry.dtype, entry.shape,
                       file.subspan(index->data_offset + entry.begin, entry.end - entry.begin)});
    const Array& array = whole->tensors.at(entry.name);
    SINEW_CHECK(std::equal(tensors.back().bytes.begin(), tensors.back().bytes.end(), array.bytes.data(),
                           array.bytes.data() + array.bytes.size()));
  }
  SINEW_CHECK(index->data_offset + end == size);
  // An accepted file can be written and read again.
  std::vector<std::byte> again;
  put_safetensors(tensors, index->metadata,
                  [&](std::span<const std::byte> bytes) { again.insert(again.end(), bytes.begin(), bytes.end()); });
  const auto second = parse_safetensors(again);
  SINEW_CHECK(second && second->tensors.size() == tensors.size() && second->metadata == index->metadata);
  return 0;
}
