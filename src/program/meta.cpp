#include "program/meta.h"

#include <limits>

#include "program/archive.h"

namespace sinew::program {
namespace {

struct TypeInfo {
  ScalarType type;
  std::string_view name;
  size_t size;
  std::optional<DType> dtype;
};
constexpr TypeInfo kTypes[] = {
    {ScalarType::u8, "uint8", 1, DType::u8},
    {ScalarType::i8, "int8", 1, DType::i8},
    {ScalarType::i16, "int16", 2, DType::i16},
    {ScalarType::i32, "int32", 4, DType::i32},
    {ScalarType::i64, "int64", 8, DType::i64},
    {ScalarType::f16, "float16", 2, DType::f16},
    {ScalarType::f32, "float32", 4, DType::f32},
    {ScalarType::f64, "float64", 8, DType::f64},
    {ScalarType::c32, "complex32", 4, std::nullopt},
    {ScalarType::c64, "complex64", 8, std::nullopt},
    {ScalarType::c128, "complex128", 16, std::nullopt},
    {ScalarType::boolean, "bool", 1, DType::boolean},
    {ScalarType::bf16, "bfloat16", 2, DType::bf16},
    {ScalarType::u16, "uint16", 2, std::nullopt},
    {ScalarType::u32, "uint32", 4, std::nullopt},
    {ScalarType::u64, "uint64", 8, std::nullopt},
};

const TypeInfo& type_info(ScalarType type) {
  for (const TypeInfo& info : kTypes) {
    if (info.type == type) return info;
  }
  return kTypes[0];
}

constexpr int64_t kMaxInt64 = std::numeric_limits<int64_t>::max();

// Returns "s77" for "Symbol('s77', positive=True, integer=True)", and "" for any other expression.
std::string single_symbol(std::string_view expression) {
  constexpr std::string_view kBegin = "Symbol('";
  if (!expression.starts_with(kBegin) || !expression.ends_with(')')) return "";
  const size_t end = expression.find('\'', kBegin.size());
  if (end == std::string_view::npos || end == kBegin.size()) return "";
  // The rest holds only assumptions about the symbol: it has no second symbol and no call.
  if (expression.substr(end + 1).find_first_of("'(") != std::string_view::npos) return "";
  return std::string(expression.substr(kBegin.size(), end - kBegin.size()));
}

}  // namespace

std::string_view name_of(ScalarType type) {
  return type_info(type).name;
}
size_t size_of(ScalarType type) {
  return type_info(type).size;
}
std::optional<DType> dtype_of(ScalarType type) {
  return type_info(type).dtype;
}

void Symbols::record_hint(const JsonView& view, const std::string& symbol, int64_t hint) {
  const auto [known, first] = hints_.emplace(symbol, hint);
  if (!first && known->second != hint) {
    view.refuse("PROGRAM_BAD_GRAPH", "gives " + in_quotes(symbol) + " the value " + std::to_string(hint) +
                                         ", but elsewhere its value is " + std::to_string(known->second));
  }
}

ScalarType read_scalar_type(const JsonView& view) {
  const int64_t number = view.integer();
  for (const TypeInfo& info : kTypes) {
    if (static_cast<int64_t>(info.type) == number) return info.type;
  }
  constexpr int64_t kFirstFloat8 = 29, kLastFloat8 = 33;
  if (number >= kFirstFloat8 && number <= kLastFloat8)
    view.refuse("PROGRAM_UNSUPPORTED",
                "is the dtype " + std::to_string(number) + ", a float of 8 bits, which Sinew does not support",
                "export the model in another dtype, for example after .to(torch.bfloat16)");
  view.refuse("PROGRAM_BAD_SCHEMA", "is " + std::to_string(number) + ", which is not a dtype");
}

Layout read_layout(const JsonView& view) {
  const int64_t number = view.integer();
  if (number != static_cast<int64_t>(Layout::strided))
    view.refuse("PROGRAM_UNSUPPORTED",
                "is the layout " + std::to_string(number) + "; Sinew reads only strided tensors (7)",
                "keep sparse and mkldnn tensors out of the model, for example by .to_dense()");
  return Layout::strided;
}

MemoryFormat read_memory_format(const JsonView& view) {
  return static_cast<MemoryFormat>(view.integer(1, 4));
}

Device read_device(const JsonView& view) {
  view.allow({"type", "index"});
  if (const auto index = view.find("index")) index->integer(-1, 1 << 16);
  return {view.get("type").text()};
}

Dim read_sym_int(const JsonView& view, int64_t min, Symbols& symbols) {
  Dim dim;
  const auto [kind, value] = view.single_member();
  if (kind == "as_int") {
    dim.fixed = value.integer(min, kMaxInt64);
    return dim;
  }
  if (kind != "as_expr") view.refuse("PROGRAM_BAD_SCHEMA", "should be as_int or as_expr, but is " + in_quotes(kind));
  value.allow({"expr_str", "hint"});
  dim.expression = value.get("expr_str").text();
  dim.symbol = single_symbol(dim.expression);
  if (const auto hint = value.find("hint")) {
    const auto [hint_kind, number] = hint->single_member();
    if (hint_kind != "as_int") hint->refuse("PROGRAM_BAD_SCHEMA", "should be as_int, but is " + in_quotes(hint_kind));
    dim.hint = number.integer(min, kMaxInt64);
    if (!dim.symbol.empty()) symbols.record_hint(number, dim.symbol, *dim.hint);
  }
  return dim;
}

FullMeta read_tensor_meta(const JsonView& view, Symbols& symbols) {
  view.allow({"dtype", "sizes", "requires_grad", "device", "strides", "storage_offset", "layout"});
  FullMeta full;
  full.meta.dtype = read_scalar_type(view.get("dtype"));
  read_layout(view.get("layout"));
  read_device(view.get("device"));
  full.meta.requires_grad = view.get("requires_grad").boolean();
  const JsonView sizes = view.get("sizes"), strides = view.get("strides");
  for (const Json& size : sizes.array()) full.meta.sizes.push_back(read_sym_int(sizes.of(size), 0, symbols));
  for (const Json& stride : strides.array()) full.strides.push_back(read_sym_int(strides.of(stride), 0, symbols));
  if (full.strides.size() != full.meta.sizes.size()) {
    strides.refuse("PROGRAM_BAD_SCHEMA", "has " + std::to_string(full.strides.size()) + " numbers for " +
                                             std::to_string(full.meta.sizes.size()) + " sizes");
  }
  full.offset = read_sym_int(view.get("storage_offset"), 0, symbols);
  return full;
}

}  // namespace sinew::program
