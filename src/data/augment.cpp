#include "data/augment.h"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "base/check.h"
#include "data/formats.h"

namespace sinew::data {
namespace {

// Copies `from` to `to` shifted by `shift`; pixels from beyond the ends are zero.
void shift_row(const float* from, float* to, int64_t width, int64_t shift) {
  const int64_t kept = std::max<int64_t>(0, width - std::abs(shift));
  const int64_t begin = kept == 0 ? 0 : std::max<int64_t>(0, -shift);
  if (kept > 0) std::memmove(to + begin, from + std::max<int64_t>(0, shift), static_cast<size_t>(kept) * sizeof(float));
  std::fill(to, to + begin, 0.0f);
  std::fill(to + begin + kept, to + width, 0.0f);
}

// In place: the new pixel (x, y) is the old pixel (x + shift_x, y + shift_y), or zero outside of the plane.
void shift_plane(float* plane, int64_t height, int64_t width, int64_t shift_x, int64_t shift_y) {
  for (int64_t i = 0; i < height; ++i) {
    const int64_t y = shift_y >= 0 ? i : height - 1 - i;  // an order that reads each row before it is overwritten
    float* to = plane + y * width;
    const int64_t source = y + shift_y;
    if (source < 0 || source >= height) {
      std::fill(to, to + width, 0.0f);
    } else {
      shift_row(plane + source * width, to, width, shift_x);
    }
  }
}

}  // namespace

RandomKey augment_key(uint64_t seed, int64_t epoch, int64_t sample) {
  return derive(random_key({seed, static_cast<uint64_t>(epoch), static_cast<uint64_t>(sample)}), "augment");
}

AugmentDraw draw_augment(const spec::AugmentOptions& options, RandomKey key, int64_t height, int64_t width) {
  AugmentDraw draw;
  if (options.crop_padding > 0) {
    RandomStream stream(derive(key, "crop"));
    const auto offsets = static_cast<uint64_t>(2 * options.crop_padding + 1);
    draw.crop_x = static_cast<int64_t>(stream.below(offsets)) - options.crop_padding;
    draw.crop_y = static_cast<int64_t>(stream.below(offsets)) - options.crop_padding;
  }
  if (options.flip > 0) draw.flip = RandomStream(derive(key, "flip")).uniform() < options.flip;
  if (options.rotate > 0) draw.angle = RandomStream(derive(key, "rotate")).uniform(-options.rotate, options.rotate);
  if (options.translate > 0) {
    RandomStream stream(derive(key, "translate"));
    const double reach_x = options.translate * static_cast<double>(width);
    const double reach_y = options.translate * static_cast<double>(height);
    draw.translate_x = std::llrint(stream.uniform(-reach_x, reach_x));
    draw.translate_y = std::llrint(stream.uniform(-reach_y, reach_y));
  }
  if (options.scale.size() == 2) {
    draw.scale = RandomStream(derive(key, "scale")).uniform(options.scale[0], options.scale[1]);
  }
  if (options.noise > 0) {
    draw.noise = options.noise;
    draw.noise_key = derive(key, "noise");
  }
  return draw;
}

void apply_augment(const AugmentDraw& draw, std::span<float> pixels, int64_t channels, int64_t height, int64_t width) {
  SINEW_CHECK(static_cast<int64_t>(pixels.size()) == channels * height * width, pixels.size(), channels, height, width);
  if (draw.crop_x != 0 || draw.crop_y != 0) {
    for (int64_t c = 0; c < channels; ++c) {
      shift_plane(pixels.data() + c * height * width, height, width, draw.crop_x, draw.crop_y);
    }
  }
  if (draw.flip) {
    for (int64_t row = 0; row < channels * height; ++row) {
      std::reverse(pixels.data() + row * width, pixels.data() + (row + 1) * width);
    }
  }
  if (draw.angle != 0 || draw.scale != 1) {
    warp_affine(draw, pixels, channels, height, width);
  } else if (draw.warps()) {  // a shift by whole pixels needs no interpolation and is exact
    for (int64_t c = 0; c < channels; ++c) {
      shift_plane(pixels.data() + c * height * width, height, width, -draw.translate_x, -draw.translate_y);
    }
  }
  if (draw.noise > 0) add_noise(draw.noise_key, draw.noise, pixels);
}

void augment_image(const spec::AugmentOptions& options, RandomKey key, std::span<float> pixels, int64_t channels,
                   int64_t height, int64_t width) {
  apply_augment(draw_augment(options, key, height, width), pixels, channels, height, width);
}

}  // namespace sinew::data
