#include <bit>
#include <cstring>

#include "base/error.h"
#include "onnx/onnx.h"

namespace sinew::onnx {
namespace {

static_assert(std::endian::native == std::endian::little, "TensorProto.raw_data is little endian");

template <typename Value>
std::string bytes_from(const std::vector<Value>& values) {
  return {reinterpret_cast<const char*>(values.data()), values.size() * sizeof(Value)};
}

}  // namespace

Element element_of(DType dtype) {
  switch (dtype) {
    case DType::boolean: return Element::boolean;
    case DType::u8: return Element::u8;
    case DType::i8: return Element::i8;
    case DType::i16: return Element::i16;
    case DType::i32: return Element::i32;
    case DType::i64: return Element::i64;
    case DType::f16: return Element::f16;
    case DType::bf16: return Element::bf16;
    case DType::f32: return Element::f32;
    case DType::f64: break;
  }
  return Element::f64;
}

std::string_view name_of(Element element) {
  switch (element) {
    case Element::f32: return "float32";
    case Element::u8: return "uint8";
    case Element::i8: return "int8";
    case Element::i16: return "int16";
    case Element::i32: return "int32";
    case Element::i64: return "int64";
    case Element::text: return "string";
    case Element::boolean: return "bool";
    case Element::f16: return "float16";
    case Element::bf16: return "bfloat16";
    case Element::f64: break;
  }
  return "float64";
}

Constant floats(const Shape& shape, const std::vector<float>& values) {
  return {Element::f32, shape, bytes_from(values), {}};
}
Constant doubles(const Shape& shape, const std::vector<double>& values) {
  return {Element::f64, shape, bytes_from(values), {}};
}
Constant integers(const Shape& shape, const std::vector<int64_t>& values) {
  return {Element::i64, shape, bytes_from(values), {}};
}
Constant texts(const Shape& shape, std::vector<std::string> values) {
  return {Element::text, shape, {}, std::move(values)};
}

std::string Builder::fresh(const std::string& name) {
  std::string unused = name;
  while (!used_.insert(unused).second) unused = name + "/" + std::to_string(++count_);
  return unused;
}

std::string Builder::input(const std::string& name, Element element, const Shape& sample, const std::string& help) {
  if (name.empty() || !used_.insert(name).second)
    throw Error("EXPORT_UNSUPPORTED", "ONNX needs another name for the input '" + name + "'",
                "rename the column and train again, or export with --to safetensors");
  model_.inputs.push_back({name, element, sample, help});
  return name;
}

std::string Builder::constant(Constant constant) {
  return weight("constant/" + std::to_string(++count_), std::move(constant));
}

std::string Builder::weight(const std::string& name, Constant constant) {
  std::string unused = fresh(name);
  model_.constants.emplace_back(unused, std::move(constant));
  return unused;
}

std::string Builder::add(const std::string& op, std::vector<std::string> inputs, std::vector<Attribute> attributes,
                         const std::string& domain) {
  std::string made = fresh(op + "/" + std::to_string(++count_));
  model_.nodes.push_back({op, domain, std::move(inputs), {made}, std::move(attributes)});
  return made;
}

std::string Builder::cast(const std::string& value, Element element) {
  return add("Cast", {value}, {{"to", static_cast<int64_t>(element)}});
}

std::string Builder::output(const std::string& name, const std::string& value, Element element, const Shape& sample,
                            const std::string& help) {
  std::string unused = name;
  while (!used_.insert(unused).second) unused += "_";
  model_.nodes.push_back({"Identity", "", {value}, {unused}, {}});
  model_.outputs.push_back({unused, element, sample, help});
  return unused;
}

}  // namespace sinew::onnx
