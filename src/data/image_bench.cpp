// Measures the cost of bringing one image into a batch on one core: decoding, resizing and augmenting it.
#include <benchmark/benchmark.h>
#include <turbojpeg.h>

#include <cmath>

#include "data/formats.h"
#include "data/image_decode.h"

namespace sinew::data {
namespace {

// A JPEG whose statistics resemble those of a photo: smooth shapes, edges and some grain.
std::vector<std::byte> photo(int width, int height) {
  std::vector<uint8_t> rgb(static_cast<size_t>(width * height * 3));
  RandomStream stream(random_key({1}));
  for (int y = 0; y < height; ++y) {
    for (int x = 0; x < width; ++x) {
      for (int c = 0; c < 3; ++c) {
        const double shape = std::sin(x * 0.031 + c) * std::cos(y * 0.043 - c) + std::sin((x + y) * 0.11) * 0.5;
        const double edge = ((x / 37 + y / 29) % 3 == 0) ? 40 : 0;
        rgb[static_cast<size_t>((y * width + x) * 3 + c)] =
            static_cast<uint8_t>(std::clamp(120 + 60 * shape + edge + 5 * stream.normal(), 0.0, 255.0));
      }
    }
  }
  tjhandle handle = tjInitCompress();
  unsigned char* bytes = nullptr;
  unsigned long size = 0;
  tjCompress2(handle, rgb.data(), width, 0, height, TJPF_RGB, &bytes, &size, TJSAMP_420, 90, 0);
  const auto* first = reinterpret_cast<const std::byte*>(bytes);
  std::vector<std::byte> file(first, first + size);
  tjFree(bytes);
  tjDestroy(handle);
  return file;
}

void decode_and_resize(benchmark::State& state) {
  const std::vector<std::byte> file = photo(500, 375);
  const ImageSize size{state.range(0), state.range(0)};
  const ImageSize at_least = state.range(1) != 0 ? size : ImageSize{};
  std::vector<float> out(static_cast<size_t>(3 * size.height * size.width));
  for (auto _ : state) {
    const Decoded<Pixels> pixels = decode_image(file, 3, at_least);
    resize_to_floats(*pixels, size, out);
    benchmark::DoNotOptimize(out.data());
  }
  state.SetItemsProcessed(state.iterations());
}
BENCHMARK(decode_and_resize)->ArgNames({"to", "scaled"})->ArgsProduct({{64, 224}, {0, 1}});

void decode_resize_augment(benchmark::State& state) {
  const std::vector<std::byte> file = photo(500, 375);
  const ImageSize size{state.range(0), state.range(0)};
  std::vector<float> out(static_cast<size_t>(3 * size.height * size.width));
  spec::AugmentOptions options;
  options.crop_padding = size.height / 8;
  options.flip = 0.5;
  options.rotate = 10;
  options.scale = {0.8, 1.2};
  int64_t sample = 0;
  for (auto _ : state) {
    const Decoded<Pixels> pixels = decode_image(file, 3, size);
    resize_to_floats(*pixels, size, out);
    augment_image(options, augment_key(1, 0, sample++), out, 3, size.height, size.width);
    benchmark::DoNotOptimize(out.data());
  }
  state.SetItemsProcessed(state.iterations());
}
BENCHMARK(decode_resize_augment)->ArgName("to")->Arg(64)->Arg(224);

// Measures one kind of augmentation alone on a 3 x 224 x 224 image.
void augment(benchmark::State& state, spec::AugmentOptions options) {
  constexpr int64_t kSide = 224;
  std::vector<float> pixels(3 * kSide * kSide, 0.5f);
  int64_t sample = 0;
  for (auto _ : state) {
    augment_image(options, augment_key(1, 0, sample++), pixels, 3, kSide, kSide);
    benchmark::DoNotOptimize(pixels.data());
  }
  state.SetItemsProcessed(state.iterations());
}
BENCHMARK_CAPTURE(augment, crop, spec::AugmentOptions{.crop_padding = 28});
BENCHMARK_CAPTURE(augment, flip, spec::AugmentOptions{.flip = 0.5});
BENCHMARK_CAPTURE(augment, rotate, spec::AugmentOptions{.rotate = 15});
BENCHMARK_CAPTURE(augment, noise, spec::AugmentOptions{.noise = 0.05});

}  // namespace
}  // namespace sinew::data
