// For tests: makes sample states to save, and compares a loaded state with a sample, byte by byte.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <string>
#include <vector>

#include "base/random.h"
#include "checkpoint/checkpoint.h"

namespace sinew::checkpoint {

inline constexpr DType kAllDTypes[] = {DType::boolean, DType::u8,  DType::i8,   DType::i16, DType::i32,
                                       DType::i64,     DType::f16, DType::bf16, DType::f32, DType::f64};

inline std::vector<std::byte> random_bytes(RandomKey key, size_t size) {
  std::vector<uint32_t> words(size / 4 + 1);
  fill_random_bits(key, words);
  const auto bytes = std::as_bytes(std::span(words)).first(size);
  return {bytes.begin(), bytes.end()};
}

inline std::span<const std::byte> text_bytes(std::string_view text) {
  return std::as_bytes(std::span(text.data(), text.size()));
}

// Tensors that own their bytes.
class Tensors {
 public:
  void add(std::string name, DType dtype, Shape shape, RandomKey key) {
    const size_t size = static_cast<size_t>(element_count(shape)) * size_of(dtype);
    bytes_.push_back(std::make_unique<std::vector<std::byte>>(random_bytes(key, size)));
    borrowed_.push_back({std::move(name), dtype, std::move(shape), *bytes_.back()});
  }
  const std::vector<TensorBytes>& borrowed() const { return borrowed_; }

 private:
  std::vector<std::unique_ptr<std::vector<std::byte>>> bytes_;
  std::vector<TensorBytes> borrowed_;
};

// The state of a step. It is a function of the step and of `big` (the size of one more tensor), so a test can check any
// loaded state.
class Sample {
 public:
  explicit Sample(int64_t step, int64_t big = 0) {
    const RandomKey key = random_key({static_cast<uint64_t>(step), static_cast<uint64_t>(big)});
    for (const char* part : {"model", "optimizer"}) {
      Tensors& tensors = parts_[part];
      for (const DType dtype : kAllDTypes) {
        tensors.add("layer." + std::string(name_of(dtype)), dtype, {3, 5}, derive(derive(key, part), name_of(dtype)));
      }
      tensors.add("scalar", DType::i64, {}, derive(derive(key, part), "scalar"));
      tensors.add("empty", DType::f32, {0, 4}, key);
      if (big > 0) tensors.add("big", DType::u8, {big}, derive(derive(key, part), "big"));
      snapshot_.parts[part] = tensors.borrowed();
    }
    snapshot_.step = Step(step);
    snapshot_.state_json = "{\"cursor\": " + std::to_string(step) + "}";
    snapshot_.digest = digest_of(std::string_view(snapshot_.state_json));
  }
  const Snapshot& snapshot() const { return snapshot_; }

  OwnedSnapshot owned() const {
    OwnedSnapshot owned{snapshot_.step, {}, snapshot_.state_json, snapshot_.digest};
    for (const auto& [part, tensors] : snapshot_.parts) {
      for (const TensorBytes& tensor : tensors) {
        Buffer buffer(tensor.bytes.size());
        std::copy(tensor.bytes.begin(), tensor.bytes.end(), buffer.data());
        owned.parts[part].emplace_back(TensorEntry{tensor.name, tensor.dtype, tensor.shape, 0, 0}, std::move(buffer));
      }
    }
    return owned;
  }

  bool equals(const Loaded& loaded) const {
    if (loaded.step != snapshot_.step || loaded.digest != snapshot_.digest ||
        loaded.state_json != snapshot_.state_json) {
      return false;
    }
    if (loaded.parts.size() != snapshot_.parts.size()) return false;
    for (const auto& [part, tensors] : snapshot_.parts) {
      const auto at = loaded.parts.find(part);
      if (at == loaded.parts.end() || at->second.tensors.size() != tensors.size()) return false;
      for (const TensorBytes& tensor : tensors) {
        const auto found = at->second.tensors.find(tensor.name);
        if (found == at->second.tensors.end() || !same(found->second, tensor)) return false;
      }
    }
    return true;
  }

 private:
  static bool same(const Array& array, const TensorBytes& tensor) {
    return array.dtype == tensor.dtype && array.shape == tensor.shape && array.bytes.size() == tensor.bytes.size() &&
           std::equal(tensor.bytes.begin(), tensor.bytes.end(), array.bytes.data());
  }
  std::map<std::string, Tensors> parts_;
  Snapshot snapshot_;
};

inline const std::string kRoot = "checkpoints";
inline constexpr double kLong = 300;  // seconds; a test reaches this timeout only if something hangs

inline void save_and_wait(Writer& writer, int64_t step) {
  ASSERT_TRUE(writer.submit(Sample(step).owned()));
  ASSERT_TRUE(writer.wait(kLong));
}

}  // namespace sinew::checkpoint
