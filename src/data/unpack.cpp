#include "data/unpack.h"

#include <zlib.h>
#include <zstd.h>

#include <algorithm>
#include <cstring>
#include <limits>
#include <memory>
#include <new>

#include "base/error.h"
#include "data/files.h"

namespace sinew::data {
namespace {

constexpr char kDamaged[] = "the file is damaged or cut off; download it or write it again";

bool is_gzip(std::span<const std::byte> file) {
  return file.size() >= 2 && file[0] == std::byte{0x1F} && file[1] == std::byte{0x8B};
}

bool is_zstd(std::span<const std::byte> file) {
  constexpr unsigned char kMagic[] = {0x28, 0xB5, 0x2F, 0xFD};
  return file.size() >= sizeof kMagic && std::memcmp(file.data(), kMagic, sizeof kMagic) == 0;
}

bool is_padding(std::span<const std::byte> rest) {
  return std::ranges::all_of(rest, [](std::byte b) { return b == std::byte{0}; });
}

[[noreturn]] void refuse(const std::string& what) {
  throw Error("DATA_DAMAGED_FILE", what, kDamaged);
}

// What is unpacked grows here.
class Output {
 public:
  Output(size_t first_guess, const std::string& name, uint64_t limit)
      : bytes_(first_guess), name_(name), limit_(limit) {}

  std::span<std::byte> room() {  // never empty
    if (size_ == bytes_.size()) {
      check_size(size_, limit_, name_);
      bytes_.resize(std::min<uint64_t>(bytes_.size() * 2 + 4096, limit_ + 1));
    }
    return std::span(bytes_).subspan(size_);
  }
  void add(size_t count) { size_ += count; }
  std::vector<std::byte> take() {
    check_size(size_, limit_, name_);
    bytes_.resize(size_);
    return std::move(bytes_);
  }

