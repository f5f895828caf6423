// Paints pictures and writes them as PNG.
#include <png.h>

#include <algorithm>
#include <cmath>

#include "base/error.h"
#include "plot/font.h"

namespace sinew::plot {
namespace {

constexpr int64_t kMostPixels = 100'000'000;

class Canvas {
 public:
  Canvas(int64_t width, int64_t height)
      : width_(width),
        height_(height),
        pixels_(static_cast<size_t>(3 * width * height), 255),
        mask_(static_cast<size_t>(width * height), 0) {}

  void operator()(const Rectangle& shape) {
    const double right = shape.corner.x + shape.width, bottom = shape.corner.y + shape.height;
    const Part columns = part(shape.corner.x, right, width_), rows = part(shape.corner.y, bottom, height_);
    for (int64_t y = rows.begin; y < rows.end; ++y) {
      for (int64_t x = columns.begin; x < columns.end; ++x)
        blend(x, y, shape.fill, covered(shape.corner.x, right, x) * covered(shape.corner.y, bottom, y));
    }
  }
  // Joins the segments in a mask first. Otherwise the ends of two segments would be painted over each other.
  void operator()(const Polyline& shape) {
    if (shape.points.empty()) return;
    if (shape.points.size() == 1) mark(shape.points[0], shape.points[0], shape.width / 2);
    for (size_t i = 1; i < shape.points.size(); ++i) mark(shape.points[i - 1], shape.points[i], shape.width / 2);
    paint_mask(shape.color);
  }
  void operator()(const Disc& shape) {
    mark(shape.center, shape.center, shape.radius);
    paint_mask(shape.color);
  }
  void operator()(const Text& shape) {
    paint_text(shape, [&](int64_t x, int64_t y, uint8_t coverage) {
      if (x >= 0 && x < width_ && y >= 0 && y < height_) blend(x, y, shape.color, coverage / 255.0);
    });
  }
  const std::vector<uint8_t>& pixels() const { return pixels_; }

 private:
  struct Part {
    int64_t begin = 0, end = 0;
  };
  // The pixels between two places.
  static Part part(double low, double high, int64_t size) {
    const auto most = static_cast<double>(size);
    return {static_cast<int64_t>(std::floor(std::clamp(low, 0.0, most))),
            static_cast<int64_t>(std::ceil(std::clamp(high, 0.0, most)))};
  }
  // The part of the pixel `at` that is between two places.
  static double covered(double low, double high, int64_t at) {
    const auto begin = static_cast<double>(at);
    return std::clamp(std::min(high, begin + 1) - std::max(low, begin), 0.0, 1.0);
  }
  void blend(int64_t x, int64_t y, Color color, double share) {
    uint8_t* pixel = pixels_.data() + 3 * (y * width_ + x);
    const auto mix = [&](uint8_t under, uint8_t over) {
      return static_cast<uint8_t>(std::lround(under + (over - under) * share));
    };
    pixel[0] = mix(pixel[0], color.red);
    pixel[1] = mix(pixel[1], color.green);
    pixel[2] = mix(pixel[2], color.blue);
  }

  // Marks the pixels within `radius` of the segment. The part of a pixel that the line covers follows from the distance
  // of its centre.
  void mark(Point from, Point to, double radius) {
    const double reach = radius + 1, dx = to.x - from.x, dy = to.y - from.y, square = dx * dx + dy * dy;
    const Part rows = part(std::min(from.y, to.y) - reach, std::max(from.y, to.y) + reach, height_);
    for (int64_t y = rows.begin; y < rows.end; ++y) {
      const double row = static_cast<double>(y) + 0.5;
      // The part of the segment near this row, so that a long diagonal does not visit its whole rectangle.
      double low = std::min(from.x, to.x), high = std::max(from.x, to.x);
      if (dy != 0) {
        const double a = from.x + std::clamp((row - reach * 1.5 - from.y) / dy, 0.0, 1.0) * dx;
        const double b = from.x + std::clamp((row + reach * 1.5 - from.y) / dy, 0.0, 1.0) * dx;
        low = std::min(a, b);
        high = std::max(a, b);
      }
      const Part columns = part(low - reach, high + reach, width_);
      for (int64_t x = columns.begin; x < columns.end; ++x) {
        const double column = static_cast<double>(x) + 0.5;
        const double along =
            square == 0 ? 0 : std::clamp(((column - from.x) * dx + (row - from.y) * dy) / square, 0.0, 1.0);
        const double distance = std::hypot(column - from.x - along * dx, row - from.y - along * dy);
        // A line thinner than a pixel never covers a whole one.
        const double share = std::clamp(radius + 0.5 - distance, 0.0, std::min(1.0, 2 * radius));
        uint8_t& marked = mask_[static_cast<size_t>(y * width_ + x)];
        marked = std::max(marked, static_cast<uint8_t>(std::lround(share * 255)));
      }
      if (columns.begin < columns.end) {
        marked_.begin = marked_.end == 0 ? y : std::min(marked_.begin, y);
        marked_.end = std::max(marked_.end, y + 1);
      }
    }
  }
  void paint_mask(Color color) {
    for (int64_t y = marked_.begin; y < marked_.end; ++y) {
      for (int64_t x = 0; x < width_; ++x) {
        uint8_t& marked = mask_[static_cast<size_t>(y * width_ + x)];
        if (marked > 0) blend(x, y, color, marked / 255.0);
        marked = 0;
      }
    }
    marked_ = {};
  }

  int64_t width_, height_;
  std::vector<uint8_t> pixels_;  // red, green, blue
  std::vector<uint8_t> mask_;
  Part marked_;  // rows of the mask
};

}  // namespace

std::string png(const Picture& picture) {
  const auto width = static_cast<int64_t>(std::ceil(picture.width));
  const auto height = static_cast<int64_t>(std::ceil(picture.height));
  const Error too_large(
      "PLOT_TOO_LARGE",
      "a picture of " + std::to_string(width) + " x " + std::to_string(height) + " pixels cannot be written as PNG",
      "choose fewer metrics, or write SVG");
  if (width < 1 || height < 1 || width > kMostPixels / height) throw too_large;
  Canvas canvas(width, height);
  for (const Shape& shape : picture.shapes) std::visit(canvas, shape);
  png_image image{};
  image.version = PNG_IMAGE_VERSION;
  image.width = static_cast<png_uint_32>(width);
  image.height = static_cast<png_uint_32>(height);
  image.format = PNG_FORMAT_RGB;
  png_alloc_size_t bytes = PNG_IMAGE_PNG_SIZE_MAX(image);  // at most; avoids compressing twice
  std::string out(bytes, '\0');
  const int written = png_image_write_to_memory(&image, out.data(), &bytes, 0, canvas.pixels().data(), 0, nullptr);
  png_image_free(&image);
  if (written == 0) throw too_large;
  out.resize(bytes);
  return out;
}

}  // namespace sinew::plot
