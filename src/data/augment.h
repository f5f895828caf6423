// Private to data/: makes the random draws for the augmentation of one image, and applies the transforms.
//
// Every option draws from its own random stream, derived from the sample's key. So enabling one option never changes
// the draws of another. All transforms work on floats in [0, 1], laid out [channels, height, width], before
// normalisation.
#pragma once

#include <cstdint>
#include <span>

#include "base/random.h"
#include "spec/spec.h"

namespace sinew::data {

// The transforms of one image, in the order of the members. The defaults change nothing.
struct AugmentDraw {
  int64_t crop_x = 0, crop_y = 0;            // the crop's corner relative to the unpadded image, [-padding, padding]
  bool flip = false;                         // true: mirrored left to right
  double angle = 0;                          // degrees; positive angles turn clockwise on screen (y points down)
  int64_t translate_x = 0, translate_y = 0;  // whole pixels, right and down
  double scale = 1;                          // above 1 enlarges
  double noise = 0;                          // standard deviation
  RandomKey noise_key = {};
  bool warps() const { return angle != 0 || translate_x != 0 || translate_y != 0 || scale != 1; }
};

AugmentDraw draw_augment(const spec::AugmentOptions& options, RandomKey key, int64_t height, int64_t width);

void apply_augment(const AugmentDraw& draw, std::span<float> pixels, int64_t channels, int64_t height, int64_t width);

// Rotates, scales and translates in one bilinear warp about the centre of the image; pixels from outside are zero. The
// conventions are those of torchvision.transforms.v2.functional.affine on tensors with InterpolationMode.BILINEAR.
void warp_affine(const AugmentDraw& draw, std::span<float> pixels, int64_t channels, int64_t height, int64_t width);

// Adds normal noise with this standard deviation to the pixels and clips the sums to [0, 1], as torchvision's
// GaussianNoise does by default.
void add_noise(RandomKey key, double deviation, std::span<float> pixels);

// Fills `out` with standard normal numbers by the Box-Muller method in single precision. The code uses only basic
// arithmetic, so every machine gets the same bits. Value i depends only on (key, i). No value is larger than about 5.8
// in magnitude.
void fill_normal(RandomKey key, std::span<float> out);

}  // namespace sinew::data
