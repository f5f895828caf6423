#include "registry/weights.h"

#include <gtest/gtest.h>

#include <cmath>

#include "base/faulty_disk.h"
#include "checkpoint/checkpoint.h"

namespace sinew::registry {
namespace {

// A disk with a file that has become shorter since its size was read.
class ShrinkingDisk final : public Disk {
 public:
  ShrinkingDisk(const std::vector<float>& values, uint64_t bytes_lost) : lost_(bytes_lost) {
    checkpoint::write_safetensors(
        disk_, "w", {{"a.b", DType::f32, {static_cast<int64_t>(values.size())}, std::as_bytes(std::span(values))}}, {});
  }
  uint64_t size(const std::string& path) override { return disk_.size(path); }
  size_t read_at(const std::string& path, uint64_t offset, std::span<std::byte> out) override {
    const uint64_t end = disk_.size(path) - lost_;
    const uint64_t left = offset < end ? end - offset : 0;
    return disk_.read_at(path, offset, out.first(std::min<uint64_t>(out.size(), left)));
  }
  std::vector<std::byte> read(const std::string& path) override { return disk_.read(path); }
  std::vector<Entry> list(const std::string& directory) override { return disk_.list(directory); }
  bool exists(const std::string& path) override { return disk_.exists(path); }
  std::unique_ptr<File> create(const std::string& path) override { return disk_.create(path); }
  std::unique_ptr<File> append(const std::string& path) override { return disk_.append(path); }
  void make_directories(const std::string& path) override { disk_.make_directories(path); }
  void make_directory(const std::string& path) override { disk_.make_directory(path); }
  void rename(const std::string& from, const std::string& to) override { disk_.rename(from, to); }
  void symlink(const std::string& target, const std::string& path) override { disk_.symlink(target, path); }
  void remove_file(const std::string& path) override { disk_.remove_file(path); }
  void remove_all(const std::string& path) override { disk_.remove_all(path); }
  void sync_directory(const std::string& path) override { disk_.sync_directory(path); }
  void drop_cache(const std::string& path) override { disk_.drop_cache(path); }

 private:
  FaultyDisk disk_;
  uint64_t lost_;
};

WeightsCheck checked(const std::vector<float>& values, uint64_t bytes_lost = 0) {
  ShrinkingDisk disk(values, bytes_lost);
  return check_weights(disk, "w");
}

TEST(Weights, AFileThatShrinksIsNotCalledInfinite) {
  const WeightsCheck cut = checked({1, 2, 3}, 4);
  EXPECT_NE(cut.whole.find("shorter"), std::string::npos) << cut.whole;
  EXPECT_NE(cut.whole.find("a.b"), std::string::npos) << cut.whole;
  EXPECT_EQ(cut.finite, "not checked");
}

TEST(Weights, AreWholeAndFiniteOrSayWhatIsWrong) {
  EXPECT_EQ(checked({1, 2, 3}).whole, "passed");
  EXPECT_EQ(checked({1, 2, 3}).finite, "passed");
  for (const float wrong : {NAN, INFINITY, -INFINITY}) {
    EXPECT_EQ(checked({1, wrong}).whole, "passed");
    EXPECT_EQ(checked({1, wrong}).finite, "a value of a.b is infinite or NaN");
  }
}

}  // namespace
}  // namespace sinew::registry
