// Tests which zip archives the reader accepts, and how it refuses the others.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>

#include "base/expected_error.h"
#include "program/sample.h"

namespace sinew::program {
namespace {

using testing::HasSubstr;

Zip two_members() {
  Zip zip;
  zip.add("net/a", "some bytes");
  zip.add("net/b", "");
  return zip;
}

Archive open(MemoryDisk& disk, const std::string& bytes) {
  disk.put("f.pt2", bytes);
  return Archive(disk, "f.pt2");
}

std::string refused(const std::string& bytes) {
  MemoryDisk disk;
  return error_of([&] { open(disk, bytes); });
}

TEST(Archive, FindsMembersOfEitherKind) {
  for (const bool plain : {false, true}) {
    Zip zip = two_members();
    zip.plain = plain;
    MemoryDisk disk;
    const Archive archive = open(disk, zip.bytes());
    ASSERT_EQ(archive.members().size(), 2U);
    const Member& a = *archive.find("net/a");
    EXPECT_EQ(archive.text(a, 100), "some bytes");
    EXPECT_EQ(archive.text(*archive.find("net/b"), 0), "");
    EXPECT_EQ(archive.find("a"), nullptr);
    EXPECT_TRUE(plain || a.begin % 64 == 0);
    // The checksum occurs in the local header or the data descriptor, and in the central directory.
    EXPECT_EQ(a.crc_offsets.size(), 2U);
    EXPECT_ERROR(error_of([&] { archive.text(a, 9); }), "PROGRAM_TOO_LARGE", "10 bytes");
  }
}

TEST(Archive, AWrongChecksumIsReportedWhenReading) {
  std::string bytes = two_members().bytes();
  bytes[bytes.find("some")] = 'S';
  MemoryDisk disk;
  const Archive archive = open(disk, bytes);
  EXPECT_ERROR(error_of([&] { archive.text(archive.members()[0], 100); }), "PROGRAM_DAMAGED_FILE", "'net/a'");
}

TEST(Archive, RefusesNamesThatLeadElsewhere) {
  const std::pair<const char*, const char*> names[] = {
      {"", "no name"},    {"/etc/passwd", "absolute"}, {"net/../x", "'..'"},    {"..", "'..'"},
      {"net/./x", "'.'"}, {"net/sub/", "is a folder"}, {"net\\x", "backslash"}, {"net/\n", "control character"}};
  for (const auto& [name, mention] : names) {
    Zip zip = two_members();
    zip.add(name, "x");
    EXPECT_ERROR(refused(zip.bytes()), "PROGRAM_BAD_ARCHIVE", mention);
  }
  Zip zip = two_members();
  zip.add(std::string("net/\0x", 6), "x");
  EXPECT_ERROR(refused(zip.bytes()), "PROGRAM_BAD_ARCHIVE", "control character");
  zip = two_members();
  zip.add(std::string(1025, 'x'), "x");
  EXPECT_ERROR(refused(zip.bytes()), "PROGRAM_BAD_ARCHIVE", "1025 bytes");
  zip = two_members();
  zip.add("net/a", "again");
  EXPECT_ERROR(refused(zip.bytes()), "PROGRAM_BAD_ARCHIVE", "'net/a' occurs twice");
  zip = two_members();
  zip.add("net/x..y/..z", "fine");
  MemoryDisk disk;
  EXPECT_EQ(open(disk, zip.bytes()).members().size(), 3U);
}

TEST(Archive, RefusesCompressedMembers) {
  Zip zip = two_members();
  zip.entries[0].method = 8;
  EXPECT_ERROR(refused(zip.bytes()), "PROGRAM_COMPRESSED_MEMBER", "'net/a' is compressed (method 8)");
  EXPECT_THAT(refused(zip.bytes()), HasSubstr("zip -0 -r"));
  zip = two_members();
  zip.entries[0].flags |= 1;
  EXPECT_ERROR(refused(zip.bytes()), "PROGRAM_BAD_ARCHIVE", "'net/a' is encrypted");
}

// The offsets of the records of a plain archive, so that a test can break them one by one.
struct Records {
  std::string bytes;
  size_t local, central, end;

