#include "program/weights.h"

#include <algorithm>

#include "program/meta.h"

namespace sinew::program {
namespace {

// Views may repeat elements (expand). What a small file can make of them is bounded all the same.
constexpr uint64_t kMostRepeats = 64, kFreeBytes = 16ULL << 20;

std::string shape_text(std::span<const int64_t> sizes) {
  std::string text = "[";
  for (const int64_t size : sizes) text += (text.size() > 1 ? ", " : "") + std::to_string(size);
  return text + ']';
}

int64_t fixed(const Spot& spot, const Dim& dim, const char* what) {
  if (!dim.fixed) spot.refuse(std::string("has a symbol in its ") + what + "; what is stored has numbers");
  return *dim.fixed;
}

// Sizes, strides and offset can be reckoned with, and the tensor lies inside its member.
void check_bounds(const Spot& spot, const Stored& stored, uint64_t member_bytes) {
  int64_t count = 1, last = stored.offset, bytes = 0;
  bool overflow = false, empty = false;
  for (size_t d = 0; d < stored.sizes.size(); ++d) {
    int64_t reach = 0;
    overflow |= __builtin_mul_overflow(count, stored.sizes[d], &count);
    if (stored.sizes[d] == 0) {
      empty = true;
    } else {
      overflow |= __builtin_mul_overflow(stored.sizes[d] - 1, stored.strides[d], &reach) ||
                  __builtin_add_overflow(last, reach, &last);
    }
  }
  overflow |= __builtin_mul_overflow(count, static_cast<int64_t>(size_of(stored.dtype)), &bytes);
  if (overflow) spot.refuse("has sizes or strides too large to reckon with: " + shape_text(stored.sizes));
  if (empty) return;
  if (static_cast<uint64_t>(last) >= member_bytes / size_of(stored.dtype)) {
    spot.refuse("reaches to element " + std::to_string(last) + " of member " + shown(stored.member) + ", which has " +
                    std::to_string(member_bytes / size_of(stored.dtype)),
                member_bytes == 0 ? "the model was exported without its weights (under FakeTensorMode?); export it "
                                    "with them"
                                  : "the file is damaged; export the model again");
  }
  if (const auto all = static_cast<uint64_t>(bytes); all > kFreeBytes && all / kMostRepeats > member_bytes) {
    spot.refuse("is a view that repeats its elements to " + std::to_string(bytes) + " bytes",
                "keep the tensor itself and expand it in forward");
  }
}

Stored read_entry(const Spot& spot, const Archive& archive, const std::string& folder, Symbols& symbols) {
  spot.allow({"path_name", "is_param", "use_pickle", "tensor_meta"});
  const Spot path = spot.get("path_name");
  if (spot.get("use_pickle").boolean()) {
    spot.get("use_pickle")
        .refuse("says a pickle: Python code that would have to be run",
                "a tensor subclass or a custom object was saved; export the model with plain tensors "
                "(for quantized weights, before they are quantized)");
  }
  const FullMeta full = read_tensor_meta(spot.get("tensor_meta"), symbols);
  const Member* member = archive.find(folder + path.text());
  if (member == nullptr) path.refuse("names " + shown(folder + path.text()) + ", which the archive does not have");
  Stored stored;
  stored.member = member->name;
  stored.begin = member->begin;
  stored.member_bytes = member->size;
  stored.checksum = member->crc;
  stored.dtype = full.meta.dtype;
  stored.is_parameter = spot.get("is_param").boolean();
  for (const Dim& size : full.meta.sizes) stored.sizes.push_back(fixed(spot, size, "sizes"));
  for (const Dim& stride : full.strides) stored.strides.push_back(fixed(spot, stride, "strides"));
  stored.offset = fixed(spot, full.offset, "offset");
  check_bounds(spot, stored, member->size);
  return stored;
}

}  // namespace

std::map<std::string, Stored> read_stored(const Document& document, const Archive& archive, const std::string& folder) {
  const Spot root(document);
  root.allow({"config"});
  const Spot config = root.get("config");
  Symbols symbols;
  std::map<std::string, Stored> all;
  for (const JsonMember& entry : config.object())
    all.emplace(entry.name, read_entry(config.of(entry.value), archive, folder, symbols));
  return all;
}

void check_stored(const Program& program) {
  for (const InputSpec& input : program.inputs) {
    using Kind = InputSpec::Kind;
    if (input.kind == Kind::user || input.kind == Kind::user_constant) continue;
    const bool weight = input.kind == Kind::parameter || (input.kind == Kind::buffer && input.persistent);
    const auto& all = weight ? program.weights : program.constants;
    const std::string what = std::string(input.kind == Kind::parameter ? "parameter "
                                         : input.kind == Kind::buffer  ? "buffer "
                                                                       : "constant ") +
                             shown(input.name);
    const auto found = all.find(input.name);
    if (found == all.end()) {
      throw Error(program.path + ": " + what + " has no tensor among the " + (weight ? "weights" : "constants"),
                  "the file is damaged; export the model again");
    }
    const Value& value = program.graph.values[static_cast<size_t>(input.value)];
    const Stored& stored = found->second;
    Shape sizes;
    for (const Dim& dim : value.meta->sizes) sizes.push_back(dim.fixed.value_or(-1));
    if (stored.dtype == value.meta->dtype && stored.sizes == sizes) continue;
    throw Error(program.path + ": " + what + " is stored as " + std::string(name_of(stored.dtype)) + " " +
                    shape_text(stored.sizes) + ", but the graph takes " + std::string(name_of(value.meta->dtype)) +
                    " " + shape_text(sizes),
                "the file is damaged; export the model again");
  }
}

uint64_t dense_bytes(const Stored& stored) {
  return static_cast<uint64_t>(element_count(stored.sizes)) * size_of(stored.dtype);
}

std::pair<uint64_t, uint64_t> extent(const Stored& stored) {
  int64_t last = stored.offset;
  for (size_t d = 0; d < stored.sizes.size(); ++d) {
    if (stored.sizes[d] == 0) return {0, 0};
    last += (stored.sizes[d] - 1) * stored.strides[d];
  }
  const uint64_t width = size_of(stored.dtype);
  return {static_cast<uint64_t>(stored.offset) * width, static_cast<uint64_t>(last + 1) * width};
}

bool share_bytes(const Stored& a, const Stored& b) {
  const auto [a_begin, a_end] = extent(a);
  const auto [b_begin, b_end] = extent(b);
  const uint64_t begin = std::max(a_begin, b_begin), end = std::min(a_end, b_end);
  if (a.member != b.member || begin >= end) return false;
  std::vector<bool> of_a(end - begin);
  bool shared = false;
  const auto for_each_byte = [&](const Stored& stored, auto visit) {
    const uint64_t width = size_of(stored.dtype);
    for_each_element(stored, [&](int64_t, int64_t place) {
      const uint64_t first = static_cast<uint64_t>(place) * width;
      for (uint64_t at = std::max(first, begin); at < std::min(first + width, end); ++at) visit(at - begin);
    });
  };
  for_each_byte(a, [&](uint64_t at) { of_a[at] = true; });
  for_each_byte(b, [&](uint64_t at) { shared = shared || of_a[at]; });
  return shared;
}

bool is_dense(const Stored& stored) {
  int64_t expected = 1;
  for (size_t d = stored.sizes.size(); d-- > 0;) {
    if (stored.sizes[d] == 1) continue;
    if (stored.strides[d] != expected) return false;
    expected *= stored.sizes[d];
  }
  return true;
}

}  // namespace sinew::program
