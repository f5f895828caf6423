#include "data/augment.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <fstream>
#include <numbers>
#include <numeric>

#include "data/formats.h"

namespace sinew::data {
namespace {

struct Image {
  int64_t channels, height, width;
  std::vector<float> pixels;
  float at(int64_t c, int64_t y, int64_t x) const {
    if (y < 0 || y >= height || x < 0 || x >= width) return 0;
    return pixels[static_cast<size_t>((c * height + y) * width + x)];
  }
};

Image random_image(uint64_t seed, int64_t channels, int64_t height, int64_t width) {
  Image image{channels, height, width, std::vector<float>(static_cast<size_t>(channels * height * width))};
  RandomStream stream(random_key({seed}));
  for (float& pixel : image.pixels) pixel = static_cast<float>(stream.uniform());
  return image;
}

Image applied(const AugmentDraw& draw, Image image) {
  apply_augment(draw, image.pixels, image.channels, image.height, image.width);
  return image;
}

spec::AugmentOptions everything() {
  return {.crop_padding = 3, .flip = 0.5, .rotate = 30, .translate = 0.2, .scale = {0.7, 1.4}, .noise = 0.1};
}

// Computes the warp by its definition: it rotates, scales and moves the plane about its centre, and reads the source
// through the inverse map.
Image warp_by_definition(const AugmentDraw& draw, const Image& from) {
  Image to = from;
  const double radians = draw.angle * std::numbers::pi / 180;
  const double middle_x = 0.5 * static_cast<double>(from.width - 1),
               middle_y = 0.5 * static_cast<double>(from.height - 1);
  for (int64_t c = 0; c < from.channels; ++c) {
    for (int64_t y = 0; y < from.height; ++y) {
      for (int64_t x = 0; x < from.width; ++x) {
        const double u = static_cast<double>(x) - middle_x - static_cast<double>(draw.translate_x);
        const double v = static_cast<double>(y) - middle_y - static_cast<double>(draw.translate_y);
        const double sx = (std::cos(radians) * u + std::sin(radians) * v) / draw.scale + middle_x;
        const double sy = (-std::sin(radians) * u + std::cos(radians) * v) / draw.scale + middle_y;
        double value = 0;
        for (int64_t j = 0; j < 2; ++j) {
          for (int64_t i = 0; i < 2; ++i) {
            const double weight_x = 1 - std::abs(sx - (std::floor(sx) + static_cast<double>(i)));
            const double weight_y = 1 - std::abs(sy - (std::floor(sy) + static_cast<double>(j)));
            value += weight_x * weight_y *
                     from.at(c, static_cast<int64_t>(std::floor(sy)) + j, static_cast<int64_t>(std::floor(sx)) + i);
          }
        }
        to.pixels[static_cast<size_t>((c * from.height + y) * from.width + x)] = static_cast<float>(value);
      }
    }
  }
  return to;
}

double largest_difference(const Image& a, const Image& b) {
  double largest = 0;
  for (size_t i = 0; i < a.pixels.size(); ++i) {
    largest = std::max(largest, static_cast<double>(std::abs(a.pixels[i] - b.pixels[i])));
  }
  return largest;
}

TEST(Augment, IsAFunctionOfItsKey) {
  const Image image = random_image(1, 3, 17, 23);
  const auto options = everything();
  Image a = image, b = image, c = image;
  augment_image(options, augment_key(5, 2, 7), a.pixels, 3, 17, 23);
  augment_image(options, augment_key(5, 2, 7), b.pixels, 3, 17, 23);
  augment_image(options, augment_key(5, 3, 7), c.pixels, 3, 17, 23);
  EXPECT_EQ(a.pixels, b.pixels);
  EXPECT_NE(a.pixels, c.pixels);
  EXPECT_FALSE(augment_key(5, 2, 7) == augment_key(5, 7, 2));
  EXPECT_FALSE(augment_key(6, 2, 7) == augment_key(5, 2, 7));
}

TEST(Augment, NoOptionsChangeNothing) {
  const Image image = random_image(2, 3, 9, 8);
  Image copy = image;
  augment_image({}, augment_key(1, 1, 1), copy.pixels, 3, 9, 8);
  EXPECT_EQ(copy.pixels, image.pixels);
}

// Disabling one option must not change the draws of the others.
TEST(Augment, OptionsDrawIndependently) {
  for (int64_t sample = 0; sample < 50; ++sample) {
    const RandomKey key = augment_key(3, 0, sample);
    const AugmentDraw all = draw_augment(everything(), key, 40, 30);
    for (int left_out = 0; left_out < 6; ++left_out) {
      spec::AugmentOptions options = everything();
      AugmentDraw expected = all;
      if (left_out == 0) options.crop_padding = 0, expected.crop_x = expected.crop_y = 0;
      if (left_out == 1) options.flip = 0, expected.flip = false;
      if (left_out == 2) options.rotate = 0, expected.angle = 0;
      if (left_out == 3) options.translate = 0, expected.translate_x = expected.translate_y = 0;
      if (left_out == 4) options.scale.clear(), expected.scale = 1;
      if (left_out == 5) options.noise = 0, expected.noise = 0, expected.noise_key = {};
      const AugmentDraw draw = draw_augment(options, key, 40, 30);
      EXPECT_EQ(draw.crop_x, expected.crop_x);
      EXPECT_EQ(draw.crop_y, expected.crop_y);
      EXPECT_EQ(draw.flip, expected.flip);
      EXPECT_EQ(draw.angle, expected.angle);
      EXPECT_EQ(draw.translate_x, expected.translate_x);
      EXPECT_EQ(draw.translate_y, expected.translate_y);
      EXPECT_EQ(draw.scale, expected.scale);
      EXPECT_EQ(draw.noise, expected.noise);
      EXPECT_EQ(draw.noise_key, expected.noise_key);
    }
  }
}

// The draws reach every crop offset and both ends of every range, and never leave a range.
TEST(Augment, DrawsFillTheirRanges) {
  std::vector<int> crops(49, 0);
  int flips = 0;
  double low_angle = 0, high_angle = 0, low_scale = 9, high_scale = 0;
  int64_t low_x = 0, high_x = 0, low_y = 0, high_y = 0;
  constexpr int kDraws = 20000;
  for (int64_t sample = 0; sample < kDraws; ++sample) {
    const AugmentDraw draw = draw_augment(everything(), augment_key(11, 0, sample), 40, 30);
    ASSERT_LE(std::abs(draw.crop_x), 3);
    ASSERT_LE(std::abs(draw.crop_y), 3);
    ++crops[static_cast<size_t>((draw.crop_y + 3) * 7 + draw.crop_x + 3)];
    flips += draw.flip;
    low_angle = std::min(low_angle, draw.angle), high_angle = std::max(high_angle, draw.angle);
    low_scale = std::min(low_scale, draw.scale), high_scale = std::max(high_scale, draw.scale);
    low_x = std::min(low_x, draw.translate_x), high_x = std::max(high_x, draw.translate_x);
    low_y = std::min(low_y, draw.translate_y), high_y = std::max(high_y, draw.translate_y);
  }
  const double expected = kDraws / 49.0;
  double chi_square = 0;
  for (const int count : crops) chi_square += (count - expected) * (count - expected) / expected;
  EXPECT_LT(chi_square, 93.2);  // 48 degrees of freedom, p = 1e-4
  EXPECT_NEAR(flips, kDraws / 2.0, 4 * std::sqrt(kDraws) / 2);
  EXPECT_GE(low_angle, -30);
  EXPECT_LT(low_angle, -29.9);
  EXPECT_LE(high_angle, 30);
  EXPECT_GT(high_angle, 29.9);
  EXPECT_GE(low_scale, 0.7);
  EXPECT_LT(low_scale, 0.701);
  EXPECT_LE(high_scale, 1.4);
  EXPECT_GT(high_scale, 1.399);
  EXPECT_EQ(low_x, -6);
  EXPECT_EQ(high_x, 6);  // 0.2 of a width of 30
  EXPECT_EQ(low_y, -8);
  EXPECT_EQ(high_y, 8);
}

TEST(Augment, CropShowsZerosOutside) {
  const Image image = random_image(3, 2, 6, 9);
  for (int64_t dy = -7; dy <= 7; ++dy) {
    for (int64_t dx = -10; dx <= 10; ++dx) {
      const Image cropped = applied({.crop_x = dx, .crop_y = dy}, image);
      for (int64_t c = 0; c < 2; ++c) {
        for (int64_t y = 0; y < 6; ++y) {
          for (int64_t x = 0; x < 9; ++x)
            ASSERT_EQ(cropped.at(c, y, x), image.at(c, y + dy, x + dx)) << dx << ' ' << dy;
        }
      }
    }
  }
}

TEST(Augment, FlipMirrorsColumns) {
  for (const int64_t width : {1, 2, 7, 64}) {
    const Image image = random_image(4, 3, 5, width);
    const Image flipped = applied({.flip = true}, image);
    for (int64_t y = 0; y < 5; ++y) {
      for (int64_t x = 0; x < width; ++x) ASSERT_EQ(flipped.at(2, y, x), image.at(2, y, width - 1 - x));
    }
    EXPECT_EQ(applied({.flip = true}, flipped).pixels, image.pixels);
  }
}

TEST(Augment, WarpFollowsItsDefinition) {
  RandomStream stream(random_key({77}));
  for (int trial = 0; trial < 200; ++trial) {
    const auto height = static_cast<int64_t>(1 + stream.below(40)), width = static_cast<int64_t>(1 + stream.below(40));
    const Image image = random_image(100 + static_cast<uint64_t>(trial), 1 + trial % 3, height, width);
    AugmentDraw draw;
    draw.angle = stream.uniform(-180, 180);
    draw.scale = std::exp(stream.uniform(-2, 2));
    draw.translate_x = static_cast<int64_t>(stream.below(41)) - 20;
    draw.translate_y = static_cast<int64_t>(stream.below(41)) - 20;
    EXPECT_LT(largest_difference(applied(draw, image), warp_by_definition(draw, image)), 2e-4) << trial;
  }
}

TEST(Augment, QuarterTurnsAndWholePixelsMovePixels) {
  const Image image = random_image(5, 1, 8, 8);
  const Image turned = applied({.angle = 90}, image);  // clockwise on screen
  for (int64_t y = 0; y < 8; ++y) {
    for (int64_t x = 0; x < 8; ++x) EXPECT_NEAR(turned.at(0, x, 7 - y), image.at(0, y, x), 1e-5);
  }
  const Image moved = applied({.translate_x = 2, .translate_y = -3}, image);
  for (int64_t y = 0; y < 8; ++y) {
    for (int64_t x = 0; x < 8; ++x) EXPECT_EQ(moved.at(0, y, x), image.at(0, y + 3, x - 2));
  }
}

// The results of extreme warps stay finite and within the range of the image.
TEST(Augment, ExtremeWarpsStayInRange) {
  const Image image = random_image(6, 1, 33, 19);
  for (const double scale : {1e-9, 1e-3, 1e3, 1e9}) {
    for (const double angle : {0.0, 45.0, 90.0, -180.0, 1e6}) {
      for (const float pixel : applied({.angle = angle, .scale = scale}, image).pixels) {
        ASSERT_GE(pixel, 0.0f);
        ASSERT_LE(pixel, 1.0f);
      }
    }
  }
}

TEST(Augment, NoiseIsClippedAndCentred) {
  Image image{1, 200, 200, std::vector<float>(40000, 0.5f)};
  const Image noisy = applied({.noise = 0.1, .noise_key = {9}}, image);
  double sum = 0, square = 0;
  for (const float pixel : noisy.pixels) sum += pixel - 0.5, square += (pixel - 0.5) * (pixel - 0.5);
  EXPECT_NEAR(sum / 40000, 0, 4 * 0.1 / 200);
  EXPECT_NEAR(std::sqrt(square / 40000), 0.1, 0.0015);
  const Image loud = applied({.noise = 5, .noise_key = {9}}, image);
  const auto [low, high] = std::minmax_element(loud.pixels.begin(), loud.pixels.end());
  EXPECT_EQ(*low, 0.0f);
  EXPECT_EQ(*high, 1.0f);
}

// The expected values are what torchvision 0.29 computes (functional.affine, bilinear, zero fill) on a 4 x 5 ramp with
// pixel (y, x) = (5 y + x) / 20. The warp rotates, translates and scales. tests/augment/torchvision_check.py --freeze
// prints them.
TEST(Augment, WarpEqualsFrozenTorchvision) {
  Image image{1, 4, 5, std::vector<float>(20)};
  for (size_t i = 0; i < 20; ++i) image.pixels[i] = static_cast<float>(i) / 20;
  const Image warped = applied({.angle = 25, .translate_x = 1, .translate_y = -1, .scale = 1.3}, image);
  const std::vector<float> expected = {0.396615f, 0.472557f, 0.426142f, 0.379728f, 0.333313f, 0.709517f, 0.663102f,
                                       0.616687f, 0.570272f, 0.523857f, 0.368728f, 0.647014f, 0.807231f, 0.760817f,
                                       0.714402f, 0.000000f, 0.087771f, 0.369705f, 0.674301f, 0.904946f};
  for (size_t i = 0; i < 20; ++i) EXPECT_NEAR(warped.pixels[i], expected[i], 1e-5) << i;
}

// ---- normal numbers ------------------------------------------------------------------------------------------------

TEST(Normal, FollowsTheNormalDistribution) {
  std::vector<float> values(1'000'003);
  fill_normal({42}, values);
  double moments[5] = {};
  for (const float value : values) {
    for (int k = 1; k <= 4; ++k)
      moments[k] += std::pow(static_cast<double>(value), k) / static_cast<double>(values.size());
  }
  EXPECT_NEAR(moments[1], 0, 0.005);
  EXPECT_NEAR(moments[2], 1, 0.007);
  EXPECT_NEAR(moments[3], 0, 0.02);
  EXPECT_NEAR(moments[4], 3, 0.06);
  std::sort(values.begin(), values.end());
  double distance = 0;  // the Kolmogorov-Smirnov statistic
  for (size_t i = 0; i < values.size(); ++i) {
    const double below = 0.5 * std::erfc(-static_cast<double>(values[i]) / std::numbers::sqrt2);
    distance =
        std::max(distance, std::abs(below - (static_cast<double>(i) + 0.5) / static_cast<double>(values.size())));
  }
  EXPECT_LT(distance, 1.95 / std::sqrt(static_cast<double>(values.size())));  // p = 1e-3
  EXPECT_LT(values.back(), 6);
  EXPECT_GT(values.back(), 4.2);
  EXPECT_GT(values.front(), -6);
  EXPECT_LT(values.front(), -4.2);
}

TEST(Normal, NeighboursAreUncorrelated) {
  std::vector<float> values(200'000);
  fill_normal({43}, values);
  for (const size_t lag : {1, 2, 511, 512, 513, 1024}) {
    double sum = 0;
    for (size_t i = 0; i + lag < values.size(); ++i) sum += static_cast<double>(values[i]) * values[i + lag];
    EXPECT_LT(std::abs(sum / std::sqrt(static_cast<double>(values.size()))), 4.5) << lag;
  }
}

TEST(Normal, ValueDependsOnKeyAndPlaceOnly) {
  std::vector<float> longer(5000), shorter(1025);
  fill_normal({7}, longer);
  fill_normal({7}, shorter);
  EXPECT_TRUE(std::equal(shorter.begin(), shorter.end(), longer.begin()));
  // Frozen, because every machine must give the same bits.
  EXPECT_EQ(to_hex(digest_of(std::as_bytes(std::span(longer)))), "9e3992de66e82a5c14ece8aabc6e5419");
}

// ---- cases for tests/augment/torchvision_check.py ------------------------------------------------------------------

// Writes images, draws and results into the folder that the script names. Each case is one line of parameters and one
// block of raw floats.
TEST(AugmentDump, WritesCasesForTheScript) {
  const char* folder = std::getenv("SINEW_AUGMENT_DUMP");
  if (folder == nullptr) GTEST_SKIP() << "SINEW_AUGMENT_DUMP is not set";
  std::ofstream lines(std::string(folder) + "/cases.jsonl"),
      floats(std::string(folder) + "/pixels.f32", std::ios::binary);
  const spec::AugmentOptions none;
  for (int64_t i = 0; i < 300; ++i) {
    spec::AugmentOptions options = i % 5 == 4 ? everything() : none;
    if (i % 5 == 0) options.crop_padding = 1 + i % 7;
    if (i % 5 == 1) options.flip = 0.5;
    if (i % 5 == 2) options.rotate = 45;
    if (i % 5 == 3) options.rotate = 20, options.translate = 0.3, options.scale = {0.6, 1.6};
    const int64_t height = 8 + (i * 37) % 217, width = 8 + (i * 53) % 217, channels = i % 2 == 0 ? 3 : 1;
    const Image image = random_image(static_cast<uint64_t>(1000 + i), channels, height, width);
    const AugmentDraw draw = draw_augment(options, augment_key(1, 0, i), height, width);
    const Image result = applied(draw, image);
    lines.precision(17);
    lines << "{\"channels\":" << channels << ",\"height\":" << height << ",\"width\":" << width
          << ",\"padding\":" << options.crop_padding << ",\"crop_x\":" << draw.crop_x << ",\"crop_y\":" << draw.crop_y
          << ",\"flip\":" << (draw.flip ? "true" : "false") << ",\"angle\":" << draw.angle
          << ",\"translate_x\":" << draw.translate_x << ",\"translate_y\":" << draw.translate_y
          << ",\"scale\":" << draw.scale << ",\"noise\":" << draw.noise << "}\n";
    for (const Image* which : {&image, &result}) {
      floats.write(reinterpret_cast<const char*>(which->pixels.data()),
                   static_cast<std::streamsize>(which->pixels.size() * sizeof(float)));
    }
  }
  ASSERT_TRUE(lines.good() && floats.good());
}

}  // namespace
}  // namespace sinew::data
