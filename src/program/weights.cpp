#include "program/weights.h"

#include <algorithm>

#include "program/meta.h"

namespace sinew::program {
namespace {

// A view may repeat elements (expand). These limits bound the memory that a small file can make the reader allocate.
constexpr uint64_t kMaxRepeats = 64, kFreeBytes = 16ULL << 20;
constexpr uint64_t kFreeBytesOfAll = 256ULL << 20;

std::string shape_text(std::span<const int64_t> sizes) {
  std::string text = "[";
  for (const int64_t size : sizes) text += (text.size() > 1 ? ", " : "") + std::to_string(size);
  return text + ']';
}

int64_t fixed(const JsonView& view, const Dim& dim, const char* what) {
  if (!dim.fixed) {
    view.refuse("PROGRAM_BAD_TENSOR",
                std::string("has a symbol in its ") + what + ", but a stored tensor must have numbers");
  }
  return *dim.fixed;
}

// Checks that computing with sizes, strides and offset does not overflow, and that the tensor lies inside its member.
void check_bounds(const JsonView& view, const StoredTensor& stored, uint64_t member_bytes) {
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
  if (overflow) {
    view.refuse("PROGRAM_BAD_TENSOR", "has sizes or strides that are too large: " + shape_text(stored.sizes));
  }
  if (empty) return;
  if (static_cast<uint64_t>(last) >= member_bytes / size_of(stored.dtype)) {
    view.refuse("PROGRAM_BAD_TENSOR",
                "reaches to element " + std::to_string(last) + " of member " + in_quotes(stored.member) +
                    ", which has " + std::to_string(member_bytes / size_of(stored.dtype)),
                member_bytes == 0 ? "the model was exported without its weights (under FakeTensorMode?); export it "
                                    "with them"
                                  : "the file is damaged; export the model again");
  }
  if (const auto all = static_cast<uint64_t>(bytes); all > kFreeBytes && all / kMaxRepeats > member_bytes) {
    view.refuse("PROGRAM_BAD_TENSOR", "is a view that repeats its elements to " + std::to_string(bytes) + " bytes",
                "store the tensor itself and expand it in forward");
  }
}

StoredTensor read_entry(const JsonView& view, const Archive& archive, const std::string& folder, Symbols& symbols) {
  view.allow({"path_name", "is_param", "use_pickle", "tensor_meta"});
  const JsonView path = view.get("path_name");
  if (view.get("use_pickle").boolean()) {
    view.get("use_pickle")
        .refuse("PROGRAM_UNSUPPORTED", "says that the tensor is a pickle, and reading a pickle runs its Python code",
                "torch saved a tensor subclass or a custom object; export the model with plain tensors "
                "(quantized weights: before they are quantized)");
  }
  const FullMeta full = read_tensor_meta(view.get("tensor_meta"), symbols);
  const Member* member = archive.find(folder + path.text());
  if (member == nullptr) {
    path.refuse("PROGRAM_BAD_TENSOR", "names " + in_quotes(folder + path.text()) + ", which the archive does not have");
  }
  StoredTensor stored;
  stored.member = member->name;
  stored.begin = member->begin;
  stored.member_bytes = member->size;
  stored.checksum = member->crc;
  stored.dtype = full.meta.dtype;
  stored.is_parameter = view.get("is_param").boolean();
  for (const Dim& size : full.meta.sizes) stored.sizes.push_back(fixed(view, size, "sizes"));
  for (const Dim& stride : full.strides) stored.strides.push_back(fixed(view, stride, "strides"));
  stored.offset = fixed(view, full.offset, "offset");
  check_bounds(view, stored, member->size);
  return stored;
}

}  // namespace

std::map<std::string, StoredTensor> read_stored_tensors(const Document& document, const Archive& archive,
                                                        const std::string& folder) {
  const JsonView root(document);
  root.allow({"config"});
  const JsonView config = root.get("config");
  Symbols symbols;
  std::map<std::string, StoredTensor> all;
  for (const JsonMember& entry : config.object())
    all.emplace(entry.name, read_entry(config.of(entry.value), archive, folder, symbols));
  return all;
}

void check_stored_tensors(const Program& program, uint64_t file_bytes) {
  uint64_t all_bytes = 0;  // the check below ends the loop long before it could overflow
  for (const InputSpec& input : program.inputs) {
    using Kind = InputSpec::Kind;
    if (input.kind == Kind::user || input.kind == Kind::user_constant) continue;
    const bool weight = input.kind == Kind::parameter || (input.kind == Kind::buffer && input.persistent);
    const auto& all = weight ? program.weights : program.constants;
    const std::string what = std::string(input.kind == Kind::parameter ? "parameter "
                                         : input.kind == Kind::buffer  ? "buffer "
                                                                       : "constant ") +
                             in_quotes(input.name);
    const auto found = all.find(input.name);
    if (found == all.end()) {
      throw Error("PROGRAM_BAD_TENSOR",
                  program.path + ": " + what + " has no tensor among the " + (weight ? "weights" : "constants"),
                  "the file is damaged; export the model again");
    }
    const Value& value = program.graph.values[static_cast<size_t>(input.value)];
    const StoredTensor& stored = found->second;
    Shape sizes;
    for (const Dim& dim : value.meta->sizes) sizes.push_back(dim.fixed.value_or(-1));
    all_bytes += dense_bytes(stored);
    if (all_bytes > kFreeBytesOfAll && all_bytes / kMaxRepeats > file_bytes) {
      throw Error("PROGRAM_BAD_TENSOR",
                  program.path + ": its tensors have more than " + std::to_string(kMaxRepeats) +
                      " times the bytes of the file; " + what + " exceeds the limit",
                  "store the tensors themselves and expand them in forward");
    }
    if (stored.dtype == value.meta->dtype && stored.sizes == sizes) continue;
    throw Error("PROGRAM_BAD_TENSOR",
                program.path + ": " + what + " is stored as " + std::string(name_of(stored.dtype)) + " " +
                    shape_text(stored.sizes) + ", but the graph takes " + std::string(name_of(value.meta->dtype)) +
                    " " + shape_text(sizes),
                "the file is damaged; export the model again");
  }
}

uint64_t dense_bytes(const StoredTensor& stored) {
  return static_cast<uint64_t>(element_count(stored.sizes)) * size_of(stored.dtype);
}

std::pair<uint64_t, uint64_t> extent(const StoredTensor& stored) {
  int64_t last = stored.offset;
  for (size_t d = 0; d < stored.sizes.size(); ++d) {
    if (stored.sizes[d] == 0) return {0, 0};
    last += (stored.sizes[d] - 1) * stored.strides[d];
  }
  const uint64_t width = size_of(stored.dtype);
  return {static_cast<uint64_t>(stored.offset) * width, static_cast<uint64_t>(last + 1) * width};
}

bool share_bytes(const StoredTensor& a, const StoredTensor& b) {
  const auto [a_begin, a_end] = extent(a);
  const auto [b_begin, b_end] = extent(b);
  const uint64_t begin = std::max(a_begin, b_begin), end = std::min(a_end, b_end);
  if (a.member != b.member || begin >= end) return false;
  std::vector<bool> of_a(end - begin);
  bool shared = false;
  const auto for_each_byte = [&](const StoredTensor& stored, auto visit) {
    const uint64_t width = size_of(stored.dtype);
    for_each_element(stored, [&](int64_t, int64_t element) {
      const uint64_t first = static_cast<uint64_t>(element) * width;
      for (uint64_t at = std::max(first, begin); at < std::min(first + width, end); ++at) visit(at - begin);
    });
  };
  for_each_byte(a, [&](uint64_t at) { of_a[at] = true; });
  for_each_byte(b, [&](uint64_t at) { shared = shared || of_a[at]; });
  return shared;
}

bool may_repeat_elements(const Shape& sizes, const Shape& strides) {
  std::vector<std::pair<int64_t, int64_t>> dimensions;  // stride, size
  for (size_t d = 0; d < sizes.size(); ++d) {
    if (sizes[d] == 0) return false;
    if (sizes[d] > 1) dimensions.emplace_back(strides[d], sizes[d]);
  }
  std::ranges::sort(dimensions);
  int64_t reach = 0;  // the largest distance of two elements in the dimensions so far
  for (const auto& [stride, size] : dimensions) {
    if (stride <= reach) return true;
    reach += (size - 1) * stride;
  }
  return false;
}

bool is_dense(const StoredTensor& stored) {
  int64_t expected = 1;
  for (size_t d = stored.sizes.size(); d-- > 0;) {
    if (stored.sizes[d] == 1) continue;
    if (stored.strides[d] != expected) return false;
    expected *= stored.sizes[d];
  }
  return true;
}

}  // namespace sinew::program
