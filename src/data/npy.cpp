// Reads NumPy's .npy, versions 1 to 3: magic, version, length of the header, header (a Python dictionary), elements.
#include <charconv>
#include <cstring>

#include "base/error.h"
#include "data/arrays.h"

namespace sinew::data {
namespace {

constexpr char kDamaged[] = "the file is damaged or cut off; write it again";

// Parses the dictionary of the header. Accepts exactly the literals that NumPy writes, in any order and with any
// spaces.
class HeaderReader {
 public:
  HeaderReader(std::string_view text, const std::string& name) : text_(text), name_(name) {}

  ArrayHeader read() {
    ArrayHeader header;
    bool descr = false, order = false, shape = false;
    expect('{');
    while (!accept('}')) {
      const std::string_view key = string();
      expect(':');
      if (key == "descr" && !descr) {
        descr = true;
        read_type(header);
      } else if (key == "fortran_order" && !order) {
        order = true;
        header.fortran = boolean();
      } else if (key == "shape" && !shape) {
        shape = true;
        read_shape(header);
      } else {
        fail("has an unknown or repeated key '" + std::string(key) + "'");
      }
      if (!accept(',')) {
        expect('}');
        break;
      }
    }
    if (!descr || !order || !shape) fail("lacks one of descr, fortran_order, shape");
    skip_spaces();
    if (at_ != text_.size()) fail("goes on after its closing brace");
    return header;
  }

 private:
  [[noreturn]] void fail(const std::string& what) const {
    throw Error("DATA_DAMAGED_FILE", name_ + ": its header " + what, "write the file again with numpy.save");
  }
  void skip_spaces() {
    while (at_ < text_.size() && (text_[at_] == ' ' || text_[at_] == '\n' || text_[at_] == '\t')) ++at_;
  }
  bool accept(char c) {
    skip_spaces();
    if (at_ >= text_.size() || text_[at_] != c) return false;
    ++at_;
    return true;
  }
  void expect(char c) {
    if (!accept(c)) fail(std::string("lacks a '") + c + "' at byte " + std::to_string(at_));
  }
  std::string_view string() {
    const char quote = accept('\'') ? '\'' : '"';
    if (quote == '"') expect('"');
    const size_t end = text_.find(quote, at_);
    if (end == std::string_view::npos) fail("has a string without an end");
    const std::string_view value = text_.substr(at_, end - at_);
    at_ = end + 1;
    return value;
  }
  bool boolean() {
    skip_spaces();
    for (const bool value : {false, true}) {
      const std::string_view word = value ? "True" : "False";
      if (text_.substr(at_).starts_with(word)) {
        at_ += word.size();
        return value;
      }
    }
    fail("has neither True nor False as fortran_order");
  }
  void read_shape(ArrayHeader& header) {
    expect('(');
    while (!accept(')')) {
      skip_spaces();
      int64_t size = 0;
      const auto [end, error] = std::from_chars(text_.data() + at_, text_.data() + text_.size(), size);
      if (error != std::errc{} || size < 0) fail("has no valid shape");
      at_ = static_cast<size_t>(end - text_.data());
      accept('L');  // the suffix of a long integer in Python 2
      header.shape.push_back(size);
      if (header.shape.size() > 32) fail("has more than 32 dimensions");
      if (!accept(',')) {
        expect(')');
        break;
      }
    }
  }
  void read_type(ArrayHeader& header) {
    skip_spaces();
    if (at_ < text_.size() && text_[at_] == '[') {
      throw Error("DATA_UNSUPPORTED_DTYPE", name_ + ": holds a structured array",
                  "save its columns as a plain array of numbers");
    }
    const std::string_view type = string();
    if (type.size() < 2) fail("has the type '" + std::string(type) + "'");
    header.big_endian = type[0] == '>';
    header.kind = type[1];
    const bool one_digit = type.size() == 3;
    header.width = one_digit ? type[2] - '0' : 0;
    const bool known = (header.kind == 'b' && header.width == 1) ||
                       ((header.kind == 'u' || header.kind == 'i') &&
                        (header.width == 1 || header.width == 2 || header.width == 4 || header.width == 8)) ||
                       (header.kind == 'f' && (header.width == 2 || header.width == 4 || header.width == 8));
    if (!known || (type[0] != '<' && type[0] != '>' && type[0] != '|' && type[0] != '=')) {
      throw Error("DATA_UNSUPPORTED_DTYPE", name_ + ": Sinew cannot read elements of type '" + std::string(type) + "'",
                  header.kind == 'O' ? "it holds Python objects; save a plain array (dtype=object is a pickle)"
                                     : "convert it first, for example with array.astype('float32')");
    }
  }

  std::string_view text_;
  const std::string& name_;
  size_t at_ = 0;
};

}  // namespace

ArrayHeader parse_npy(std::span<const std::byte> file, const std::string& name) {
  const std::string_view text = text_of(file);
  if (!text.starts_with("\x93NUMPY")) {
    throw Error("DATA_WRONG_FORMAT", name + ": not a .npy file: it does not begin with NumPy's signature", kDamaged);
  }
  if (text.size() < 12) {
    throw Error("DATA_DAMAGED_FILE", name + ": " + std::to_string(text.size()) + " bytes are too few for a .npy header",
                kDamaged);
  }
  const auto byte_at = [&](size_t i) { return static_cast<size_t>(file[i]); };
  const size_t version = byte_at(6);
  if (version < 1 || version > 3) {
    throw Error("DATA_WRONG_FORMAT", name + ": has version " + std::to_string(version) + " of .npy; Sinew reads 1 to 3",
                "write the file again with numpy.save");
  }
  const size_t start = version == 1 ? 10 : 12;
  size_t length = byte_at(8) | byte_at(9) << 8;
  if (version > 1) length |= byte_at(10) << 16 | byte_at(11) << 24;
  if (text.size() - start < length) {
    throw Error("DATA_DAMAGED_FILE",
                name + ": cut off within its header: it has " + std::to_string(text.size()) +
                    " bytes, but the header alone needs " + std::to_string(start + length),
                kDamaged);
  }
  ArrayHeader header = HeaderReader(text.substr(start, length), name).read();
  header.offset = start + length;
  check_size(header, file.size(), name);
  return header;
}

ArraySplit read_npy(const spec::DataSource& source, Split split) {
  if (source.images.empty() || source.labels.empty()) {
    throw Error("DATA_BAD_SOURCE",
                "data." + to_string(split) + ": npy needs images: (the inputs) and labels: (the targets)",
                "name the two files, or save both in one .npz");
  }
  auto files = read_files({source.images, source.labels});
  ArraySplit result;
  result.digests = {files[0].digest, files[1].digest};
  const ArrayHeader inputs = parse_npy(files[0].bytes, source.images),
                    targets = parse_npy(files[1].bytes, source.labels);
  result.inputs = make_array(std::move(files[0].bytes), inputs, source.images);
  result.targets = make_array(std::move(files[1].bytes), targets, source.labels);
  return result;
}

}  // namespace sinew::data