  Records() {
    Zip zip = two_members();
    zip.plain = true;
    bytes = zip.bytes();
    local = 0;
    central = bytes.find("PK\1\2");
    end = bytes.rfind("PK\5\6");
  }
  std::string with(size_t at, uint64_t number, unsigned width) const {
    return std::string(bytes).replace(at, width, bytes_of(number, width));
  }
};

TEST(Archive, RefusesRecordsThatDisagreeOrAreWrong) {
  const Records p;
  const struct {
    const char* mention;
    std::string bytes;
  } cases[] = {
      {"no end record", p.with(p.end, 0, 4)},
      {"several volumes", p.with(p.end + 4, 1, 2)},
      {"several volumes", p.with(p.end + 8, 1, 2)},
      {"several volumes", p.with(p.central + 34, 1, 2)},
      {"too short for its entries", p.with(p.end + 8, 0xFFFFFFFF, 4)},
      {"after its last entry", p.with(p.end + 8, 0x00010001, 4)},
      {"directory lies outside", p.with(p.end + 12, 0x7FFFFFFF, 4)},
      {"directory lies outside", p.with(p.end + 16, 0xFFFFFFFF, 4)},
      {"directory is damaged", p.with(p.end + 16, p.central - 1, 4)},
      {"two different sizes", p.with(p.central + 20, 9, 4)},
      {"member 'net/a' is a folder", p.with(p.central + 38, 0x33, 1)},
      {"member 'net/a' reaches past the end", p.with(p.central + 20, 0x7FFFFFFF7FFFFFFF, 8)},
      {"member 'net/a' lies outside", p.with(p.central + 42, 0x7FFFFFFF, 4)},
      {"not at the place", p.with(p.central + 42, 1, 4)},
      {"not at the place", p.with(p.local + 30, 'N', 1)},
      {"another size", p.with(p.local + 18, 9, 4)},
      {"another size", p.with(p.local + 22, 9, 4)},
      {"another checksum", p.with(p.local + 14, 9, 4)},
      {"compressed otherwise", p.with(p.local + 8, 8, 2)},
      {"cut off", p.with(p.central + 28, 0xFFFF, 2)},
  };
  for (const auto& [mention, bytes] : cases) EXPECT_ERROR(refused(bytes), "PROGRAM_BAD_ARCHIVE", mention);
  EXPECT_ERROR(refused(""), "PROGRAM_BAD_ARCHIVE", "0 bytes");
  EXPECT_ERROR(refused("PK"), "PROGRAM_BAD_ARCHIVE", "2 bytes");
  EXPECT_ERROR(refused(std::string(100'000, 'x')), "PROGRAM_BAD_ARCHIVE", "no end record");
}

TEST(Archive, RefusesOverlaps) {
  Zip zip;
  zip.plain = true;
  zip.add("net/a", "");
  Zip inner;
  inner.plain = true;
  inner.add("net/b", "in a");
  // The bytes of `a` contain the local header and the bytes of `b`. So each entry alone would be valid.
  zip.entries[0].bytes = inner.bytes().substr(0, 30 + 5 + 4);
  zip.add("net/b", "in a");
  std::string bytes = zip.bytes();
  const size_t second = bytes.find("PK\1\2", bytes.find("PK\1\2") + 4);
  bytes.replace(second + 42, 4, bytes_of(30 + 5, 4));
  EXPECT_ERROR(refused(bytes), "PROGRAM_BAD_ARCHIVE", "'net/a' and 'net/b' overlap");
}

TEST(Archive, Zip64RecordsMustAgree) {
  const std::string bytes = two_members().bytes();
  const size_t wide = bytes.rfind("PK\6\6"), locator = bytes.rfind("PK\6\7"), end = bytes.rfind("PK\5\6");
  const auto with = [&](size_t at, uint64_t number, unsigned width) {
    return std::string(bytes).replace(at, width, bytes_of(number, width));
  };
  EXPECT_ERROR(refused(with(wide, 0, 4)), "PROGRAM_BAD_ARCHIVE", "zip64 end record");
  EXPECT_ERROR(refused(with(locator + 8, bytes.size(), 8)), "PROGRAM_BAD_ARCHIVE", "zip64 end record");
  EXPECT_ERROR(refused(with(locator + 8, ~uint64_t{0}, 8)), "PROGRAM_BAD_ARCHIVE", "zip64 end record");
  EXPECT_ERROR(refused(with(wide + 40, 7, 8)), "PROGRAM_BAD_ARCHIVE", "two end records disagree");
  EXPECT_ERROR(refused(with(wide + 48, 7, 8)), "PROGRAM_BAD_ARCHIVE", "two end records disagree");
  EXPECT_ERROR(refused(with(wide + 32, 7, 8)), "PROGRAM_BAD_ARCHIVE", "several volumes");
  // If all bits of a narrow field are set, the field of the zip64 record counts instead. This holds here and in the
  // entries of the central directory.
  MemoryDisk disk;
  EXPECT_EQ(open(disk, with(end + 8, ~uint64_t{0}, 8)).members().size(), 2U);
  // Without a zip64 locator, only the narrow end record counts. It has the right content here.
  EXPECT_EQ(open(disk, with(locator, 0, 4)).members().size(), 2U);
}

TEST(Archive, AnEntryMayHaveZip64Sizes) {
  Zip zip;
  zip.plain = true;
  zip.add("net/a", "some bytes");
  std::string bytes = zip.bytes();
  const size_t central = bytes.find("PK\1\2");
  const std::string extra = bytes_of(1, 2) + bytes_of(24, 2) + bytes_of(10, 8) + bytes_of(10, 8) + bytes_of(0, 8);
  std::string wide = bytes.substr(0, central);
  std::string entry = bytes.substr(central, 46 + 5);
  entry.replace(20, 8, std::string(8, '\xFF')).replace(42, 4, std::string(4, '\xFF'));
  entry.replace(30, 2, bytes_of(extra.size(), 2));
  const auto pack = [&](const std::string& fields) {
    std::string end = bytes.substr(central + 46 + 5);
    end.replace(12, 4, bytes_of(entry.size() + fields.size(), 4));
    return wide + entry + fields + end;
  };
  MemoryDisk disk;
  const Archive archive = open(disk, pack(extra));
  EXPECT_EQ(archive.text(archive.members()[0], 10), "some bytes");
  const auto refused_with = [&](size_t at, uint64_t number) {
    return refused(pack(std::string(extra).replace(at, 2, bytes_of(number, 2))));
  };
  EXPECT_ERROR(refused_with(2, 16), "PROGRAM_BAD_ARCHIVE", "zip64 field");
  EXPECT_ERROR(refused_with(2, 99), "PROGRAM_BAD_ARCHIVE", "extra field");
  // The narrow fields have all bits set, so they refer to zip64 fields. But there are no zip64 fields.
  EXPECT_ERROR(refused_with(0, 2), "PROGRAM_BAD_ARCHIVE", "lies outside");
}

TEST(Archive, ADataDescriptorMustAgreeWithTheDirectory) {
  const std::string bytes = two_members().bytes();
  const size_t at = bytes.find("PK\7\10");
  MemoryDisk disk;
  for (const size_t field : {4, 8, 12}) {
    std::string wrong = bytes;
    wrong[at + field] ^= 1;
    EXPECT_ERROR(refused(wrong), "PROGRAM_BAD_ARCHIVE", "data descriptor of member 'net/a'");
  }
}

TEST(Archive, AFileThatShrinksAfterOpeningIsAnError) {
  MemoryDisk disk;
  const std::string bytes = two_members().bytes();
  const Archive archive = open(disk, bytes);
  disk.put("f.pt2", bytes.substr(0, 65));
  EXPECT_ERROR(error_of([&] { archive.text(archive.members()[0], 100); }), "PROGRAM_DAMAGED_FILE", "ends before byte");
}

}  // namespace
}  // namespace sinew::program
