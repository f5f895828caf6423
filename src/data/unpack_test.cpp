// Tests that packed files unpack to the same bytes, and that damaged ones give an error.
#include "data/unpack.h"

#include <gtest/gtest.h>
#include <zstd.h>

#include <functional>

#include "data/files.h"
#include "data/fixtures.h"

namespace sinew::data {
namespace {

constexpr uint64_t kEnough = 1 << 24;

std::string zstd_packed(std::string_view bytes) {
  ZSTD_CCtx* const context = ZSTD_createCCtx();
  ZSTD_CCtx_setParameter(context, ZSTD_c_checksumFlag, 1);
  std::string out(ZSTD_compressBound(bytes.size()), '\0');
  out.resize(ZSTD_compress2(context, out.data(), out.size(), bytes.data(), bytes.size()));
  ZSTD_freeCCtx(context);
  return out;
}

std::string unpacked(const std::string& file, uint64_t limit = kEnough) {
  return std::string(text_of(unpack(std::as_bytes(std::span(file)), "a.csv", limit)));
}

std::string refused(const std::string& file, uint64_t limit = kEnough) {
  return error_of([&] { unpacked(file, limit); });
}

struct Packer {
  std::string (*pack)(std::string_view bytes);
  const char* name;
};

class Unpack : public testing::TestWithParam<Packer> {
 protected:
  static std::string packed(std::string_view bytes) { return GetParam().pack(bytes); }
  // Text that packs to about a tenth of its size, with the given number of lines.
  static std::string table(int64_t lines) {
    std::string text = "a,b\n";
    for (int64_t i = 0; i < lines; ++i) text += std::to_string(i % 1000) + ",word\n";
    return text;
  }
};

TEST_P(Unpack, GivesTheSameBytesAtEverySize) {
  for (const int64_t lines : {0, 1, 100, 10'000, 200'000}) {
    const std::string text = table(lines), file = packed(text);
    EXPECT_TRUE(is_packed(std::as_bytes(std::span(file))));
    EXPECT_EQ(unpacked(file), text) << lines;
    const auto head = unpack_head(std::as_bytes(std::span(file)), 1000);
    EXPECT_EQ(text_of(head), text.substr(0, 1000)) << lines;
  }
  const std::string noise = random_bytes(1, 300'000);
  EXPECT_EQ(unpacked(packed(noise)), noise);
  EXPECT_EQ(unpacked(packed("")), "");
}

TEST_P(Unpack, ReadsSeveralMembersAndPadding) {
  EXPECT_EQ(unpacked(packed("one ") + packed("") + packed("two")), "one two");
  EXPECT_EQ(unpacked(packed("one") + std::string(512, '\0')), "one");
  EXPECT_ERROR(refused(packed("one") + "junk"), "DATA_DAMAGED_FILE", GetParam().name);
}

TEST_P(Unpack, AFileThatIsCutOffIsDamaged) {
  const std::string file = packed(table(300));
  for (size_t size = 4; size < file.size(); ++size) {
    EXPECT_ERROR(refused(file.substr(0, size)), "DATA_DAMAGED_FILE", "too early");
    unpack_head(std::as_bytes(std::span(file)).first(size), 100);
  }
}

TEST_P(Unpack, AChangedByteIsNoticed) {
  const std::string text = table(300), file = packed(text);
  int64_t noticed = 0;
  for (size_t at = 4; at < file.size(); ++at) {
    std::string changed = file;
    changed[at] = static_cast<char>(changed[at] ^ 0x10);
    try {
      EXPECT_EQ(unpacked(changed), text) << at;  // the byte is one of the header, such as gzip's time
    } catch (const Error& error) {
      EXPECT_TRUE(error.code == "DATA_DAMAGED_FILE" || error.code == "DATA_FILE_TOO_LARGE") << at << error.what();
      ++noticed;
    }
  }
  EXPECT_GT(noticed, static_cast<int64_t>(file.size()) - 16);
}

TEST_P(Unpack, ABombHitsTheLimit) {
  const std::string bomb = packed(std::string(kEnough, 'a'));
  EXPECT_LT(bomb.size(), kEnough / 500);
  EXPECT_EQ(unpacked(bomb).size(), kEnough);
  EXPECT_ERROR(refused(bomb, kEnough - 1), "DATA_FILE_TOO_LARGE", "16,777,215 bytes");
  EXPECT_ERROR(refused(bomb, 10), "DATA_FILE_TOO_LARGE", "more than 10 bytes");
}

INSTANTIATE_TEST_SUITE_P(Formats, Unpack, testing::Values(Packer{gzipped, "gzip"}, Packer{zstd_packed, "zstd"}),
                         [](const auto& format) { return std::string(format.param.name); });

TEST(UnpackedFiles, ATableHasTheSameContentHoweverItIsPacked) {
  const Folder folder;
  const std::string table = "x,y\n1,a\n2,b\n3,a\n";
  folder.write("plain.csv", table);
  folder.write("packed.csv.gz", gzipped(table));
  folder.write("packed.csv.zst", zstd_packed(table));
  for (const char* name : {"plain.csv", "packed.csv.gz", "packed.csv.zst"}) {
    const auto bytes = read_file(folder.path(name)).bytes, head = read_head(folder.path(name), 1000);
    EXPECT_EQ(text_of(bytes), table) << name;
    EXPECT_EQ(text_of(head), table) << name;
    EXPECT_EQ(file_extension(folder.path(name)), "csv") << name;
  }
}

}  // namespace
}  // namespace sinew::data
