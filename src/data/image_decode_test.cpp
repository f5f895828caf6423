#include "data/image_decode.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <zlib.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>

#include "data/image_decode_test_images.h"

namespace sinew::data {
namespace {

using testing::HasSubstr;

double mean_difference(const Pixels& a, const Pixels& b) {
  double sum = 0;
  for (size_t i = 0; i < a.bytes.size(); ++i) sum += std::abs(int{a.bytes[i]} - int{b.bytes[i]});
  return sum / static_cast<double>(a.bytes.size());
}

Pixels grey_of(const Pixels& rgb) {
  Pixels grey{rgb.height, rgb.width, 1, {}};
  for (size_t i = 0; i < rgb.bytes.size(); i += 3) {
    grey.bytes.push_back(
        static_cast<uint8_t>(std::lround(0.299 * rgb.bytes[i] + 0.587 * rgb.bytes[i + 1] + 0.114 * rgb.bytes[i + 2])));
  }
  return grey;
}

// ---- JPEG ----------------------------------------------------------------------------------------------------------

TEST(Jpeg, DecodesWhatWasEncoded) {
  for (const bool progressive : {false, true}) {
    for (const int subsampling : {TJSAMP_444, TJSAMP_422, TJSAMP_420, TJSAMP_440, TJSAMP_411}) {
      const Pixels pixels = smooth_pixels(1, 61, 83, 3);
      const Bytes file = jpeg_of(pixels, {subsampling, 97, progressive});
      const auto decoded = decode_image(file, 3);
      ASSERT_TRUE(decoded) << decoded.error();
      EXPECT_EQ(decoded->height, 61);
      EXPECT_EQ(decoded->width, 83);
      EXPECT_LT(mean_difference(*decoded, pixels), 2.5) << subsampling;
      EXPECT_EQ(*image_size(file), (ImageSize{61, 83}));
      const auto grey = decode_image(file, 1);
      ASSERT_TRUE(grey);
      EXPECT_EQ(grey->bytes.size(), 61u * 83u);
      EXPECT_LT(mean_difference(*grey, grey_of(pixels)), 2);
    }
  }
}

TEST(Jpeg, GreyFillsAllChannels) {
  const Pixels pixels = smooth_pixels(2, 40, 30, 1);
  const Bytes file = jpeg_of(pixels);
  const auto grey = decode_image(file, 1), rgb = decode_image(file, 3);
  ASSERT_TRUE(grey && rgb);
  EXPECT_LT(mean_difference(*grey, pixels), 1);
  for (size_t i = 0; i < grey->bytes.size(); ++i) {
    for (size_t c = 0; c < 3; ++c) ASSERT_EQ(rgb->bytes[3 * i + c], grey->bytes[i]);
  }
}

// Adobe's CMYK stores 255 for no ink. So white is all 255, and red is cyan times black.
TEST(Jpeg, CmykIsTakenAsAdobeWritesIt) {
  Pixels inks{32, 32, 4, {}};
  for (int i = 0; i < 32 * 32; ++i) {
    for (const uint8_t ink : {200, 100, 50, 128}) inks.bytes.push_back(ink);
  }
  const auto rgb = decode_image(jpeg_of(inks), 3), grey = decode_image(jpeg_of(inks), 1);
  ASSERT_TRUE(rgb && grey) << rgb.error();
  EXPECT_NEAR(rgb->bytes[0], 200 * 128 / 255, 2);
  EXPECT_NEAR(rgb->bytes[1], 100 * 128 / 255, 2);
  EXPECT_NEAR(rgb->bytes[2], 50 * 128 / 255, 2);
  EXPECT_NEAR(grey->bytes[5], 0.299 * 100 + 0.587 * 50 + 0.114 * 25, 3);
}

TEST(Jpeg, ScaledDecodeNeverFallsBelowTheTarget) {
  const Bytes file = jpeg_of(smooth_pixels(3, 375, 500, 3));
  for (const int64_t side : {1, 32, 47, 48, 64, 93, 94, 95, 187, 188, 189, 224, 375, 376, 1000}) {
    const auto decoded = decode_image(file, 3, {side, side});
    ASSERT_TRUE(decoded);
    EXPECT_GE(decoded->height, std::min<int64_t>(side, 375));
    EXPECT_GE(decoded->width, std::min<int64_t>(side, 500));
    // The result is not larger than needed: half of it would be too small, or its scale is already the smallest.
    EXPECT_TRUE((decoded->height + 1) / 2 < side || decoded->height == 47) << side << ' ' << decoded->height;
  }
}

TEST(Jpeg, ScaledDecodeShowsTheSamePicture) {
  const Bytes file = jpeg_of(smooth_pixels(4, 400, 320, 3), {TJSAMP_420, 95, false});
  const ImageSize size{50, 40};
  std::vector<float> exact(3 * 50 * 40), scaled(3 * 50 * 40);
  resize_to_floats(*decode_image(file, 3), size, exact);
  resize_to_floats(*decode_image(file, 3, size), size, scaled);
  double sum = 0;
  for (size_t i = 0; i < exact.size(); ++i) sum += std::abs(exact[i] - scaled[i]);
  EXPECT_LT(sum / static_cast<double>(exact.size()), 0.01);
}

TEST(Jpeg, EveryTruncatedFileIsCorrupt) {
  for (const bool progressive : {false, true}) {
    const Bytes file = jpeg_of(smooth_pixels(5, 40, 56, 3), {TJSAMP_420, 90, progressive});
    for (size_t size = 0; size < file.size(); ++size) {
      const auto decoded = decode_image(std::span(file).first(size), 3);
      ASSERT_FALSE(decoded) << size << " of " << file.size();
      ASSERT_FALSE(decoded.error().empty());
    }
    EXPECT_TRUE(decode_image(file, 3));
  }
}

// The decoder of a thread is reused for the next file, so a failed decode must not leave state in it.
TEST(Jpeg, AFailureDoesNotAffectTheNextFile) {
  const Bytes file = jpeg_of(smooth_pixels(6, 50, 50, 3));
  const auto before = decode_image(file, 3);
  for (size_t size = 0; size < file.size(); size += 7) (void)decode_image(std::span(file).first(size), 1);
  const auto after = decode_image(file, 3);
  ASSERT_TRUE(before && after);
  EXPECT_EQ(before->bytes, after->bytes);
}

TEST(Jpeg, HugeSizesAreRefusedBeforeAnythingIsAllocated) {
  Bytes file = jpeg_of(smooth_pixels(7, 16, 16, 3));
  for (size_t i = 0; i + 8 < file.size(); ++i) {
    if (file[i] == std::byte{0xFF} && file[i + 1] == std::byte{0xC0}) {  // SOF0: height and width follow
      for (size_t j = 5; j < 9; ++j) file[i + j] = std::byte{j % 2 == 1 ? uint8_t{0xFF} : uint8_t{0xDC}};
    }
  }
  const auto decoded = decode_image(file, 3);
  ASSERT_FALSE(decoded);
  EXPECT_THAT(decoded.error(), HasSubstr("65500 x 65500"));
  EXPECT_FALSE(image_size(file));
}

// ---- PNG -----------------------------------------------------------------------------------------------------------

TEST(Png, DecodesBitForBit) {
  for (const int64_t channels : {1, 3}) {
    for (const bool interlaced : {false, true}) {
      for (const ImageSize size : {ImageSize{1, 1}, {1, 9}, {7, 1}, {33, 47}}) {
        const Pixels pixels = noisy_pixels(8, size.height, size.width, channels);
        const Bytes file = png_of(pixels, interlaced);
        const auto decoded = decode_image(file, channels);
        ASSERT_TRUE(decoded) << decoded.error();
        EXPECT_EQ(decoded->bytes, pixels.bytes);
        EXPECT_EQ(*image_size(file), size);
      }
    }
  }
}

TEST(Png, ColourBecomesGreyByLumaAndGreyFillsChannels) {
  const Pixels rgb = noisy_pixels(9, 20, 30, 3), grey = noisy_pixels(10, 20, 30, 1);
  const auto to_grey = decode_image(png_of(rgb), 1), to_rgb = decode_image(png_of(grey), 3);
  ASSERT_TRUE(to_grey && to_rgb);
  const Pixels expected = grey_of(rgb);
  for (size_t i = 0; i < expected.bytes.size(); ++i) ASSERT_NEAR(to_grey->bytes[i], expected.bytes[i], 1);
  for (size_t i = 0; i < to_rgb->bytes.size(); ++i) ASSERT_EQ(to_rgb->bytes[i], grey.bytes[i / 3]);
}

TEST(Png, ScalesFewBitsToTheFullRange) {
  for (const int depth : {1, 2, 4}) {
    const int per_byte = 8 / depth, levels = 1 << depth;
    std::vector<uint8_t> row;
    std::vector<int> values;
    for (int i = 0; i < 32; ++i) values.push_back((i * 5 + 3) % levels);
    for (int i = 0; i < 32; i += per_byte) {
      int packed = 0;
      for (int j = 0; j < per_byte; ++j) packed = packed << depth | values[static_cast<size_t>(i + j)];
      row.push_back(static_cast<uint8_t>(packed));
    }
    for (const bool transparent : {false, true}) {
      const auto grey = decode_image(png_of({row, row}, 32, {PNG_COLOR_TYPE_GRAY, depth, false, transparent}), 1);
      const auto colour = decode_image(png_of({row, row}, 32, {PNG_COLOR_TYPE_PALETTE, depth, true, transparent}), 3);
      ASSERT_TRUE(grey && colour) << (grey ? colour.error() : grey.error());
      for (size_t i = 0; i < 32; ++i) {
        ASSERT_EQ(grey->bytes[i], values[i] * 255 / (levels - 1));
        ASSERT_EQ(colour->bytes[3 * i], values[i]);
        ASSERT_EQ(colour->bytes[3 * i + 1], 255 - values[i]);
        ASSERT_EQ(colour->bytes[3 * i + 2], 7 * values[i] % 256);
      }
    }
  }
}

TEST(Png, SixteenBitsAreScaledAndAlphaIsDropped) {
  RandomStream stream(random_key({12}));
  for (const int colour :
       {PNG_COLOR_TYPE_GRAY, PNG_COLOR_TYPE_GRAY_ALPHA, PNG_COLOR_TYPE_RGB, PNG_COLOR_TYPE_RGB_ALPHA}) {
    for (const int depth : {8, 16}) {
      const size_t kept = (colour & PNG_COLOR_MASK_COLOR) != 0 ? 3 : 1;
      const size_t samples = kept + ((colour & PNG_COLOR_MASK_ALPHA) != 0 ? 1 : 0);
      std::vector<uint8_t> row, expected;
      for (size_t x = 0; x < 17; ++x) {
        for (size_t s = 0; s < samples; ++s) {
          const uint32_t value = stream.bits32() >> (32 - depth);
          if (depth == 16) row.push_back(static_cast<uint8_t>(value >> 8));
          row.push_back(static_cast<uint8_t>(value));
          if (s < kept) expected.push_back(static_cast<uint8_t>(depth == 16 ? std::lround(value / 257.0) : value));
        }
      }
      const auto decoded = decode_image(png_of({row}, 17, {colour, depth, false, false}), static_cast<int64_t>(kept));
      ASSERT_TRUE(decoded) << decoded.error();
      EXPECT_EQ(decoded->bytes, expected) << colour << ' ' << depth;
    }
  }
}

TEST(Png, EveryTruncatedFileIsCorrupt) {
  for (const bool interlaced : {false, true}) {
    const Bytes file = png_of(noisy_pixels(13, 12, 15, 3), interlaced);
    for (size_t size = 0; size < file.size(); ++size) {
      ASSERT_FALSE(decode_image(std::span(file).first(size), 3)) << size << " of " << file.size();
    }
  }
}

// Checksums cover all data of a PNG that matters, so a flipped bit never changes the pixels.
TEST(Png, AFlippedBitIsFoundOrHarmless) {
  const Pixels pixels = noisy_pixels(14, 9, 11, 3);
  const Bytes file = png_of(pixels);
  for (size_t bit = 0; bit < 8 * file.size(); ++bit) {
    Bytes flipped = file;
    flipped[bit / 8] ^= std::byte{1} << (bit % 8);
    const auto decoded = decode_image(flipped, 3);
    if (decoded) {
      ASSERT_EQ(decoded->bytes, pixels.bytes) << bit;
    }
  }
}

TEST(Png, HugeSizesAreRefused) {
  Bytes file = png_of(noisy_pixels(15, 4, 4, 1));
  const unsigned char size[] = {0x7F, 0xFF, 0xFF, 0xFF, 0x00, 0x00, 0xFF, 0xFF};
  std::memcpy(file.data() + 16, size, sizeof size);
  const uint32_t checksum = static_cast<uint32_t>(crc32(0, reinterpret_cast<const Bytef*>(file.data() + 12), 17));
  for (size_t i = 0; i < 4; ++i) file[29 + i] = static_cast<std::byte>(checksum >> (24 - 8 * i));
  const auto decoded = decode_image(file, 1);
  ASSERT_FALSE(decoded);
  EXPECT_THAT(decoded.error(), HasSubstr("2147483647 x 65535"));
}

// ---- WebP, GIF, BMP, TIFF ------------------------------------------------------------------------------------------

// tests/images/pillow_check.py compares the decoders with Pillow, on many more kinds of files.
TEST(OtherFormats, DecodeBitForBit) {
  for (const ImageSize size : {ImageSize{1, 1}, {1, 9}, {7, 1}, {33, 47}}) {
    const Pixels rgb = noisy_pixels(30, size.height, size.width, 3),
                 grey = noisy_pixels(31, size.height, size.width, 1);
    for (const Bytes& file : {webp_of(rgb), bmp_of(rgb), tiff_of(rgb)}) {
      const auto decoded = decode_image(file, 3);
      ASSERT_TRUE(decoded) << decoded.error();
      EXPECT_EQ(decoded->bytes, rgb.bytes);
      EXPECT_EQ(*image_size(file), size);
    }
    for (const bool interlaced : {false, true}) {
      const auto decoded = decode_image(gif_of(grey, interlaced), 1);
      ASSERT_TRUE(decoded) << decoded.error();
      EXPECT_EQ(decoded->bytes, grey.bytes);
    }
  }
}

TEST(OtherFormats, AFrameInAGifStandsOnTheBackground) {
  const Pixels grey = noisy_pixels(32, 3, 5, 1);
  const Bytes file = gif_of(grey, false, 2);
  EXPECT_EQ(*image_size(file), (ImageSize{7, 9}));
  const auto decoded = decode_image(file, 1);
  ASSERT_TRUE(decoded) << decoded.error();
  for (size_t y = 0; y < 7; ++y) {
    for (size_t x = 0; x < 9; ++x) {
      const bool inside = y >= 2 && y < 5 && x >= 2 && x < 7;
      EXPECT_EQ(decoded->bytes[9 * y + x], inside ? grey.bytes[5 * (y - 2) + x - 2] : 77);
    }
  }
}

TEST(OtherFormats, ATruncatedFileIsCorrupt) {
  const Pixels rgb = noisy_pixels(33, 12, 15, 3), grey = noisy_pixels(34, 12, 15, 1);
  for (const Bytes& file : {webp_of(rgb), bmp_of(rgb), tiff_of(rgb)}) {
    // The last four bytes of the TIFF are the place of a second page.
    for (size_t size = 0; size + 4 < file.size(); ++size) {
      ASSERT_FALSE(decode_image(std::span(file).first(size), 3)) << size << " of " << file.size();
    }
  }
  const Bytes gif = gif_of(grey);  // the pixels end before the file does
  for (size_t size = 0; size + 20 < gif.size(); ++size)
    ASSERT_FALSE(decode_image(std::span(gif).first(size), 1)) << size;
}

TEST(OtherFormats, HugeSizesAreRefused) {
  Bytes bmp = bmp_of(noisy_pixels(35, 2, 2, 3)), tiff = tiff_of(noisy_pixels(36, 2, 2, 3));
  for (size_t i = 18; i < 25; ++i) bmp[i] = std::byte{0x7F};
  EXPECT_THAT(decode_image(bmp, 3).error(), HasSubstr("more than the limit"));
  const size_t directory = tiff.size() - 4 - 10 * 12;
  for (const size_t place : {directory + 8, directory + 12 + 8}) tiff[place + 2] = std::byte{0x7F};
  EXPECT_FALSE(decode_image(tiff, 3));
}

// ---- EXIF orientation ----------------------------------------------------------------------------------------------

// Row by row, where the stored pixel (0: top left, 1: top right, 2: bottom left, 3: bottom right) must stand.
TEST(Orientation, TurnsAndMirrorsTheImage) {
  const std::vector<std::vector<int>> upright_corners = {{0, 1, 2, 3}, {1, 0, 3, 2}, {3, 2, 1, 0}, {2, 3, 0, 1},
                                                         {0, 2, 1, 3}, {2, 0, 3, 1}, {3, 1, 2, 0}, {1, 3, 0, 2}};
  Pixels pixels{32, 48, 3, std::vector<uint8_t>(32 * 48 * 3)};
  for (size_t i = 0; i < 32 * 48; ++i) {
    const size_t corner = (i / 48 >= 16 ? 2 : 0) + (i % 48 >= 24 ? 1 : 0);
    pixels.bytes[3 * i] = pixels.bytes[3 * i + 1] = pixels.bytes[3 * i + 2] = static_cast<uint8_t>(40 + 60 * corner);
  }
  const Bytes jpeg = jpeg_of(pixels, {TJSAMP_444, 95, false});
  for (int orientation = 1; orientation <= 8; ++orientation) {
    for (const Bytes& file : {with_orientation(jpeg, orientation), tiff_of(pixels, orientation)}) {
      const ImageSize size = orientation >= 5 ? ImageSize{48, 32} : ImageSize{32, 48};
      EXPECT_EQ(*image_size(file), size);
      const auto decoded = decode_image(file, 1);
      ASSERT_TRUE(decoded) << decoded.error();
      ASSERT_EQ((ImageSize{decoded->height, decoded->width}), size);
      for (size_t corner = 0; corner < 4; ++corner) {
        const int64_t y = corner < 2 ? 4 : size.height - 5, x = corner % 2 == 0 ? 4 : size.width - 5;
        const int expected = 40 + 60 * upright_corners[static_cast<size_t>(orientation - 1)][corner];
        EXPECT_NEAR(decoded->bytes[static_cast<size_t>(y * size.width + x)], expected, 4)
            << orientation << ' ' << corner;
      }
    }
  }
}

TEST(Orientation, AReducedImageIsLargeEnoughAfterItWasTurned) {
  const Bytes file = with_orientation(jpeg_of(smooth_pixels(37, 100, 400, 3)), 6);
  const auto decoded = decode_image(file, 3, {100, 50});
  ASSERT_TRUE(decoded) << decoded.error();
  EXPECT_GE(decoded->height, 100);
  EXPECT_GE(decoded->width, 50);
  EXPECT_LT(decoded->height, 400);
}

TEST(Orientation, DamagedExifIsIgnored) {
  const Bytes jpeg = jpeg_of(smooth_pixels(38, 8, 12, 3));
  const Bytes file = with_orientation(jpeg, 6);
  EXPECT_EQ(*image_size(with_orientation(jpeg, 9)), (ImageSize{8, 12}));
  EXPECT_EQ(*image_size(with_orientation(jpeg, 0)), (ImageSize{8, 12}));
  RandomStream stream(random_key({39}));
  for (int trial = 0; trial < 2000; ++trial) {
    Bytes damaged = file;
    damaged[4 + stream.below(36)] = static_cast<std::byte>(stream.bits32());
    const auto size = image_size(damaged);
    if (size) {
      EXPECT_EQ(size->height * size->width, 8 * 12);
    }
  }
}

// ---- any bytes -----------------------------------------------------------------------------------------------------

TEST(Decode, ReportsWhatOtherBytesAre) {
  EXPECT_EQ(decode_image({}, 3).error(), "the file is empty");
  const auto decoded = decode_image(std::as_bytes(std::span("%PDF-1.7")), 3);
  ASSERT_FALSE(decoded);
  EXPECT_THAT(decoded.error(), HasSubstr("25 50 44 46"));
}

// Damaged files of all formats must give pixels of the declared size or a message, and never a crash. A build with
// sanitizers runs this test too.
TEST(Decode, DamagedFilesGivePixelsOrAMessage) {
  RandomStream stream(random_key({16}));
  const Bytes files[] = {jpeg_of(smooth_pixels(17, 30, 40, 3)),
                         jpeg_of(smooth_pixels(18, 30, 40, 4)),
                         jpeg_of(smooth_pixels(19, 30, 40, 3), {TJSAMP_422, 80, true}),
                         png_of(noisy_pixels(20, 30, 40, 3), true),
                         webp_of(noisy_pixels(40, 30, 40, 3)),
                         bmp_of(noisy_pixels(41, 30, 40, 3)),
                         gif_of(noisy_pixels(42, 30, 40, 1)),
                         tiff_of(noisy_pixels(43, 30, 40, 3)),
                         with_orientation(jpeg_of(smooth_pixels(44, 30, 40, 3)), 6)};
  int failures = 0;
  for (int trial = 0; trial < 9000; ++trial) {
    Bytes file = files[static_cast<size_t>(trial) % std::size(files)];
    for (uint64_t i = 0; i <= stream.below(4); ++i)
      file[stream.below(file.size())] = static_cast<std::byte>(stream.bits32());
    if (image_size(file) && image_size(file)->height * image_size(file)->width > 1'000'000) continue;
    const auto decoded = decode_image(file, trial % 2 == 0 ? 3 : 1, {16, 16});
    failures += !decoded;
    if (!decoded) {
      ASSERT_FALSE(decoded.error().empty());
    } else {
      ASSERT_EQ(static_cast<int64_t>(decoded->bytes.size()), decoded->height * decoded->width * decoded->channels);
    }
  }
  EXPECT_GT(failures, 1000);
}

// For tests/images/pillow_check.py: writes the pixels of each image in the folder SINEW_IMAGES beside it, as NAME.rgb
// and NAME.grey (height and width as text, a line end, the bytes), or why it does not decode.
TEST(ImageDump, WritesPixelsForTheScript) {
  const char* folder = std::getenv("SINEW_IMAGES");
  if (folder == nullptr) GTEST_SKIP();
  std::vector<std::filesystem::path> paths;
  for (const auto& entry : std::filesystem::directory_iterator(folder)) paths.push_back(entry.path());
  for (const std::filesystem::path& path : paths) {
    std::ifstream in(path, std::ios::binary);
    const std::string bytes((std::istreambuf_iterator<char>(in)), std::istreambuf_iterator<char>());
    for (const int64_t channels : {1, 3}) {
      std::ofstream out(path.string() + (channels == 1 ? ".grey" : ".rgb"), std::ios::binary);
      const auto decoded = decode_image(std::as_bytes(std::span(bytes)), channels);
      if (!decoded) {
        out << "failed: " << decoded.error() << "\n";
        continue;
      }
      out << decoded->height << " " << decoded->width << "\n";
      out.write(reinterpret_cast<const char*>(decoded->bytes.data()),
                static_cast<std::streamsize>(decoded->bytes.size()));
    }
  }
}

// ---- resize --------------------------------------------------------------------------------------------------------

// Computes the triangle filter by its definition, in double precision, over both axes at once.
double triangle_resize(const Pixels& from, int64_t c, int64_t y, int64_t x, ImageSize size) {
  const double scale_y = static_cast<double>(from.height) / static_cast<double>(size.height);
  const double scale_x = static_cast<double>(from.width) / static_cast<double>(size.width);
  const double reach_y = std::max(1.0, scale_y), reach_x = std::max(1.0, scale_x);
  double total = 0, weights = 0;
  for (int64_t j = 0; j < from.height; ++j) {
    for (int64_t i = 0; i < from.width; ++i) {
      const double v = std::abs((static_cast<double>(j) + 0.5 - (static_cast<double>(y) + 0.5) * scale_y) / reach_y);
      const double u = std::abs((static_cast<double>(i) + 0.5 - (static_cast<double>(x) + 0.5) * scale_x) / reach_x);
      const double weight = std::max(0.0, 1 - u) * std::max(0.0, 1 - v);
      total += weight * from.bytes[static_cast<size_t>((j * from.width + i) * from.channels + c)];
      weights += weight;
    }
  }
  return total / weights / 255;
}

TEST(Resize, FollowsItsDefinition) {
  RandomStream stream(random_key({21}));
  for (int trial = 0; trial < 60; ++trial) {
    const int64_t channels = trial % 2 == 0 ? 3 : 1;
    const Pixels from = noisy_pixels(static_cast<uint64_t>(trial), static_cast<int64_t>(1 + stream.below(30)),
                                     static_cast<int64_t>(1 + stream.below(30)), channels);
    const ImageSize size{static_cast<int64_t>(1 + stream.below(30)), static_cast<int64_t>(1 + stream.below(30))};
    std::vector<float> out(static_cast<size_t>(channels * size.height * size.width));
    resize_to_floats(from, size, out);
    for (int64_t c = 0; c < channels; ++c) {
      for (int64_t y = 0; y < size.height; ++y) {
        for (int64_t x = 0; x < size.width; ++x) {
          ASSERT_NEAR(out[static_cast<size_t>((c * size.height + y) * size.width + x)],
                      triangle_resize(from, c, y, x, size), 1e-5)
              << from.height << 'x' << from.width << " -> " << size.height << 'x' << size.width;
        }
      }
    }
  }
}

TEST(Resize, SameSizeIsExactAndFlatStaysFlat) {
  const Pixels noisy = noisy_pixels(22, 9, 13, 3);
  std::vector<float> out(3 * 9 * 13);
  resize_to_floats(noisy, {9, 13}, out);
  for (size_t i = 0; i < noisy.bytes.size(); ++i)
    ASSERT_EQ(out[(i % 3) * 117 + i / 3], static_cast<float>(noisy.bytes[i]) / 255.0f);
  const Pixels flat{50, 70, 3, std::vector<uint8_t>(50 * 70 * 3, 77)};
  std::vector<float> small(3 * 7 * 90);
  resize_to_floats(flat, {7, 90}, small);
  for (const float value : small) ASSERT_NEAR(value, 77.0 / 255, 1e-6);
}

}  // namespace
}  // namespace sinew::data