 private:
  std::vector<std::byte> bytes_;
  size_t size_ = 0;
  const std::string& name_;
  const uint64_t limit_;
};

// ---- gzip -----------------------------------------------------------------------------------------------------------

struct Inflater {
  z_stream stream{};
  Inflater() {
    if (inflateInit2(&stream, 15 + 16) != Z_OK) throw std::bad_alloc();
  }
  ~Inflater() { inflateEnd(&stream); }
};

// Returns the unpacked length that the last gzip member claims. This is only a first guess, so it is capped at the
// ratio that deflate usually reaches.
size_t guess_size(std::span<const std::byte> file, uint64_t limit) {
  uint32_t claimed = 0;
  if (file.size() >= 4) std::memcpy(&claimed, file.data() + file.size() - 4, 4);
  return static_cast<size_t>(std::min<uint64_t>({claimed, file.size() * 16ULL, limit})) + 1;
}

std::vector<std::byte> gunzip(std::span<const std::byte> file, const std::string& name, uint64_t limit) {
  constexpr size_t kMaxChunk = std::numeric_limits<uInt>::max();
  Inflater inflater;
  z_stream& stream = inflater.stream;
  Output out(guess_size(file, limit), name, limit);
  size_t read = 0;
  while (true) {
    const auto room = out.room();
    const size_t in_chunk = std::min(kMaxChunk, file.size() - read), out_chunk = std::min(kMaxChunk, room.size());
    stream.next_in = reinterpret_cast<Bytef*>(const_cast<std::byte*>(file.data() + read));
    stream.avail_in = static_cast<uInt>(in_chunk);
    stream.next_out = reinterpret_cast<Bytef*>(room.data());
    stream.avail_out = static_cast<uInt>(out_chunk);
    const int result = inflate(&stream, Z_NO_FLUSH);
    read += in_chunk - stream.avail_in;
    out.add(out_chunk - stream.avail_out);
    if (result == Z_STREAM_END) {
      const auto rest = file.subspan(read);
      if (is_padding(rest)) return out.take();
      if (!is_gzip(rest)) refuse(name + ": has bytes after byte " + std::to_string(read) + " that are not gzip");
      inflateReset(&stream);
      continue;
    }
    if (result == Z_OK) continue;
    if (result == Z_BUF_ERROR && read < file.size()) continue;  // the output buffer was too small
    refuse(name + ": broken gzip at byte " + std::to_string(read) + ": " +
           (read == file.size()     ? "it ends too early"
            : stream.msg != nullptr ? stream.msg
                                    : "bad data"));
  }
}

// ---- zstd -----------------------------------------------------------------------------------------------------------

// The library's own limit on the window, 128 MiB, bounds the memory of a context.
using Context = std::unique_ptr<ZSTD_DCtx, decltype(&ZSTD_freeDCtx)>;

Context new_context() {
  Context context(ZSTD_createDCtx(), ZSTD_freeDCtx);
  if (!context) throw std::bad_alloc();
  return context;
}

std::vector<std::byte> unpack_zstd(std::span<const std::byte> file, const std::string& name, uint64_t limit) {
  const Context context = new_context();
  Output out(std::min<uint64_t>(file.size() * 4, limit) + 1, name, limit);
  ZSTD_inBuffer in{file.data(), file.size(), 0};
  while (true) {
    const auto room = out.room();
    ZSTD_outBuffer part{room.data(), room.size(), 0};
    const size_t before = in.pos, result = ZSTD_decompressStream(context.get(), &part, &in);
    out.add(part.pos);
    const auto broken = [&](const std::string& why) {
      refuse(name + ": broken zstd at byte " + std::to_string(in.pos) + ": " + why);
    };
    if (ZSTD_isError(result) != 0) broken(ZSTD_getErrorName(result));
    if (result == 0) {  // the end of a frame
      const auto rest = file.subspan(in.pos);
      if (is_padding(rest)) return out.take();
      if (!is_zstd(rest)) refuse(name + ": has bytes after byte " + std::to_string(in.pos) + " that are not zstd");
    } else if (in.pos == in.size && in.pos == before && part.pos == 0) {
      broken("it ends too early");
    }
  }
}

}  // namespace

bool is_packed(std::span<const std::byte> file) {
  return is_gzip(file) || is_zstd(file);
}

std::vector<std::byte> unpack(std::span<const std::byte> file, const std::string& name, uint64_t limit) {
  return is_gzip(file) ? gunzip(file, name, limit) : unpack_zstd(file, name, limit);
}

std::vector<std::byte> unpack_head(std::span<const std::byte> file, size_t limit) {
  std::vector<std::byte> head(limit);
  if (is_gzip(file)) {
    Inflater inflater;
    inflater.stream.next_in = reinterpret_cast<Bytef*>(const_cast<std::byte*>(file.data()));
    inflater.stream.avail_in = static_cast<uInt>(file.size());
    inflater.stream.next_out = reinterpret_cast<Bytef*>(head.data());
    inflater.stream.avail_out = static_cast<uInt>(limit);
    inflate(&inflater.stream, Z_SYNC_FLUSH);
    head.resize(limit - inflater.stream.avail_out);
    return head;
  }
  const Context context = new_context();
  ZSTD_inBuffer in{file.data(), file.size(), 0};
  ZSTD_outBuffer out{head.data(), head.size(), 0};
  while (out.pos < out.size) {
    const size_t before_in = in.pos, before_out = out.pos;
    if (ZSTD_isError(ZSTD_decompressStream(context.get(), &out, &in)) != 0) break;
    if (in.pos == before_in && out.pos == before_out) break;
  }
  head.resize(out.pos);
  return head;
}

void check_size(uint64_t size, uint64_t limit, const std::string& name) {
  if (size <= limit) return;
  throw Error("DATA_FILE_TOO_LARGE", name + ": holds more than " + with_commas(static_cast<int64_t>(limit)) + " bytes",
              "split the file");
}

}  // namespace sinew::data
