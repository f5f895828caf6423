// Converts constant arguments to values of the boxed calling convention. The type in the operator's schema decides how.
#include <ATen/ScalarOps.h>
#include <torch/torch.h>

#include <algorithm>

#include "base/error.h"
#include "model/program_plan.h"

namespace sinew::model {
namespace {

using program::Argument;

at::MemoryFormat memory_format(program::MemoryFormat format) {
  switch (format) {
    case program::MemoryFormat::contiguous: return at::MemoryFormat::Contiguous;
    case program::MemoryFormat::channels_last: return at::MemoryFormat::ChannelsLast;
    case program::MemoryFormat::channels_last_3d: return at::MemoryFormat::ChannelsLast3d;
    case program::MemoryFormat::preserve: return at::MemoryFormat::Preserve;
  }
  throw Error("MODEL_OPERATOR_UNSUPPORTED", "an argument is an unknown memory format", "");
}

template <typename T>
c10::IValue list_of(const program::List& list) {
  c10::List<T> values;
  for (const Argument& item : list.items) {
    if (const T* value = std::get_if<T>(&item.value)) {
      values.push_back(*value);
    } else if constexpr (std::is_same_v<T, double>) {
      const auto* whole = std::get_if<int64_t>(&item.value);
      if (!whole) throw Error("MODEL_OPERATOR_UNSUPPORTED", "a list of numbers contains another value", "");
      values.push_back(static_cast<double>(*whole));
    } else {
      throw Error("MODEL_OPERATOR_UNSUPPORTED", "a list contains a value of another type", "");
    }
  }
  return values;
}

bool wants_reals(const c10::Type& type) {
  const auto* list = type.castRaw<c10::ListType>();
  return list && list->getElementType()->kind() == c10::TypeKind::FloatType;
}

c10::IValue list_constant(const program::List& list, const c10::Type& type) {
  switch (list.of) {
    case program::ListOf::ints: return wants_reals(type) ? list_of<double>(list) : list_of<int64_t>(list);
    case program::ListOf::floats: return list_of<double>(list);
    case program::ListOf::bools: return list_of<bool>(list);
    case program::ListOf::strings: return list_of<std::string>(list);
    case program::ListOf::tensors: return c10::List<at::Tensor>();
    case program::ListOf::optional_tensors: {
      c10::List<std::optional<at::Tensor>> none;
      for (size_t i = 0; i < list.items.size(); ++i) none.push_back(std::nullopt);
      return none;
    }
    case program::ListOf::lists: break;
  }
  throw Error("MODEL_OPERATOR_UNSUPPORTED", "an argument is a list of lists, which is not supported", "");
}

// Converts a number if the schema asks for a tensor (`x + 1`), and a whole number if the schema asks for a real number.
c10::IValue number(const c10::Scalar& value, c10::TypeKind kind) {
  if (kind == c10::TypeKind::TensorType) return at::native::wrapped_scalar_tensor(value);
  if (kind == c10::TypeKind::FloatType) return value.toDouble();
  return value;
}

}  // namespace

at::ScalarType scalar_type(program::ScalarType type) {
  using program::ScalarType;
  switch (type) {
    case ScalarType::u8: return at::kByte;
    case ScalarType::i8: return at::kChar;
    case ScalarType::i16: return at::kShort;
    case ScalarType::i32: return at::kInt;
    case ScalarType::i64: return at::kLong;
    case ScalarType::f16: return at::kHalf;
    case ScalarType::f32: return at::kFloat;
    case ScalarType::f64: return at::kDouble;
    case ScalarType::c32: return at::kComplexHalf;
    case ScalarType::c64: return at::kComplexFloat;
    case ScalarType::c128: return at::kComplexDouble;
    case ScalarType::boolean: return at::kBool;
    case ScalarType::bf16: return at::kBFloat16;
    case ScalarType::u16: return at::kUInt16;
    case ScalarType::u32: return at::kUInt32;
    case ScalarType::u64: return at::kUInt64;
  }
  throw Error("MODEL_OPERATOR_UNSUPPORTED", "an argument is an unknown dtype", "");
}

c10::IValue constant_of(const Argument& argument, const c10::Type& declared) {
  const c10::Type* type = &declared;
  c10::TypePtr inner;
  if (const auto* optional = declared.castRaw<c10::OptionalType>()) {
    inner = optional->getElementType();
    type = inner.get();
  }
  const c10::TypeKind kind = type->kind();
  return std::visit(
      [&](const auto& value) -> c10::IValue {
        using T = std::decay_t<decltype(value)>;
        if constexpr (std::is_same_v<T, program::None>) {
          // An optional argument of type Tensor? takes an undefined tensor rather than None; libtorch understands both.
          return kind == c10::TypeKind::TensorType && type == &declared ? c10::IValue(at::Tensor()) : c10::IValue();
        } else if constexpr (std::is_same_v<T, int64_t> || std::is_same_v<T, double> || std::is_same_v<T, bool>) {
          return number(value, kind);
        } else if constexpr (std::is_same_v<T, program::Complex>) {
          return number(c10::complex<double>(value.real, value.imag), kind);
        } else if constexpr (std::is_same_v<T, std::string>) {
          return value;
        } else if constexpr (std::is_same_v<T, program::ScalarType>) {
          return static_cast<int64_t>(scalar_type(value));
        } else if constexpr (std::is_same_v<T, program::MemoryFormat>) {
          return static_cast<int64_t>(memory_format(value));
        } else if constexpr (std::is_same_v<T, program::Layout>) {
          return static_cast<int64_t>(at::kStrided);
        } else if constexpr (std::is_same_v<T, program::Device>) {
          return at::Device(at::kCPU);
        } else if constexpr (std::is_same_v<T, program::List>) {
          return list_constant(value, *type);
        } else {
          throw Error("MODEL_OPERATOR_UNSUPPORTED", "an argument is of a kind that operators do not take", "");
        }
      },
      argument.value);
}

}  // namespace sinew::model
