// Decodes WebP through libwebp: lossy, lossless, with alpha, and the first frame of an animation.
#include <webp/decode.h>
#include <webp/demux.h>

#include <cstring>
#include <memory>

#include "data/image_decode.h"

namespace sinew::data {
namespace {

struct DeleteDecoder {
  void operator()(WebPAnimDecoder* decoder) const { WebPAnimDecoderDelete(decoder); }
};

const uint8_t* webp_bytes(std::span<const std::byte> file) {
  return reinterpret_cast<const uint8_t*>(file.data());
}

Decoded<WebPBitstreamFeatures> webp_header(std::span<const std::byte> file) {
  WebPBitstreamFeatures features{};
  const VP8StatusCode status = WebPGetFeatures(webp_bytes(file), file.size(), &features);
  if (status == VP8_STATUS_NOT_ENOUGH_DATA) return Undecodable{"premature end of WebP data"};
  if (status != VP8_STATUS_OK) return Undecodable{"the WebP header is damaged"};
  if (std::string problem = refused_size({features.height, features.width}); !problem.empty()) {
    return Undecodable{std::move(problem)};
  }
  return features;
}

// A frame may be smaller than the animation. The rest of the picture is transparent black, as in PIL.
Decoded<Pixels> decode_first_frame(std::span<const std::byte> file, Pixels pixels) {
  WebPAnimDecoderOptions options;
  if (WebPAnimDecoderOptionsInit(&options) == 0) return Undecodable{"the WebP library has another version"};
  options.color_mode = MODE_RGBA;
  options.use_threads = 0;
  const WebPData data{webp_bytes(file), file.size()};
  const std::unique_ptr<WebPAnimDecoder, DeleteDecoder> decoder(WebPAnimDecoderNew(&data, &options));
  uint8_t* frame = nullptr;
  int timestamp = 0;
  if (decoder == nullptr || WebPAnimDecoderGetNext(decoder.get(), &frame, &timestamp) == 0) {
    return Undecodable{"the first frame of the WebP animation does not decode"};
  }
  for (size_t i = 0; i < pixels.bytes.size() / 3; ++i) std::memcpy(&pixels.bytes[3 * i], frame + 4 * i, 3);
  return pixels;
}

}  // namespace

Decoded<ImageSize> webp_size(std::span<const std::byte> file) {
  const auto header = webp_header(file);
  if (!header) return Undecodable{header.error()};
  return ImageSize{header->height, header->width};
}

Decoded<Pixels> decode_webp(std::span<const std::byte> file, int64_t channels) {
  const auto header = webp_header(file);
  if (!header) return Undecodable{header.error()};
  Pixels pixels{header->height, header->width, 3, {}};
  pixels.bytes.resize(static_cast<size_t>(pixels.height * pixels.width * 3));
  if (header->has_animation != 0) {
    Decoded<Pixels> first = decode_first_frame(file, std::move(pixels));
    if (!first) return first;
    return with_channels(std::move(*first), channels);
  }
  if (WebPDecodeRGBInto(webp_bytes(file), file.size(), pixels.bytes.data(), pixels.bytes.size(),
                        static_cast<int>(3 * pixels.width)) == nullptr) {
    return Undecodable{"the WebP data do not decode"};
  }
  return with_channels(std::move(pixels), channels);
}

}  // namespace sinew::data
