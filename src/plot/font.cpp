#include "plot/font.h"

#include <ft2build.h>

#include <algorithm>
#include <cmath>
#include <unordered_map>
#include <vector>

#include "base/check.h"
#include "base/utf8.h"
#include FT_FREETYPE_H
#include FT_OUTLINE_H

namespace sinew::plot {
namespace {

constexpr double kUnit = 64;             // FreeType counts in 64ths of a pixel
constexpr double kBoldening = 1.0 / 24;  // of the size

// FreeType's objects belong to one thread at a time, so each thread has its own.
class FontFace {
 public:
  FontFace() {
    SINEW_CHECK(FT_Init_FreeType(&library_) == 0, "FreeType");
    const auto* bytes = reinterpret_cast<const FT_Byte*>(kFontFile.data());
    SINEW_CHECK(FT_New_Memory_Face(library_, bytes, static_cast<FT_Long>(kFontFile.size()), 0, &face_) == 0, "font");
  }
  FontFace(const FontFace&) = delete;
  FontFace& operator=(const FontFace&) = delete;
  ~FontFace() {
    FT_Done_Face(face_);
    FT_Done_FreeType(library_);
  }

  void set_size(double size) {
    if (size == size_) return;
    size_ = size;
    FT_Set_Char_Size(face_, 0, std::lround(size * kUnit), 72, 72);  // 72 dots an inch: a point is a pixel
  }
  bool load(uint32_t code_point) {
    const FT_UInt glyph = FT_Get_Char_Index(face_, code_point);
    return FT_Load_Glyph(face_, glyph, FT_LOAD_NO_BITMAP | FT_LOAD_TARGET_LIGHT) == 0;
  }
  // The width of a letter as a part of the size.
  double advance(uint32_t code_point, bool bold) {
    const auto [known, added] = advances_.try_emplace(code_point, 0);
    if (added && FT_Load_Glyph(face_, FT_Get_Char_Index(face_, code_point), FT_LOAD_NO_SCALE) == 0)
      known->second = static_cast<double>(face_->glyph->advance.x) / face_->units_per_EM;
    return known->second + (bold ? kBoldening : 0);
  }
  FT_GlyphSlot glyph() const { return face_->glyph; }

  static FontFace& of_this_thread() {
    thread_local FontFace face;
    return face;
  }

 private:
  FT_Library library_ = nullptr;
  FT_Face face_ = nullptr;
  double size_ = 0;
  std::unordered_map<uint32_t, double> advances_;  // at most one for each letter of Unicode
};

std::vector<uint32_t> code_points(std::string_view text) {
  std::vector<uint32_t> found;
  for (size_t at = 0; at < text.size();) {
    const CodePoint one = decode_utf8(text, at);
    found.push_back(one.size == 0 ? '?' : one.value);
    at += static_cast<size_t>(std::max(1, one.size));
  }
  return found;
}

double width_of(const std::vector<uint32_t>& text, double size, bool bold) {
  FontFace& face = FontFace::of_this_thread();
  double width = 0;
  for (const uint32_t one : text) width += face.advance(one, bold);
  return width * size;
}

}  // namespace

double text_width(std::string_view text, double size, bool bold) {
  return width_of(code_points(text), size, bold);
}

std::string shortened(const std::string& text, double most, double size, bool bold) {
  constexpr size_t kMostCharacters = 1000;
  const std::vector<uint32_t> all = code_points(text);
  if (all.size() <= kMostCharacters && width_of(all, size, bold) <= most) return text;
  // Keeps `left` characters at the beginning and half as many at the end: the end of a name often tells it from others.
  const auto cut = [&](size_t left) {
    const size_t right = left / 2;
    std::string out;
    for (size_t i = 0; i < left; ++i) append_utf8(all[i], out);
    out += "…";
    for (size_t i = all.size() - right; i < all.size(); ++i) append_utf8(all[i], out);
    return out;
  };
  size_t fits = 0, beyond = std::min(all.size(), kMostCharacters) * 2 / 3;
  while (fits + 1 < beyond) {
    const size_t middle = (fits + beyond) / 2;
    (text_width(cut(middle), size, bold) <= most ? fits : beyond) = middle;
  }
  return cut(fits);
}

void paint_text(const Text& text, const Paint& paint) {
  const std::vector<uint32_t> letters = code_points(text.text);
  const double width = text.anchor == Anchor::start ? 0 : width_of(letters, text.size, text.bold);
  double pen = text.anchor == Anchor::start ? 0 : text.anchor == Anchor::middle ? -width / 2 : -width;
  FontFace& face = FontFace::of_this_thread();
  face.set_size(text.size);
  for (const uint32_t letter : letters) {
    const double x = text.at.x + (text.upward ? 0 : pen), y = text.at.y - (text.upward ? pen : 0);
    pen += face.advance(letter, text.bold) * text.size;
    FT_GlyphSlot glyph = face.glyph();
    if (!face.load(letter) || glyph->format != FT_GLYPH_FORMAT_OUTLINE) continue;
    if (text.bold) FT_Outline_Embolden(&glyph->outline, std::lround(text.size * kBoldening * kUnit));
    if (text.upward) {
      const FT_Matrix turn{0, -0x10000, 0x10000, 0};
      FT_Outline_Transform(&glyph->outline, &turn);
    }
    // The part of a pixel by which the letter is beside the grid. The baseline of upright text lies on the grid, where
    // the hints of the font want it.
    const double left = std::floor(x), top = text.upward ? std::floor(y) : std::round(y);
    FT_Outline_Translate(&glyph->outline, std::lround((text.upward ? 0 : x - left) * kUnit),
                         std::lround((text.upward ? top - y : 0) * kUnit));
    if (FT_Render_Glyph(glyph, FT_RENDER_MODE_NORMAL) != 0) continue;
    const FT_Bitmap& bitmap = glyph->bitmap;
    for (unsigned row = 0; row < bitmap.rows; ++row) {
      for (unsigned column = 0; column < bitmap.width; ++column) {
        const uint8_t coverage = bitmap.buffer[static_cast<size_t>(row) * static_cast<size_t>(bitmap.pitch) + column];
        if (coverage > 0)
          paint(static_cast<int64_t>(left) + glyph->bitmap_left + column,
                static_cast<int64_t>(top) - glyph->bitmap_top + row, coverage);
      }
    }
  }
}

}  // namespace sinew::plot
