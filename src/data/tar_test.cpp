#include "data/tar.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>
#include <utility>

#include "base/expected_error.h"
#include "data/fixtures.h"
#include "data/tar_fixtures.h"

namespace sinew::data {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;
using Members = std::vector<std::pair<std::string, std::string>>;  // name and content

TarReader reader_of(const std::string& tar) {
  return {"t.tar", tar.size(), [&tar](uint64_t offset, std::span<std::byte> out) {
            ASSERT_LE(offset + out.size(), tar.size()) << "the reader asked for bytes beyond the end";
            std::memcpy(out.data(), tar.data() + offset, out.size());
          }};
}

Members members_of(const std::string& tar) {
  TarReader reader = reader_of(tar);
  Members found;
  while (const auto member = reader.next())
    found.emplace_back(member->name,
                       tar.substr(static_cast<size_t>(member->offset), static_cast<size_t>(member->size)));
  EXPECT_FALSE(reader.next()) << "after the end";
  return found;
}

std::string error_for(const std::string& tar) {
  return error_of([&] { members_of(tar); });
}

TEST(Tar, ReadsNamesAndContent) {
  const std::string big = random_bytes(1, 5000);
  const std::string tar =
      tar_of(tar_member("./a/1.jpg", big) + tar_member("a/1.cls", "3") + tar_member("empty", "") +
             tar_entry({.name = "name.jpg", .content = "x", .prefix = "some/folder"}) +
             tar_entry({.name = "gnu.jpg", .content = "y", .prefix = "a time", .magic = std::string("ustar  \0", 8)}) +
             tar_entry({.name = "v7.jpg", .content = "z", .type = '\0', .magic = ""}));
  EXPECT_THAT(members_of(tar),
              ElementsAre(std::pair("a/1.jpg", big), std::pair("a/1.cls", "3"), std::pair("empty", ""),
                          std::pair("some/folder/name.jpg", "x"), std::pair("gnu.jpg", "y"), std::pair("v7.jpg", "z")));
  EXPECT_THAT(members_of(tar_of("")), IsEmpty());
  EXPECT_THAT(members_of(tar_of(tar_member("a", "1")) + std::string(9216, '\0')), ElementsAre(std::pair("a", "1")))
      << "padded to a record, as tar does";
}

TEST(Tar, ReadsLongNamesOfGnuAndOfPax) {
  const std::string name = "folder/" + std::string(300, 'n') + ".jpg";
  const std::string gnu = gnu_long_name(name) + tar_entry({.name = name.substr(0, 100), .content = "1"});
  const std::string pax = tar_entry({.name = "PaxHeaders/x",
                                     .content = pax_text("mtime", "1.5") + pax_text("path", name) +
                                                pax_text("comment", "a=b\nc") + pax_text("size", "700"),
                                     .type = 'x'}) +
                          tar_entry({.name = "short", .content = std::string(700, 'p'), .size = "00000000000"});
  const std::string plain = tar_member("plain", "2");
  EXPECT_THAT(members_of(tar_of(gnu + plain + pax + plain)),
              ElementsAre(std::pair(name, "1"), std::pair("plain", "2"), std::pair(name, std::string(700, 'p')),
                          std::pair("plain", "2")))
      << "an extension holds for one member";
  const std::string link =
      tar_entry({.name = "././@LongLink", .content = name, .type = 'K'}) + tar_entry({.name = "link", .type = '2'});
  const std::string global = tar_entry({.name = "g", .content = pax_text("comment", "of git archive"), .type = 'g'});
  EXPECT_THAT(members_of(tar_of(global + link + plain)), ElementsAre(std::pair("plain", "2")));
}

TEST(Tar, SkipsWhatIsNoFile) {
  std::string tar;
  for (const char type : {'1', '2', '3', '4', '5', '6'})  // a size without content, as some programs write for links
    tar += tar_entry({.name = std::string("entry") + type, .type = type, .size = "00000001000"});
  tar += tar_entry({.name = "folder/", .type = '\0', .magic = ""});
  tar += tar_entry({.name = "volume", .content = "text", .type = 'V'});
  EXPECT_THAT(members_of(tar_of(tar + tar_member("file", "f"))), ElementsAre(std::pair("file", "f")));
}

TEST(Tar, CountsLinks) {
  const auto links_of = [](const std::string& entries) {
    const std::string tar = tar_of(entries);
    TarReader reader = reader_of(tar);
    while (reader.next()) {
    }
    return reader.links();
  };
  EXPECT_EQ(links_of(tar_member("a", "1") + tar_entry({.name = "folder/", .type = '5'})).count, 0);
  const TarLinks soft = links_of(tar_entry({.name = "s", .type = '2'}) + tar_member("a", "1"));
  EXPECT_EQ(soft.count, 1);
  EXPECT_EQ(soft.first, "s");
  EXPECT_FALSE(soft.hard);
  const TarLinks both = links_of(tar_entry({.name = "s", .type = '2'}) + tar_entry({.name = "h", .type = '1'}));
  EXPECT_EQ(both.count, 2);
  EXPECT_TRUE(both.hard);
}

TEST(Tar, ReadsOnlySomeZerosAfterTheEnd) {
  const std::string file = tar_member("file", "f");
  EXPECT_THAT(members_of(file + std::string(1 << 20, '\0')), ElementsAre(std::pair("file", "f")));
  EXPECT_ERROR(error_for(file + std::string((16 << 20) + 512, '\0')), "DATA_DAMAGED_FILE", "after the mark of its end");
}

TEST(Tar, ReadsSizesInOctalAndInBinary) {
  const std::string content(600, 'c');
  for (const std::string& size : {std::string("00000001130"), std::string("1130 "), std::string("       1130 "),
                                  std::string("\x80\0\0\0\0\0\0\0\0\0\x02\x58", 12)})
    EXPECT_THAT(members_of(tar_of(tar_entry({.name = "f", .content = content, .size = size}))),
                ElementsAre(std::pair("f", content)))
        << size;
}

TEST(Tar, RefusesSizesThatAreNoneOrTooLarge) {
  for (const std::string& size :
       {std::string("0000000000x"), std::string("-0000000001"),
        std::string("\xFF\xFF\xFF\xFF\xFF\xFF\xFF\xFF\xFF\xFF\xFF\xFF", 12),
        std::string("\x80\0\0\0\x80\0\0\0\0\0\0\0", 12), std::string("\x80\x01\0\0\0\0\0\0\0\0\0\0", 12)})
    EXPECT_ERROR(error_for(tar_of(tar_entry({.name = "f", .size = size}))), "DATA_DAMAGED_FILE", "at byte 0");
  for (const std::string& size :
       {std::string("77777777777"), std::string("\x80\0\0\0\x7F\xFF\xFF\xFF\xFF\xFF\xFF\xFF", 12),
        std::string("\x80\0\0\0\x7F\xFF\xFF\xFF\xFF\xFF\xFF\x01", 12)})
    EXPECT_ERROR(error_for(tar_of(tar_entry({.name = "f", .size = size}))), "DATA_DAMAGED_FILE", "cut off");
  const auto with_pax = [](const std::string& size) {
    return tar_of(tar_entry({.name = "x", .content = pax_text("size", size), .type = 'x'}) + tar_member("f", "1"));
  };
  EXPECT_ERROR(error_for(with_pax("9223372036854775808")), "DATA_DAMAGED_FILE", "no number");
  EXPECT_ERROR(error_for(with_pax("9223372036854775807")), "DATA_DAMAGED_FILE", "cut off");
  EXPECT_ERROR(error_for(with_pax("12x")), "DATA_DAMAGED_FILE", "no number");
  EXPECT_ERROR(error_for(tar_of(tar_entry({.name = "L", .type = 'L', .size = "00010000000"}))), "DATA_DAMAGED_FILE",
               "too long");
}

TEST(Tar, RefusesDamagedHeaders) {
  const std::string first = tar_member("a", "1");
  EXPECT_ERROR(error_for(tar_of(first + tar_entry({.name = "b", .checksum_error = 1}))), "DATA_DAMAGED_FILE",
               "t.tar: the checksum of a header is wrong (at byte 1024)");
  EXPECT_ERROR(error_for(std::string(2048, 'x')), "DATA_WRONG_FORMAT", "is no tar");
  EXPECT_ERROR(error_for(gzipped(random_bytes(2, 4000))), "DATA_WRONG_FORMAT", "is compressed");
  for (const std::string bad :
       {"12 path", "999 path=a\n", "9 path=ab", "x path=a\n", "3 =", "0 ", "18446744073709551616 a=b\n"})
    EXPECT_ERROR(error_for(tar_of(tar_entry({.name = "x", .content = bad, .type = 'x'}) + first)), "DATA_DAMAGED_FILE",
                 "pax header is damaged (at byte 0)");
  EXPECT_ERROR(error_for(tar_of(gnu_long_name("alone"))), "DATA_DAMAGED_FILE", "followed by no file");
  EXPECT_ERROR(error_for(tar_of(tar_entry({.name = "s", .type = 'S'}))), "DATA_WRONG_FORMAT", "sparse");
  EXPECT_ERROR(error_for(tar_of(tar_entry({.name = "x", .content = pax_text("GNU.sparse.major", "1"), .type = 'x'}))),
               "DATA_WRONG_FORMAT", "sparse");
  EXPECT_ERROR(error_for(tar_of(tar_entry({.name = "m", .type = 'M'}))), "DATA_WRONG_FORMAT", "another tar");
  EXPECT_ERROR(error_for(tar_of(tar_entry({.name = "g", .content = pax_text("size", "1"), .type = 'g'}))),
               "DATA_DAMAGED_FILE", "sets size");
  EXPECT_ERROR(error_for(tar_of(first) + tar_of(first)), "DATA_WRONG_FORMAT", "several tars");
}

// However much is missing, the reader says so, unless only zeros after the mark of the end are missing.
TEST(Tar, EveryCutIsAnError) {
  const std::string name = "folder/" + std::string(200, 'n') + ".jpg";
  const std::string members = tar_member("a.jpg", random_bytes(3, 700)) + tar_member("a.cls", "1") +
                              gnu_long_name(name) + tar_member("short", "2") +
                              tar_entry({.name = "x", .content = pax_text("path", name), .type = 'x'}) +
                              tar_member("short", random_bytes(4, 512));
  const std::string tar = tar_of(members);
  EXPECT_EQ(members_of(tar).size(), 4U);
  for (size_t size = 0; size < tar.size(); ++size) {
    const std::string error = error_for(tar.substr(0, size));
    if (size >= members.size() + 512) {
      EXPECT_EQ(error, "") << size;
    } else {
      ASSERT_TRUE(is_error(error, "DATA_DAMAGED_FILE", "t.tar: the tar is cut off")) << size << ": " << error;
    }
  }
}

// A changed byte is found, or changes only the content, a name or a field that is not used.
TEST(Tar, AnyChangedByteIsAnErrorOrKeepsTheReaderInside) {
  const std::string tar = tar_of(tar_member("a.jpg", "12345") + gnu_long_name("b.cls") + tar_member("short", "2"));
  int errors = 0;
  for (size_t at = 0; at < tar.size(); ++at) {
    for (const char flip : {'\x01', '\x80'}) {
      std::string changed = tar;
      changed[at] = static_cast<char>(changed[at] ^ flip);
      errors += error_for(changed).empty() ? 0 : 1;
    }
  }
  EXPECT_GT(errors, 2 * 3 * 500) << "the checksums cover the headers";
}

TEST(Tar, WhatTheWriterWritesTheReaderReads) {
  for (const size_t length : {1U, 99U, 100U, 101U, 255U, 256U, 257U, 1000U}) {
    for (const bool folders : {false, true}) {
      std::string name(length, 'n');
      for (size_t i = 20; folders && i + 1 < length; i += 21) name[i] = '/';
      const std::string content = random_bytes(length, length * 3);
      std::string tar = tar_header(name, content.size()) + content;
      tar += tar_padding(content.size());
      tar += tar_header("last.cls", 1) + "7" + std::string(tar_padding(1)) + std::string(tar_end());
      EXPECT_EQ(tar.size() % kTarBlock, 0U);
      EXPECT_THAT(members_of(tar), ElementsAre(std::pair(name, content), std::pair("last.cls", "7")));
    }
  }
}

}  // namespace
}  // namespace sinew::data
