#include "program/meta.h"

#include <limits>

#include "program/archive.h"

namespace sinew::program {
namespace {

struct Facts {
  ScalarType type;
  std::string_view name;
  size_t size;
  std::optional<DType> dtype;
};
constexpr Facts kTypes[] = {
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

const Facts& facts_of(ScalarType type) {
  for (const Facts& facts : kTypes) {
    if (facts.type == type) return facts;
  }
  return kTypes[0];
}

constexpr int64_t kMost = std::numeric_limits<int64_t>::max();

// "s77" of "Symbol('s77', positive=True, integer=True)"; nothing of any other expression.
std::string lone_symbol(std::string_view expression) {
  constexpr std::string_view kBegin = "Symbol('";
  if (!expression.starts_with(kBegin) || !expression.ends_with(')')) return "";
  const size_t end = expression.find('\'', kBegin.size());
  if (end == std::string_view::npos || end == kBegin.size()) return "";
  // Behind the name only facts about it: no second symbol, no call.
  if (expression.substr(end + 1).find_first_of("'(") != std::string_view::npos) return "";
  return std::string(expression.substr(kBegin.size(), end - kBegin.size()));
}

}  // namespace

std::string_view name_of(ScalarType type) {
  return facts_of(type).name;
}
size_t size_of(ScalarType type) {
  return facts_of(type).size;
}
std::optional<DType> dtype_of(ScalarType type) {
  return facts_of(type).dtype;
}

void Symbols::saw(const Spot& spot, const std::string& symbol, int64_t hint) {
  const auto [known, first] = hints_.emplace(symbol, hint);
  if (!first && known->second != hint) {
    spot.refuse("gives " + shown(symbol) + " the number " + std::to_string(hint) + ", but elsewhere it has " +
                std::to_string(known->second));
  }
}

ScalarType read_scalar_type(const Spot& spot) {
  const int64_t number = spot.integer();
  for (const Facts& facts : kTypes) {
    if (static_cast<int64_t>(facts.type) == number) return facts.type;
  }
  constexpr int64_t kFirstFloat8 = 29, kLastFloat8 = 33;
  if (number >= kFirstFloat8 && number <= kLastFloat8)
    spot.refuse("is the dtype " + std::to_string(number) + ", a float of 8 bits, which Sinew does not have",
                "export the model in another dtype, for example after .to(torch.bfloat16)");
  spot.refuse("is " + std::to_string(number) + ", which is no dtype");
}

Layout read_layout(const Spot& spot) {
  const int64_t number = spot.integer();
  if (number != static_cast<int64_t>(Layout::strided))
    spot.refuse("is the layout " + std::to_string(number) + "; only strided tensors (7) are read",
                "keep sparse and mkldnn tensors out of the model, for example by .to_dense()");
  return Layout::strided;
}

MemoryFormat read_memory_format(const Spot& spot) {
  return static_cast<MemoryFormat>(spot.integer(1, 4));
}

Device read_device(const Spot& spot) {
  spot.allow({"type", "index"});
  if (const auto index = spot.find("index")) index->integer(-1, 1 << 16);
  return {spot.get("type").text()};
}

Dim read_sym_int(const Spot& spot, int64_t least, Symbols& symbols) {
  Dim dim;
  const auto [kind, value] = spot.only();
  if (kind == "as_int") {
    dim.fixed = value.integer(least, kMost);
    return dim;
  }
  if (kind != "as_expr") spot.refuse("is neither as_int nor as_expr, but " + shown(kind));
  value.allow({"expr_str", "hint"});
  dim.expression = value.get("expr_str").text();
  dim.symbol = lone_symbol(dim.expression);
  if (const auto hint = value.find("hint")) {
    const auto [hint_kind, number] = hint->only();
    if (hint_kind != "as_int") hint->refuse("should be as_int, but is " + shown(hint_kind));
    dim.hint = number.integer(least, kMost);
    if (!dim.symbol.empty()) symbols.saw(number, dim.symbol, *dim.hint);
  }
  return dim;
}

FullMeta read_tensor_meta(const Spot& spot, Symbols& symbols) {
  spot.allow({"dtype", "sizes", "requires_grad", "device", "strides", "storage_offset", "layout"});
  FullMeta full;
  full.meta.dtype = read_scalar_type(spot.get("dtype"));
  read_layout(spot.get("layout"));
  read_device(spot.get("device"));
  full.meta.requires_grad = spot.get("requires_grad").boolean();
  const Spot sizes = spot.get("sizes"), strides = spot.get("strides");
  for (const Json& size : sizes.array()) full.meta.sizes.push_back(read_sym_int(sizes.of(size), 0, symbols));
  for (const Json& stride : strides.array()) full.strides.push_back(read_sym_int(strides.of(stride), 0, symbols));
  if (full.strides.size() != full.meta.sizes.size()) {
    strides.refuse("has " + std::to_string(full.strides.size()) + " numbers for " +
                   std::to_string(full.meta.sizes.size()) + " sizes");
  }
  full.offset = read_sym_int(spot.get("storage_offset"), 0, symbols);
  return full;
}

}  // namespace sinew::program
