// Tests that a damaged checkpoint never loads. The tests damage a checkpoint at random thousands of times. load must
// report each damage or return the original state.
#include <gtest/gtest.h>

#include <cstdlib>

#include "base/faulty_disk.h"
#include "checkpoint/checkpoint.h"
#include "checkpoint/checksums.h"
#include "checkpoint/manifest.h"
#include "checkpoint/names.h"
#include "checkpoint/samples.h"

namespace sinew::checkpoint {
namespace {

const std::vector<std::string> kStepFiles = {"manifest.json", "model.safetensors", "optimizer.safetensors",
                                             "state.json"};

struct Bytes {
  std::map<std::string, std::vector<std::byte>> files;
};

Bytes contents(FaultyDisk& disk, const std::string& directory) {
  Bytes bytes;
  for (const std::string& name : kStepFiles) bytes.files[name] = disk.read(join(directory, name));
  return bytes;
}

void put(FaultyDisk& disk, const std::string& directory, const std::string& name, const std::vector<std::byte>& bytes) {
  const auto file = disk.create(join(directory, name));
  file->write(bytes);
  file->close();
}

// One damage: a text for the messages of the test, and the file that load must name.
struct Corruption {
  std::string what, file;
  std::optional<uint64_t> offset;  // the offset of the changed byte, if only one byte changed
};

class Corruptor {
 public:
  Corruptor(FaultyDisk& disk, std::string directory, const Bytes& own, const Bytes& other)
      : disk_(disk), directory_(std::move(directory)), own_(own), other_(other) {}

  Corruption corrupt(RandomStream& random) {
    const std::string file = kStepFiles[random.below(kStepFiles.size())];
    auto bytes = own_.files.at(file);
    switch (random.below(9)) {
      case 0:
      case 1:
      case 2: {  // flip a bit
        const uint64_t at = random.below(bytes.size());
        bytes[at] ^= static_cast<std::byte>(1U << random.below(8));
        put(disk_, directory_, file, bytes);
        return {"bit flip", file, at};
      }
      case 3:
        bytes.resize(random.below(bytes.size()));
        put(disk_, directory_, file, bytes);
        return {"truncation", file, {}};
      case 4: {  // zero a block
        const uint64_t begin = random.below(bytes.size()), size = 1 + random.below(512);
        for (uint64_t i = begin; i < std::min<uint64_t>(begin + size, bytes.size()); ++i) bytes[i] = std::byte{0};
        put(disk_, directory_, file, bytes);
        return {bytes == own_.files.at(file) ? "zeros over zeros" : "zeroed block", file, {}};
      }
      case 5:
        bytes.resize(bytes.size() + 1 + random.below(64));
        put(disk_, directory_, file, bytes);
        return {"trailing bytes", file, {}};
      case 6: disk_.remove_file(join(directory_, file)); return {"removed", file, {}};
      case 7: put(disk_, directory_, file, other_.files.at(file)); return {"of another step", file, {}};
      default: return rearrange(random);
    }
  }

 private:
  Corruption rearrange(RandomStream& random) {
    switch (random.below(4)) {
      case 0:
        put(disk_, directory_, "model.safetensors", own_.files.at("optimizer.safetensors"));
        put(disk_, directory_, "optimizer.safetensors", own_.files.at("model.safetensors"));
        return {"parts swapped", "model.safetensors", {}};
      case 1:
        put(disk_, directory_, "ema.safetensors", own_.files.at("model.safetensors"));
        return {"a part too much", "ema.safetensors", {}};
      case 2:
        for (const std::string& file : kStepFiles) put(disk_, directory_, file, other_.files.at(file));
        return {"all of another step", "manifest.json", {}};
      default:
        disk_.remove_file(join(directory_, "state.json"));
        disk_.make_directories(join(directory_, "state.json"));
        return {"a directory for a file", "state.json", {}};
    }
  }

