#include <gtest/gtest.h>

#include <cmath>
#include <cstring>

#include "base/cost_limit.h"
#include "base/faulty_disk.h"
#include "base/sha256.h"
#include "checkpoint/checkpoint.h"
#include "registry/blob_store.h"
#include "registry/testing.h"

namespace sinew::registry {
namespace {

using checkpoint::TensorBytes;

struct Tensors {
  std::map<std::string, std::string> data;  // the bytes of each float32 tensor, by the tensor's name
  std::string file(const std::string& step) const {
    std::vector<TensorBytes> tensors;
    for (const auto& [name, bytes] : data) {
      tensors.push_back({name,
                         DType::f32,
                         {static_cast<int64_t>(bytes.size() / 4)},
                         std::as_bytes(std::span(bytes.data(), bytes.size()))});
    }
    const auto header = checkpoint::safetensors_header(tensors, {{"sinew_step", step}});
    std::string text(reinterpret_cast<const char*>(header.data()), header.size());
    // all tensors have the same dtype, so the file holds them in the order of their names
    for (const auto& [name, bytes] : data) text += bytes;
    return text;
  }
};

std::string text_of(const std::vector<std::byte>& bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

uint64_t bytes_below(const std::string& path) {
  uint64_t bytes = 0;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(path))
    if (entry.is_regular_file()) bytes += entry.file_size();
  return bytes;
}

TEST(Artifacts, ReadsBackWhatWasPutUnderItsSha256) {
  Folder folder;
  Artifacts artifacts(folder / "a");
  RandomStream random(RandomKey{1});
  auto pin = artifacts.pin();
  for (const size_t size : {size_t{0}, size_t{1}, size_t{4096}, size_t{1} << 20, (size_t{2} << 20) + 7}) {
    const std::string bytes = random_bytes(random, size);
    const BlobInfo stored = pin.put(bytes);
    EXPECT_EQ(stored, (BlobInfo{sha256_hex(bytes), static_cast<int64_t>(size)}));
    EXPECT_EQ(text_of(artifacts.read(stored.digest)), bytes);
    EXPECT_EQ(artifacts.size(stored.digest), size);
    EXPECT_TRUE(artifacts.verify(stored.digest));
  }
  EXPECT_EQ(artifacts.list().size(), 5u);
}

TEST(Artifacts, StoresEqualBytesOnce) {
  Folder folder;
  Artifacts artifacts(folder / "a");
  const std::string bytes(100'000, 'x');
  write_file(folder / "f", bytes);
  auto pin = artifacts.pin();
  const BlobInfo first = pin.put(bytes);
  const uint64_t before = bytes_below(folder / "a");
  EXPECT_EQ(pin.put_file(folder / "f"), first);
  EXPECT_LT(bytes_below(folder / "a"), before + 1000);  // only the pin's file has grown
  EXPECT_EQ(artifacts.list().size(), 1u);
}

TEST(Artifacts, VersionsShareFrozenTensorsAndReadBackBitForBit) {
  Folder folder;
  Artifacts artifacts(folder / "a");
  RandomStream random(RandomKey{2});
  Tensors tensors;
  for (int i = 0; i < 8; ++i) {
    tensors.data["layer" + std::to_string(i) + ".weight"] = random_bytes(random, 64 << 10);
    tensors.data["layer" + std::to_string(i) + ".bias"] = random_bytes(random, 256);
  }
  std::vector<std::string> versions;
  auto pin = artifacts.pin();
  for (int version = 0; version < 10; ++version) {
    tensors.data["layer7.weight"] = random_bytes(random, 64 << 10);
    versions.push_back(tensors.file(std::to_string(version)));
    pin.put(versions.back());
  }
  for (const std::string& version : versions) {
    EXPECT_EQ(text_of(artifacts.read(sha256_hex(version))), version);
    std::vector<std::byte> piece(70'000);
    for (const uint64_t at : {uint64_t{0}, uint64_t{3}, uint64_t{66'000}, version.size() - 10, version.size() + 10}) {
      const size_t got = artifacts.open(sha256_hex(version)).read_at(at, piece);
      EXPECT_EQ(std::string(reinterpret_cast<const char*>(piece.data()), got),
                at > version.size() ? "" : version.substr(at, piece.size()));
    }
  }
  // Ten versions need only the space of one version and of ten changed layers. This is less than a fifth of ten whole
  // versions.
  EXPECT_LT(bytes_below(folder / "a"), versions[0].size() * 2 + (10 * (64 << 10)));
}

TEST(Artifacts, AnOpenBlobKnowsItsChunks) {
  Folder folder;
  Artifacts artifacts(folder / "a");
  RandomStream random(RandomKey{5});
  Tensors tensors;
  for (const char* name : {"a", "b", "c"}) tensors.data[name] = random_bytes(random, 40'000);
  const std::string file = tensors.file("1"), digest = sha256_hex(file);
  artifacts.pin().put(file);
  const Artifacts::Blob blob = artifacts.open(digest);
  std::filesystem::remove(folder / "a" + "/" + digest.substr(0, 2) + "/" + digest + std::string(kManifestSuffix));
  std::vector<std::byte> piece(1000);
  for (uint64_t at = 0; at < file.size(); at += piece.size()) {
    const size_t got = blob.read_at(at, piece);
    EXPECT_EQ(std::string(reinterpret_cast<const char*>(piece.data()), got), file.substr(at, piece.size())) << at;
  }
}

TEST(Artifacts, AFileHasABoundedNumberOfChunks) {
  const auto cuts = [](int tensors, uint64_t bytes) {
    checkpoint::SafetensorsIndex index;
    index.data_offset = 1000;
    for (int i = 0; i < tensors; ++i) {
      const auto begin = static_cast<uint64_t>(i) * bytes;
      index.tensors.push_back({std::to_string(i), DType::u8, {}, begin, begin + bytes});
    }
    return cuts_of(index, 1000 + static_cast<uint64_t>(tensors) * bytes);
  };
  EXPECT_EQ(cuts(1000, 16 << 10).size(), 1001U) << "each tensor is a chunk";
  const auto many = cuts(50'000, 16 << 10);
  EXPECT_LE(many.size(), 1030U);
  EXPECT_GT(many.size(), 900U);
  EXPECT_EQ(many.back(), 1000U + 50'000U * (16 << 10));
  for (size_t i = 1; i < many.size(); ++i) {
    EXPECT_LT(many[i - 1], many[i]);
    EXPECT_EQ((many[i] - 1000) % (16 << 10), 0U) << "a cut is between two tensors";
  }
}

TEST(Artifacts, AFileWithAHugeHeaderIsOneBlob) {
  Folder folder;
  Artifacts artifacts(folder / "a");
  RandomStream random(RandomKey{6});
  Tensors tensors;
  tensors.data["a"] = random_bytes(random, 40'000);
  tensors.data["b"] = random_bytes(random, 40'000);
  std::string file = tensors.file("1");
  uint64_t length = 0;
  std::memcpy(&length, file.data(), sizeof length);
  const uint64_t more = 9 << 20;
  file.insert(8 + length, more, ' ');
  length += more;
  std::memcpy(file.data(), &length, sizeof length);
  ASSERT_TRUE(checkpoint::parse_safetensors(std::as_bytes(std::span(file))));
  auto pin = artifacts.pin();
  pin.put(file);
  EXPECT_EQ(artifacts.list().size(), 1U);
}

TEST(Artifacts, ACheckEndsWhenNobodyWaitsForIt) {
  Folder folder;
  Artifacts artifacts(folder / "a");
  auto pin = artifacts.pin();
  const std::string digest = pin.put(std::string(100'000, 'x')).digest;
  const auto gone = std::make_shared<std::atomic<bool>>(true);
  CostLimit limit(system_clock(), INFINITY, 1 << 30, gone);
  {
    const CostLimit::Scope scope(&limit);
    EXPECT_EQ(code_of([&] { artifacts.check(digest); }), "REQUEST_ABANDONED");
  }
  artifacts.check(digest);
}

TEST(Artifacts, DamagedSafetensorsAreStoredAsTheyAre) {
  Folder folder;
  Artifacts artifacts(folder / "a");
  RandomStream random(RandomKey{3});
  Tensors tensors;
  tensors.data["a"] = random_bytes(random, 40'000);
  tensors.data["b"] = random_bytes(random, 40'000);
  const std::string good = tensors.file("1");
  auto pin = artifacts.pin();
  for (int i = 0; i < 200; ++i) {
    std::string bytes = good.substr(0, random.below(2) == 0 ? good.size() : random.below(good.size()));
    for (uint64_t flips = random.below(4); flips > 0 && !bytes.empty(); --flips)
      bytes[random.below(std::min<size_t>(bytes.size(), 200))] ^= static_cast<char>(1 << random.below(8));
    const BlobInfo stored = pin.put(bytes);
    ASSERT_EQ(text_of(artifacts.read(stored.digest)), bytes) << i;
  }
}

TEST(Artifacts, ADamagedBlobIsReportedAndNeverReadAsGood) {
  Folder folder;
  Artifacts artifacts(folder / "a");
  auto pin = artifacts.pin();
  const BlobInfo stored = pin.put("precious");
  const std::string path = folder / "a" + "/" + stored.digest.substr(0, 2) + "/" + stored.digest;
  write_file(path, "preciouz");
  EXPECT_EQ(code_of([&] { artifacts.read(stored.digest); }), "ARTIFACT_DAMAGED");
  EXPECT_EQ(code_of([&] { artifacts.copy_to(stored.digest, folder / "out"); }), "ARTIFACT_DAMAGED");
  EXPECT_FALSE(std::filesystem::exists(folder / "out"));
  ASSERT_FALSE(artifacts.verify(stored.digest));
  EXPECT_NE(artifacts.verify(stored.digest).error().find("is damaged"), std::string::npos);
  for (const char* damaged : {"preciouz", "preci"}) {  // putting the same bytes again repairs a damaged blob
    write_file(path, damaged);
    pin.put("precious");
    EXPECT_TRUE(artifacts.verify(stored.digest));
  }
}

TEST(Artifacts, RefusesTextThatIsNoDigest) {
  Folder folder;
  Artifacts artifacts(folder / "a");
  write_file(folder / "secret", "secret");
  for (const std::string& name : std::vector<std::string>{"../secret", "", "/etc/passwd", "..", std::string(64, '.')}) {
    EXPECT_FALSE(artifacts.has(name)) << name;
    EXPECT_EQ(code_of([&] { artifacts.size(name); }), "ARTIFACT_BAD_DIGEST") << name;
    EXPECT_EQ(code_of([&] { artifacts.read(name); }), "ARTIFACT_BAD_DIGEST") << name;
    EXPECT_FALSE(artifacts.pin().keep(name)) << name;
  }
}

TEST(Artifacts, AnUnfinishedStreamPutsNothing) {
  Folder folder;
  Artifacts artifacts(folder / "a");
  {
    auto pin = artifacts.pin();
    auto stream = pin.stream();
    stream.write(std::as_bytes(std::span("half", 4)));
  }
  EXPECT_TRUE(artifacts.list().empty());
  EXPECT_EQ(bytes_below(folder / "a"), 0u);
}

TEST(ChunkManifest, ReadsBackAndRefusesDamagedText) {
  const ChunkManifest manifest{30, {{sha256_hex("a"), 10}, {sha256_hex("b"), 20}}};
  const std::string text = to_text(manifest);
  ASSERT_TRUE(parse_chunk_manifest(text));
  EXPECT_EQ(*parse_chunk_manifest(text), manifest);
  RandomStream random(RandomKey{4});
  for (int i = 0; i < 3000; ++i) {
    std::string broken = text;
    broken[random.below(broken.size())] = static_cast<char>(random.bits32());
    const auto parsed = parse_chunk_manifest(broken);
    if (!parsed) continue;
    int64_t sum = 0;
    for (const BlobInfo& chunk : parsed->chunks) sum += chunk.bytes;
    EXPECT_EQ(sum, parsed->bytes) << broken;
  }
  EXPECT_FALSE(parse_chunk_manifest(text.substr(0, text.size() / 2)));
  EXPECT_FALSE(parse_chunk_manifest(std::string(100'000, '[')));
  EXPECT_FALSE(parse_chunk_manifest(R"({"format":"sinew-recipe","version":1,"bytes":3,"parts":[[")" + sha256_hex("a") +
                                    R"(", "3"]]})"));
}

}  // namespace
}  // namespace sinew::registry
