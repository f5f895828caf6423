#include "distribute/small_sums.h"

#include <cstring>

#include "base/error.h"

namespace sinew::distribute {
namespace {

Error invalid(const std::string& why) {
  return Error("GROUP_SUMS_INVALID", "the small sums that another member sent cannot be read: " + why,
               "run the same version of sinew on all members");
}

class Writer {
 public:
  template <typename T>
  void put(const T& value) {
    bytes_.append(reinterpret_cast<const char*>(&value), sizeof value);
  }
  template <typename T>
  void put_list(const T* values, size_t count) {
    put<uint64_t>(count);
    bytes_.append(reinterpret_cast<const char*>(values), count * sizeof(T));
  }
  std::string take() { return std::move(bytes_); }

 private:
  std::string bytes_;
};

class Reader {
 public:
  explicit Reader(std::string_view bytes) : bytes_(bytes) {}
  template <typename T>
  T get() {
    T value;
    std::memcpy(&value, piece(sizeof value).data(), sizeof value);
    return value;
  }
  template <typename T>
  std::vector<T> get_list() {
    const auto count = get<uint64_t>();
    if (count > bytes_.size() / sizeof(T)) throw invalid("they are cut short");
    std::vector<T> values(count);
    if (count > 0) std::memcpy(values.data(), piece(count * sizeof(T)).data(), count * sizeof(T));
    return values;
  }
  bool empty() const { return bytes_.empty(); }

 private:
  std::string_view piece(size_t size) {
    if (size > bytes_.size()) throw invalid("they are cut short");
    const std::string_view found = bytes_.substr(0, size);
    bytes_.remove_prefix(size);
    return found;
  }
  std::string_view bytes_;
};

enum class Kind : uint8_t { absent, floating, integer };

void put_buffer(Writer& out, const torch::Tensor& tensor) {
  if (!tensor.defined()) return out.put(Kind::absent);
  const torch::Tensor values =
      tensor.to(torch::kCPU, tensor.is_floating_point() ? torch::kFloat64 : torch::kInt64).contiguous();
  const auto count = static_cast<size_t>(values.numel());
  out.put(tensor.is_floating_point() ? Kind::floating : Kind::integer);
  out.put(tensor.is_floating_point() ? torch::kFloat64 : tensor.scalar_type());
  out.put_list(values.sizes().data(), values.sizes().size());
  if (tensor.is_floating_point()) {
    out.put_list(values.const_data_ptr<double>(), count);
  } else {
    out.put_list(values.const_data_ptr<int64_t>(), count);
  }
}

template <typename T>
torch::Tensor tensor_of(std::vector<T> values, const std::vector<int64_t>& shape, torch::ScalarType type) {
  if (static_cast<int64_t>(values.size()) != c10::multiply_integers(shape))
    throw invalid("a buffer has the wrong size");
  return torch::tensor(values, torch::TensorOptions().dtype(torch::CppTypeToScalarType<T>::value))
      .reshape(shape)
      .to(type);
}

torch::Tensor get_buffer(Reader& in) {
  const auto kind = in.get<Kind>();
  if (kind == Kind::absent) return {};
  const auto type = in.get<torch::ScalarType>();
  const auto shape = in.get_list<int64_t>();
  if (kind == Kind::floating) return tensor_of(in.get_list<double>(), shape, torch::kFloat64);
  return tensor_of(in.get_list<int64_t>(), shape, type);
}

}  // namespace

std::string encoded(const train::Contribution& contribution) {
  Writer out;
  out.put(contribution.loss);
  out.put(contribution.weight);
  out.put(contribution.samples);
  out.put<uint8_t>(contribution.buffers_conflict ? 1 : 0);
  out.put_list(contribution.counts.data(), contribution.counts.size());
  out.put_list(contribution.sums.data(), contribution.sums.size());
  out.put_list(contribution.scores.data(), contribution.scores.size());
  out.put_list(contribution.not_decoded.data(), contribution.not_decoded.size());
  out.put<uint64_t>(contribution.buffers.size());
  for (const torch::Tensor& buffer : contribution.buffers) put_buffer(out, buffer);
  return out.take();
}

train::Contribution decoded(std::string_view bytes) {
  Reader in(bytes);
  train::Contribution contribution;
  contribution.loss = in.get<double>();
  contribution.weight = in.get<double>();
  contribution.samples = in.get<int64_t>();
  contribution.buffers_conflict = in.get<uint8_t>() != 0;
  contribution.counts = in.get_list<int64_t>();
  contribution.sums = in.get_list<double>();
  contribution.scores = in.get_list<float>();
  contribution.not_decoded = in.get_list<int64_t>();
  const auto buffers = in.get<uint64_t>();
  for (uint64_t i = 0; i < buffers; ++i) contribution.buffers.push_back(get_buffer(in));
  if (!in.empty()) throw invalid("bytes are left over");
  return contribution;
}

std::string merged(std::string_view left, std::string_view right) {
  const torch::NoGradGuard no_grad;
  train::Contribution sum = decoded(left);
  train::add(sum, decoded(right));
  return encoded(sum);
}

}  // namespace sinew::distribute
