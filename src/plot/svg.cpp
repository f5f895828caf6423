// Writes pictures as SVG, and escapes text for XML and HTML.
#include <cmath>

#include "base/printable.h"
#include "base/utf8.h"
#include "plot/plot.h"

namespace sinew::plot {
namespace {

// Two decimals are a hundredth of a pixel.
std::string length(double value) {
  const auto hundredths = static_cast<int64_t>(std::llround(value * 100));
  std::string text = std::to_string(std::abs(hundredths) / 100);
  if (const int64_t rest = std::abs(hundredths) % 100; rest != 0) {
    text += rest < 10 ? ".0" : ".";
    text += std::to_string(rest % 10 == 0 ? rest / 10 : rest);
  }
  return hundredths < 0 ? "-" + text : text;
}

std::string hex_color(Color color) {
  constexpr std::string_view kDigits = "0123456789abcdef";
  std::string text = "#";
  for (const uint8_t part : {color.red, color.green, color.blue}) {
    text += kDigits[part >> 4];
    text += kDigits[part & 15];
  }
  return text;
}

std::string attribute(const char* name, const std::string& value) {
  return std::string(" ") + name + "=\"" + value + "\"";
}

class SvgWriter {
 public:
  explicit SvgWriter(std::string& out) : out_(out) {}

  void operator()(const Rectangle& shape) {
    out_ += "<rect" + attribute("x", length(shape.corner.x)) + attribute("y", length(shape.corner.y)) +
            attribute("width", length(shape.width)) + attribute("height", length(shape.height)) +
            attribute("fill", hex_color(shape.fill)) + "/>\n";
  }
  void operator()(const Polyline& shape) {
    out_ += "<polyline fill=\"none\"" + attribute("stroke", hex_color(shape.color)) +
            attribute("stroke-width", length(shape.width)) +
            " stroke-linecap=\"round\" stroke-linejoin=\"round\" points=\"";
    for (const Point& point : shape.points) out_ += length(point.x) + "," + length(point.y) + " ";
    out_.back() = '"';
    out_ += "/>\n";
  }
  void operator()(const Disc& shape) {
    out_ += "<circle" + attribute("cx", length(shape.center.x)) + attribute("cy", length(shape.center.y)) +
            attribute("r", length(shape.radius)) + attribute("fill", hex_color(shape.color)) + "/>\n";
  }
  void operator()(const Text& shape) {
    out_ += "<text" + attribute("x", length(shape.at.x)) + attribute("y", length(shape.at.y)) +
            attribute("font-size", length(shape.size)) + attribute("fill", hex_color(shape.color));
    if (shape.anchor != Anchor::start)
      out_ += attribute("text-anchor", shape.anchor == Anchor::middle ? "middle" : "end");
    if (shape.bold) out_ += attribute("font-weight", "bold");
    if (shape.upward)
      out_ += attribute("transform", "rotate(-90 " + length(shape.at.x) + " " + length(shape.at.y) + ")");
    out_ += ">" + escaped(shape.text);
    if (!shape.full.empty()) out_ += "<title>" + escaped(shape.full) + "</title>";
    out_ += "</text>\n";
  }

 private:
  std::string& out_;
};

}  // namespace

std::string svg(const Picture& picture) {
  std::string out = "<svg xmlns=\"http://www.w3.org/2000/svg\"" + attribute("width", length(picture.width)) +
                    attribute("height", length(picture.height)) +
                    attribute("viewBox", "0 0 " + length(picture.width) + " " + length(picture.height)) +
                    " role=\"img\" font-family=\"'DejaVu Sans', Verdana, sans-serif\"" +
                    attribute("aria-label", escaped(picture.title)) + ">\n";
  SvgWriter writer(out);
  for (const Shape& shape : picture.shapes) std::visit(writer, shape);
  return out + "</svg>\n";
}

std::string escaped(std::string_view text) {
  std::string out;
  const std::string safe = printable(text, true);
  for (size_t at = 0; at < safe.size(); ++at) {
    switch (safe[at]) {
      case '&': out += "&amp;"; break;
      case '<': out += "&lt;"; break;
      case '>': out += "&gt;"; break;
      case '"': out += "&quot;"; break;
      case '\'': out += "&#39;"; break;
      case '\xEF':
        if (const CodePoint one = decode_utf8(safe, at); one.value == 0xFFFE || one.value == 0xFFFF) {
          out += '?';
          at += 2;
          break;
        }
        [[fallthrough]];
      default: out += safe[at];
    }
  }
  return out;
}

}  // namespace sinew::plot
