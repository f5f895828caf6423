#include "base/array.h"

#include <gtest/gtest.h>

#include <limits>
#include <new>

namespace sinew {
namespace {

constexpr int64_t kMost = std::numeric_limits<int64_t>::max();

TEST(Array, CountsItsElements) {
  EXPECT_EQ(element_count(Shape{}), 1);
  EXPECT_EQ(element_count(Shape{2, 3, 4}), 24);
  EXPECT_EQ(element_count(Shape{kMost}), kMost);
  EXPECT_EQ(element_count(Shape{kMost, kMost, 0}), 0);
  EXPECT_EQ(element_count(Shape{0, kMost, kMost}), 0);
}

// 2^32 x 2^32 wraps around to 0, and -1 to the largest number of bytes.
TEST(Array, ACountThatWouldWrapAroundIsRefused) {
  const int64_t half = int64_t{1} << 32;
  EXPECT_THROW(element_count(Shape{half, half}), std::bad_array_new_length);
  EXPECT_THROW(element_count(Shape{3, kMost}), std::bad_array_new_length);
  EXPECT_THROW(element_count(Shape{-1}), std::bad_array_new_length);
  EXPECT_THROW(element_count(Shape{0, -1}), std::bad_array_new_length);
  EXPECT_THROW(element_count(Shape{-2, -3}), std::bad_array_new_length);
}

TEST(Array, HasTheBytesOfItsElementsOrDoesNotExist) {
  EXPECT_EQ(Array(DType::i64, {3, 5}).bytes.size(), 120U);
  EXPECT_EQ(Array(DType::f32, {0, 5}).bytes.size(), 0U);
  EXPECT_THROW(Array(DType::i64, {int64_t{1} << 61}), std::bad_array_new_length);  // 2^64 bytes wrap around to 0
  EXPECT_THROW(Array(DType::f32, {4, -1}), std::bad_array_new_length);
  EXPECT_THROW(Array(DType::u8, {-1}), std::bad_array_new_length);
  EXPECT_THROW(Buffer(std::numeric_limits<size_t>::max()), std::bad_alloc);
  EXPECT_THROW(Buffer(std::numeric_limits<size_t>::max() - Buffer::kAlignment + 1), std::bad_alloc);
}

}  // namespace
}  // namespace sinew
