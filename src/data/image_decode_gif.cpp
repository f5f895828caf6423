// Decodes the first frame of a GIF through giflib.
#include <gif_lib.h>

#include <cstring>
#include <memory>

#include "data/image_decode.h"

namespace sinew::data {
namespace {

struct GifSource {
  std::span<const std::byte> file;
  size_t position = 0;
};

int read_gif(GifFileType* gif, GifByteType* to, int count) {
  auto* source = static_cast<GifSource*>(gif->UserData);
  const size_t size = std::min(static_cast<size_t>(count), source->file.size() - source->position);
  if (size > 0) std::memcpy(to, source->file.data() + source->position, size);
  source->position += size;
  return static_cast<int>(size);
}

struct CloseGif {
  void operator()(GifFileType* gif) const {
    int ignored = 0;
    DGifCloseFile(gif, &ignored);
  }
};
using Gif = std::unique_ptr<GifFileType, CloseGif>;

Undecodable gif_failure(int error) {
  const char* text = GifErrorString(error);
  return Undecodable{text == nullptr ? "the GIF data do not decode" : "GIF: " + std::string(text)};
}

Decoded<Gif> open_gif(GifSource& source) {
  int error = 0;
  Gif gif(DGifOpen(&source, read_gif, &error));
  if (gif == nullptr) return gif_failure(error);
  if (std::string problem = refused_size({gif->SHeight, gif->SWidth}); !problem.empty()) {
    return Undecodable{std::move(problem)};
  }
  return gif;
}

// Reads up to the first frame. Returns "", or why there is none.
std::string find_frame(GifFileType* gif) {
  while (true) {
    GifRecordType kind = UNDEFINED_RECORD_TYPE;
    if (DGifGetRecordType(gif, &kind) == GIF_ERROR) return gif_failure(gif->Error).why;
    if (kind == TERMINATE_RECORD_TYPE) return "the GIF has no image";
    if (kind == IMAGE_DESC_RECORD_TYPE) return DGifGetImageDesc(gif) == GIF_ERROR ? gif_failure(gif->Error).why : "";
    int code = 0;
    GifByteType* extension = nullptr;
    if (DGifGetExtension(gif, &code, &extension) == GIF_ERROR) return gif_failure(gif->Error).why;
    while (extension != nullptr) {
      if (DGifGetExtensionNext(gif, &extension) == GIF_ERROR) return gif_failure(gif->Error).why;
    }
  }
}

// The rows of an interlaced frame come in four passes.
std::vector<int64_t> gif_rows(int64_t height, bool interlaced) {
  std::vector<int64_t> rows;
  struct Pass {
    int64_t first, step;
  };
  constexpr Pass kInterlaced[] = {{0, 8}, {4, 8}, {2, 4}, {1, 2}};
  constexpr Pass kPlain[] = {{0, 1}};
  for (const Pass& pass : interlaced ? std::span<const Pass>(kInterlaced) : std::span<const Pass>(kPlain)) {
    for (int64_t row = pass.first; row < height; row += pass.step) rows.push_back(row);
  }
  return rows;
}

void put_color(const ColorMapObject& colors, int index, uint8_t* to) {
  const bool known = index >= 0 && index < colors.ColorCount;
  const GifColorType color = known ? colors.Colors[index] : GifColorType{};
  to[0] = color.Red;
  to[1] = color.Green;
  to[2] = color.Blue;
}

}  // namespace

Decoded<ImageSize> gif_size(std::span<const std::byte> file) {
  GifSource source{file};
  const Decoded<Gif> gif = open_gif(source);
  if (!gif) return Undecodable{gif.error()};
  return ImageSize{(*gif)->SHeight, (*gif)->SWidth};
}

// Pixels outside the first frame have the background colour. A frame that is larger than the picture is cut off.
Decoded<Pixels> decode_gif(std::span<const std::byte> file, int64_t channels) {
  GifSource source{file};
  const Decoded<Gif> opened = open_gif(source);
  if (!opened) return Undecodable{opened.error()};
  GifFileType* gif = opened->get();
  if (std::string problem = find_frame(gif); !problem.empty()) return Undecodable{std::move(problem)};
  const GifImageDesc& frame = gif->Image;
  const ColorMapObject* colors = frame.ColorMap != nullptr ? frame.ColorMap : gif->SColorMap;
  if (colors == nullptr) return Undecodable{"the GIF has no colours"};
  if (std::string problem = refused_size({frame.Height, frame.Width}); !problem.empty()) {
    return Undecodable{std::move(problem)};
  }

  Pixels pixels{gif->SHeight, gif->SWidth, 3, {}};
  pixels.bytes.resize(static_cast<size_t>(pixels.height * pixels.width * 3));
  const bool covered = frame.Left <= 0 && frame.Top <= 0 && frame.Left + frame.Width >= gif->SWidth &&
                       frame.Top + frame.Height >= gif->SHeight;
  if (!covered && gif->SColorMap != nullptr) {
    for (size_t i = 0; i < pixels.bytes.size(); i += 3)
      put_color(*gif->SColorMap, gif->SBackGroundColor, &pixels.bytes[i]);
  }
  std::vector<GifPixelType> line(static_cast<size_t>(frame.Width));
  for (const int64_t row : gif_rows(frame.Height, frame.Interlace)) {
    if (DGifGetLine(gif, line.data(), frame.Width) == GIF_ERROR) return gif_failure(gif->Error);
    const int64_t y = frame.Top + row;
    if (y < 0 || y >= pixels.height) continue;
    for (int64_t x = 0; x < frame.Width; ++x) {
      const int64_t column = frame.Left + x;
      if (column < 0 || column >= pixels.width) continue;
      put_color(*colors, line[static_cast<size_t>(x)],
                &pixels.bytes[static_cast<size_t>(3 * (y * pixels.width + column))]);
    }
  }
  return with_channels(std::move(pixels), channels);
}

}  // namespace sinew::data
