// Replaces the CPU's in-place random kernels with counter-based ones.
//
// Dropout and similar operators take no generator: they draw from the default generator, which all threads share. So
// this file replaces kernels. Dropout, scaled-dot-product attention, LSTM and encoder layers all call these in-place
// kernels.
#include <ATen/Dispatch.h>
#include <ATen/core/dispatch/Dispatcher.h>
#include <c10/util/Logging.h>
#include <torch/library.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <numbers>
#include <set>
#include <span>

#include "base/check.h"
#include "model/model.h"
#include "model/vision_kernels.h"

C10_DECLARE_int(caffe2_log_level);

namespace sinew::model {
namespace {

thread_local RandomKey scope_key;
thread_local uint64_t scope_calls = 0;
thread_local bool scope_active = false;

RandomKey next_call_key() {
  TORCH_CHECK(scope_active, "a random operator was called outside a keyed scope");
  return derive(scope_key, scope_calls++);
}

// The kernels make one or two random words for each element of a tensor. They work in chunks of this many elements, so
// that the words of a chunk stay in the cache.
constexpr int64_t kPiece = 4096;

// Calls fill(words, first, count) for consecutive chunks of a tensor, with `words_per_element` words for each element.
template <typename Fill>
void in_pieces(int64_t elements, int words_per_element, Fill fill) {
  const RandomKey key = next_call_key();
  std::vector<uint32_t> words(static_cast<size_t>(std::min(kPiece, elements) * words_per_element));
  for (int64_t first = 0, piece = 0; first < elements; first += kPiece, ++piece) {
    const int64_t count = std::min(kPiece, elements - first);
    fill_random_bits(derive(key, static_cast<uint64_t>(piece)),
                     std::span(words).first(static_cast<size_t>(count * words_per_element)));
    fill(words.data(), first, count);
  }
}

// Returns a number in [0, 1) with 24 random bits, exact in float32.
float unit(uint32_t word) {
  return static_cast<float>(word >> 8) * 0x1.0p-24F;
}
double unit(uint32_t high, uint32_t low) {
  return static_cast<double>(((static_cast<uint64_t>(high) << 32) | low) >> 11) * 0x1.0p-53;
}

// Calls `fill(float* out)` on the memory of `self` if that is contiguous float32. Otherwise `fill` writes to a
// temporary tensor, which is then copied to `self`.
template <typename Fill>
at::Tensor& fill_floats(at::Tensor& self, Fill fill) {
  if (self.numel() == 0) return self;
  if (self.scalar_type() == at::kFloat && self.is_contiguous()) {
    fill(self.mutable_data_ptr<float>());
    return self;
  }
  const at::Tensor dense =
      at::empty(self.sizes(), self.options().dtype(at::kFloat).memory_format(at::MemoryFormat::Contiguous));
  fill(dense.mutable_data_ptr<float>());
  return self.copy_(dense);
}

at::Tensor& keyed_bernoulli(at::Tensor& self, double p, std::optional<at::Generator>) {
  TORCH_CHECK(p >= 0 && p <= 1, "bernoulli_ expects p in [0, 1], got ", p);
  // The result is 1 if word < p * 2^32, hence always if p is 1.
  const auto threshold = static_cast<uint64_t>(std::ldexp(p, 32));
  return fill_floats(self, [&](float* out) {
    in_pieces(self.numel(), 1, [&](const uint32_t* words, int64_t first, int64_t count) {
      for (int64_t i = 0; i < count; ++i) out[first + i] = words[i] < threshold ? 1.0F : 0.0F;
    });
  });
}

at::Tensor& keyed_bernoulli_tensor(at::Tensor& self, const at::Tensor& p, std::optional<at::Generator>) {
  const at::Tensor limits = p.expand(self.sizes()).to(at::kFloat).contiguous();
  return fill_floats(self, [&](float* out) {
    const float* limit = limits.const_data_ptr<float>();
    in_pieces(self.numel(), 1, [&](const uint32_t* words, int64_t first, int64_t count) {
      for (int64_t i = 0; i < count; ++i) out[first + i] = unit(words[i]) < limit[first + i] ? 1.0F : 0.0F;
    });
  });
}

at::Tensor& keyed_uniform(at::Tensor& self, double from, double to, std::optional<at::Generator>) {
  const auto low = static_cast<float>(from), width = static_cast<float>(to - from);
  return fill_floats(self, [&](float* out) {
    in_pieces(self.numel(), 1, [&](const uint32_t* words, int64_t first, int64_t count) {
      for (int64_t i = 0; i < count; ++i) out[first + i] = low + width * unit(words[i]);
    });
  });
}

at::Tensor& keyed_normal(at::Tensor& self, double mean, double deviation, std::optional<at::Generator>) {
  return fill_floats(self, [&](float* out) {
    in_pieces(self.numel(), 2, [&](const uint32_t* words, int64_t first, int64_t count) {
      for (int64_t i = 0; i < count;
           ++i) {  // Box-Muller; drops one number of each pair, so that no chunk ends within a pair
        const double radius = std::sqrt(-2.0 * std::log(1.0 - unit(words[2 * i], 0)));
        const double angle = 2.0 * std::numbers::pi * unit(words[2 * i + 1], 0);
        out[first + i] = static_cast<float>(mean + deviation * radius * std::cos(angle));
      }
    });
  });
}

at::Tensor& keyed_exponential(at::Tensor& self, double lambda, std::optional<at::Generator>) {
  return fill_floats(self, [&](float* out) {
    in_pieces(self.numel(), 2, [&](const uint32_t* words, int64_t first, int64_t count) {
      for (int64_t i = 0; i < count; ++i) {
        out[first + i] = static_cast<float>(-std::log(1.0 - unit(words[2 * i], words[2 * i + 1])) / lambda);
      }
    });
  });
}

// Fills `self` with integers in [from, from + range). The bias of the multiply-shift method is below 2^-32 for ranges
// below 2^32. Larger ranges have a larger bias, which is tolerated.
at::Tensor& fill_integers(at::Tensor& self, int64_t from, uint64_t range) {
  if (self.numel() == 0) return self;
  const at::Tensor wide =
      at::empty(self.sizes(), self.options().dtype(at::kLong).memory_format(at::MemoryFormat::Contiguous));
  auto* out = wide.mutable_data_ptr<int64_t>();
  in_pieces(self.numel(), 2, [&](const uint32_t* words, int64_t first, int64_t count) {
    for (int64_t i = 0; i < count; ++i) {
      const uint64_t bits = (static_cast<uint64_t>(words[2 * i]) << 32) | words[2 * i + 1];
      const auto scaled = static_cast<uint64_t>((static_cast<unsigned __int128>(bits) * range) >> 64);
      out[first + i] = static_cast<int64_t>(static_cast<uint64_t>(from) + scaled);
    }
  });
  return self.copy_(wide);
}

// Returns the size of the range that PyTorch documents for random_() without bounds: the integers from 0 on that the
// type represents without gaps.
uint64_t natural_range(at::ScalarType type) {
  switch (type) {
    case at::kFloat: return (1ULL << 24) + 1;
    case at::kDouble: return (1ULL << 53) + 1;
    case at::kHalf: return (1ULL << 11) + 1;
    case at::kBFloat16: return (1ULL << 8) + 1;
    case at::kBool: return 2;
    case at::kByte: return 256;
    case at::kChar: return 128;
    case at::kShort: return 1ULL << 15;
    case at::kInt: return 1ULL << 31;
    default: return 1ULL << 63;
  }
}

at::Tensor& keyed_random(at::Tensor& self, std::optional<at::Generator>) {
  return fill_integers(self, 0, natural_range(self.scalar_type()));
}
at::Tensor& keyed_random_from(at::Tensor& self, int64_t from, std::optional<int64_t> to, std::optional<at::Generator>) {
  const uint64_t range = to ? static_cast<uint64_t>(*to) - static_cast<uint64_t>(from)
                            : natural_range(self.scalar_type()) - static_cast<uint64_t>(from);
  TORCH_CHECK(!to || *to > from, "random_ expects from < to, got ", from, " and ", to.value_or(0));
  return fill_integers(self, from, range);
}
at::Tensor& keyed_random_to(at::Tensor& self, int64_t to, std::optional<at::Generator>) {
  return keyed_random_from(self, 0, to, std::nullopt);
}

at::Tensor& keyed_randperm(int64_t n, std::optional<at::Generator>, at::Tensor& out) {
  TORCH_CHECK(n >= 0, "randperm expects n >= 0, got ", n);
  at::Tensor order = at::empty({n}, at::kLong);
  auto* values = order.mutable_data_ptr<int64_t>();
  RandomStream stream(next_call_key());
  for (int64_t i = 0; i < n; ++i) {  // Fisher-Yates, inside out
    const auto j = static_cast<int64_t>(stream.below(static_cast<uint64_t>(i) + 1));
    if (j != i) values[i] = values[j];
    values[j] = i;
  }
  out.resize_({n});
  return out.copy_(order);
}

// Random operators that have a CPU kernel, but need no replacement: they draw no numbers, or they call a replaced
// kernel.
constexpr std::array kAskReplaced = {"aten::native_dropout", "aten::bernoulli.out", "aten::_fused_sdp_choice",
                                     "aten::_scaled_dot_product_flash_attention_for_cpu"};

constexpr const char* kWhyRefused =
    " draws from the process's only generator in the order of the calls, so with several lanes or workers its numbers "
    "would not repeat. Build it from rand, randn, bernoulli, exponential_ or randperm";

void refuse(const c10::OperatorHandle& op, torch::jit::Stack*) {
  const std::string& name = op.schema().name();
  TORCH_CHECK(false, name.substr(name.find("::") + 2), kWhyRefused);
}

std::set<std::string>& refused() {
  static std::set<std::string> names;
  return names;
}

// Makes every other random operator of the CPU throw, because its result would depend on which lane called first.
void refuse_the_rest(torch::Library& library, const std::vector<std::string>& replaced) {
  auto& dispatcher = c10::Dispatcher::singleton();
  for (const c10::OperatorName& name : dispatcher.getAllOpNames()) {
    const auto op = dispatcher.findSchema(name);
    if (name.getNamespace() != "aten" || !op || !op->hasTag(at::Tag::nondeterministic_seeded)) continue;
    if (!op->hasKernelForDispatchKey(c10::DispatchKey::CPU)) continue;
    const std::string full = c10::toString(name);
    const bool keyed = std::ranges::find(replaced, full.substr(6)) != replaced.end() ||
                       std::ranges::find(kAskReplaced, full) != kAskReplaced.end();
    if (keyed) continue;
    library.impl(full.c_str(), torch::CppFunction::makeFromBoxedFunction<&refuse>());
    refused().insert(full);
  }
}

}  // namespace

void install_keyed_random() {
  static const bool installed = [] {
    // libtorch logs a warning for each replaced kernel. The replacements are intended, so the log level hides the
    // warnings.
    const int level = FLAGS_caffe2_log_level;
    FLAGS_caffe2_log_level = 3;
    // Leaked on purpose: if exit destroyed the library, the original kernels would come back under running threads.
    auto* library = new torch::Library(torch::Library::IMPL, "aten", c10::DispatchKey::CPU, __FILE__, __LINE__);
    std::vector<std::string> replaced;
    const auto replace = [&](const char* name, auto kernel) {
      library->impl(name, kernel);
      replaced.emplace_back(name);
    };
    replace("bernoulli_.float", TORCH_FN(keyed_bernoulli));
    replace("bernoulli_.Tensor", TORCH_FN(keyed_bernoulli_tensor));
    replace("uniform_", TORCH_FN(keyed_uniform));
    replace("normal_", TORCH_FN(keyed_normal));
    replace("exponential_", TORCH_FN(keyed_exponential));
    replace("random_", TORCH_FN(keyed_random));
    replace("random_.from", TORCH_FN(keyed_random_from));
    replace("random_.to", TORCH_FN(keyed_random_to));
    replace("randperm.generator_out", TORCH_FN(keyed_randperm));
    refuse_the_rest(*library, replaced);
    install_vision_kernels(*library);
    FLAGS_caffe2_log_level = level;
    return true;
  }();
  SINEW_CHECK(installed);
}

std::string why_refused(const std::string& operator_name) {
  if (!refused().contains(operator_name)) return "";
  return operator_name.substr(operator_name.find("::") + 2) + kWhyRefused;
}

RandomScope::RandomScope(RandomKey key)
    : saved_key_(scope_key), saved_calls_(scope_calls), saved_active_(scope_active) {
  scope_key = key;
  scope_calls = 0;
  scope_active = true;
}

RandomScope::~RandomScope() {
  scope_key = saved_key_;
  scope_calls = saved_calls_;
  scope_active = saved_active_;
}

}  // namespace sinew::model