  FaultyDisk& disk_;
  std::string directory_;
  const Bytes& own_;
  const Bytes& other_;
};

void restore(FaultyDisk& disk, const std::string& directory, const Bytes& bytes) {
  disk.remove_all(directory);
  disk.make_directories(directory);
  for (const auto& [name, file] : bytes.files) put(disk, directory, name, file);
}

void corrupt_and_load(int64_t big, int times) {
  FaultyDisk disk;
  const Sample sample(20, big), other(10, big);
  const std::string older = save(disk, kRoot, other.snapshot(), 1.0);
  const std::string directory = save(disk, kRoot, sample.snapshot(), 1.0);
  const Bytes own = contents(disk, directory), others = contents(disk, older);
  RandomStream random(random_key({20261121, static_cast<uint64_t>(big)}));
  int detected = 0;
  for (int i = 0; i < times; ++i) {
    restore(disk, directory, own);
    const Corruption done = Corruptor(disk, directory, own, others).corrupt(random);
    SCOPED_TRACE(testing::Message() << i << ": " << done.what << " in " << done.file);
    const auto loaded = load(disk, directory);
    const auto verified = verify(disk, directory);
    ASSERT_EQ(loaded.has_value(), verified.has_value());
    if (loaded) {
      ASSERT_TRUE(sample.equals(*loaded)) << "LOADED WRONG";
      ASSERT_EQ(done.what, "zeros over zeros");
      continue;
    }
    ++detected;
    const Damage& damage = loaded.error();
    ASSERT_EQ(damage.file, done.file) << damage.what;
    ASSERT_EQ(damage.directory, directory);
    ASSERT_EQ(verified.error().what, damage.what);
    if (done.offset && done.file != "manifest.json") {
      ASSERT_TRUE(damage.what.starts_with("chunk " + std::to_string(*done.offset / kChunkBytes) + " ")) << damage.what;
    }
    const Newest newest = load_newest(disk, kRoot);
    ASSERT_TRUE(newest.loaded && other.equals(*newest.loaded)) << "no fall back";
    ASSERT_EQ(newest.damaged.size(), 1U);
  }
  EXPECT_GT(detected, times * 9 / 10);
}

TEST(Corruption, FiveThousandRandomDamagesNeverLoadWrongData) {
  corrupt_and_load(0, 5000);
}
TEST(LongCorruption, TenThousandRandomDamagesNeverLoadWrongData) {
  if (std::getenv("SINEW_LONG") == nullptr) GTEST_SKIP();
  corrupt_and_load(512, 10'000);
}
TEST(Corruption, NamesTheDamagedChunkOfALargeFile) {
  corrupt_and_load(2 * 1024 * 1024 + 12345, 60);
}

TEST(Corruption, FindsABitFlipInEveryByteOfManifestStateAndHeader) {
  FaultyDisk disk;
  const Sample sample(20);
  const std::string directory = save(disk, kRoot, sample.snapshot(), 1.0);
  for (const std::string& name : kStepFiles) {
    auto& bytes = disk.raw(join(directory, name));
    for (size_t i = 0; i < std::min<size_t>(bytes.size(), 2500); ++i) {
      const int bit = static_cast<int>(i % 8);
      bytes[i] ^= static_cast<std::byte>(1 << bit);
      const auto loaded = load(disk, directory);
      ASSERT_FALSE(loaded) << name << " byte " << i;
      ASSERT_EQ(loaded.error().file, name);
      bytes[i] ^= static_cast<std::byte>(1 << bit);
    }
  }
  EXPECT_TRUE(load(disk, directory));
}

TEST(Corruption, FindsATruncationOfEachFile) {
  FaultyDisk disk;
  const std::string directory = save(disk, kRoot, Sample(20).snapshot(), 1.0);
  for (const std::string& name : kStepFiles) {
    const auto whole = disk.raw(join(directory, name));
    for (size_t size = 0; size < whole.size(); size += 1 + size / 64) {
      disk.raw(join(directory, name)).resize(size);
      const auto loaded = load(disk, directory);
      ASSERT_FALSE(loaded) << name << " at " << size;
      ASSERT_EQ(loaded.error().file, name);
    }
    disk.raw(join(directory, name)) = whole;
  }
}

TEST(Corruption, SaysThatAZeroedChunkWasNeverWritten) {
  FaultyDisk disk;
  const std::string directory = save(disk, kRoot, Sample(20, 3 << 20).snapshot(), 1.0);
  auto& bytes = disk.raw(join(directory, "model.safetensors"));
  std::fill(bytes.begin() + (1 << 20), bytes.begin() + (2 << 20), std::byte{0});
  const auto loaded = load(disk, directory);
  ASSERT_FALSE(loaded);
  EXPECT_NE(loaded.error().what.find("chunk 1 (bytes 1048576 to 2097152)"), std::string::npos) << loaded.error().what;
  EXPECT_NE(loaded.error().what.find("never written"), std::string::npos);
}

TEST(Corruption, AcceptsAnyStepUnderOtherNamesAndIgnoresHiddenFiles) {
  FaultyDisk disk;
  const Sample sample(20);
  const std::string directory = save(disk, kRoot, sample.snapshot(), 1.0);
  disk.create(join(directory, ".nfs0001"))->close();
  point_link(disk, kRoot, "last", Step(20));
  const auto last = load(disk, join(kRoot, "last"));
  ASSERT_TRUE(last);
  EXPECT_TRUE(sample.equals(*last));
  disk.rename(directory, join(kRoot, "step-00000021"));
  const auto moved = load(disk, join(kRoot, "step-00000021"));
  ASSERT_FALSE(moved);
  EXPECT_EQ(moved.error().file, "manifest.json");
  disk.rename(join(kRoot, "step-00000021"), join(kRoot, "my-copy"));
  EXPECT_TRUE(load(disk, join(kRoot, "my-copy")));
}

TEST(Corruption, AReadErrorIsDamageOfThatFile) {
  FaultyDisk disk;
  const std::string directory = save(disk, kRoot, Sample(20).snapshot(), 1.0);
  const int64_t before = disk.calls();
  ASSERT_TRUE(load(disk, directory));
  const int64_t calls = disk.calls() - before;
  for (int64_t k = 1; k <= calls; ++k) {
    disk.fail_at(k, EIO);
    const auto loaded = load(disk, directory);
    ASSERT_FALSE(loaded);
    EXPECT_NE(loaded.error().what.find("injected failure"), std::string::npos);
  }
}

TEST(Manifest, IsReadBackAsWritten) {
  RandomStream random(random_key({5}));
  for (int i = 0; i < 300; ++i) {
    Manifest manifest{Step(static_cast<int64_t>(random.bits64() >> 1)),
                      {random.bits64(), random.bits64()},
                      random.normal() * 1e9,
                      {}};
    manifest.files["state.json"];
    for (uint64_t file = random.below(4); file > 0; --file) {
      FileChecksums checksums{random.below(4 * kChunkBytes), {random.bits64(), 1}, {}};
      checksums.chunks.resize((checksums.bytes + kChunkBytes - 1) / kChunkBytes, {random.bits64(), 2});
      manifest.files["part" + std::to_string(file) + ".safetensors"] = checksums;
    }
    const auto back = parse_manifest(manifest_text(manifest));
    ASSERT_TRUE(back) << back.error();
    ASSERT_EQ(*back, manifest);
  }
}

// The manifests of this test have a right checksum but wrong contents.
TEST(Manifest, RefusesWhatVersionOneDoesNotAllow) {
  Manifest manifest{Step(7), {1, 2}, 3.5, {}};
  manifest.files["state.json"];
  manifest.files["model.safetensors"] = {5, {3, 4}, {{5, 6}}};
  const std::string text = manifest_text(manifest), body = text.substr(0, text.size() - 36);
  ASSERT_TRUE(parse_manifest(with_checksum(body)));
  const std::string deep(100'000, '[');
  const std::pair<std::string, std::string> changes[] = {
      {"\"version\": 1", "\"version\": 2"},
      {"\"version\": 1", "\"version\": 1.0"},
      {"\"version\": 1,", ""},
      {"\"step\": 7", "\"step\": -7"},
      {"\"step\": 7", "\"step\": 7.0"},
      {"\"step\": 7", "\"step\": 18446744073709551615"},
      {"\"step\": 7", "\"step\": 99999999999999999999999"},
      {"\"step\": 7", "\"step\": \"7\""},
      {"\"step\": 7,", "\"step\": 7, \"step\": 7,"},
      {"\"step\": 7,", "\"step\": 7, \"extra\": 1,"},
      {"\"step\": 7", "\"step\": " + deep},
      {"\"step\": 7", "\"step\": null"},
      {"3.5", "\"now\""},
      {"1048576", "4096"},
      {"sinew-checkpoint", "sinew"},
      {"model.safetensors", "../model.safetensors"},
      {"model.safetensors", "/etc/passwd"},
      {"model.safetensors", "manifest.json"},
      {"model.safetensors", "a\\u0000b.safetensors"},
      {"model.safetensors", "state.json"},
      {"state.json", "other.safetensors"},
      {"\"bytes\": 5", "\"bytes\": 5000000"},
      {"\"bytes\": 5", "\"bytes\": 18446744073709551615"},
      {"00000000000000050000000000000006", "0000000000000005000000000000000G"},
      {"00000000000000050000000000000006", "05"},
      {"\"files\": {", "\"files\": [{"},
      {"{", "[{"},
      {"\"digest\"", "\"Digest\""},
  };
  for (const auto& [from, to] : changes) {
    std::string changed = body;
    const size_t at = changed.find(from);
    ASSERT_NE(at, std::string::npos) << from;
    changed.replace(at, from.size(), to);
    const auto parsed = parse_manifest(with_checksum(changed));
    EXPECT_FALSE(parsed) << from << " -> " << to;
    if (!parsed) {
      EXPECT_LT(parsed.error().size(), 400U);
    }
  }
  EXPECT_FALSE(parse_manifest(""));
  EXPECT_FALSE(parse_manifest(with_checksum("")));
  EXPECT_FALSE(parse_manifest(with_checksum(body + std::string(1, '\0'))));
  EXPECT_FALSE(parse_manifest(text + "\n"));
  EXPECT_FALSE(parse_manifest(" " + text));
}

TEST(ChecksumStream, DoesNotDependOnTheSizesOfThePieces) {
  const auto bytes = random_bytes({3}, 2 * kChunkBytes + 77);
  ChecksumStream whole;
  whole.update(bytes);
  const FileChecksums expected = whole.finish();
  EXPECT_EQ(expected.bytes, bytes.size());
  EXPECT_EQ(expected.whole, digest_of(std::span<const std::byte>(bytes)));
  ASSERT_EQ(expected.chunks.size(), 3U);
  EXPECT_EQ(expected.chunks[1], digest_of(std::span<const std::byte>(bytes).subspan(kChunkBytes, kChunkBytes)));
  RandomStream random(random_key({6}));
  for (int i = 0; i < 20; ++i) {
    ChecksumStream pieces;
    for (size_t at = 0; at < bytes.size();) {
      const size_t size = std::min<size_t>(bytes.size() - at, random.below(uint64_t{1} << (1 + random.below(22))));
      pieces.update(std::span(bytes).subspan(at, size));
      at += size;
    }
    ASSERT_EQ(pieces.finish(), expected);
  }
  ChecksumStream even;
  even.update(std::span(bytes).first(kChunkBytes));
  EXPECT_EQ(even.finish().chunks.size(), 1U);
  EXPECT_EQ(ChecksumStream().finish().chunks.size(), 0U);
}

}  // namespace
}  // namespace sinew::checkpoint
