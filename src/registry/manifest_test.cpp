#include <gtest/gtest.h>

#include "base/sha256.h"
#include "registry/file_digests.h"
#include "registry/registry.h"
#include "registry/testing.h"

namespace sinew::registry {
namespace {

std::vector<std::string> sentences(const DataManifest& before, const DataManifest& after) {
  std::vector<std::string> text;
  for (const DataChange& change : compare(before, after)) text.push_back(to_string(change));
  return text;
}

TEST(Manifest, ReportsWhatChangedInAFolder) {
  Folder folder;
  write_file(folder / "d/cats/1.jpg", "one");
  write_file(folder / "d/cats/2.jpg", "two");
  write_file(folder / "d/dogs/3.jpg", "three");
  write_file(folder / "d/.hidden", "x");
  const DataManifest before = manifest_of_path(folder / "d");
  EXPECT_EQ(before.splits.at("train").count, 3);
  EXPECT_EQ(before.splits.at("train").bytes, 11);
  EXPECT_EQ(before.splits.at("train").files[0].digest, sha256_hex("one"));
  EXPECT_TRUE(sentences(before, manifest_of_path(folder / "d")).empty());

  write_file(folder / "d/cats/2.jpg", "TWO");
  std::filesystem::rename(folder / "d/dogs/3.jpg", folder / "d/dogs/4.jpg");
  std::filesystem::remove(folder / "d/cats/1.jpg");
  write_file(folder / "d/dogs/5.jpg", "five");
  const std::vector<std::string> expected = {"train: changed path/cats/2.jpg",
                                             "train: renamed path/dogs/3.jpg to path/dogs/4.jpg",
                                             "train: added path/dogs/5.jpg", "train: removed path/cats/1.jpg"};
  EXPECT_EQ(sentences(before, manifest_of_path(folder / "d")), expected);
}

TEST(Manifest, TheSameDataElsewhereHasTheSameDigest) {
  Folder folder;
  for (const char* where : {"a", "b/c"}) write_file(folder / where + "/x.csv", "1,2\n");
  EXPECT_EQ(manifest_of_path(folder / "a").digest, manifest_of_path(folder / "b/c").digest);
  EXPECT_NE(manifest_of_path(folder / "a").splits.at("train").files[0].path,
            manifest_of_path(folder / "b/c").splits.at("train").files[0].path);
}

TEST(Manifest, APatternMeansTheFilesThatFitIt) {
  Folder folder;
  for (const char* name : {"p-1.csv", "p-2.csv", "q.csv"}) write_file(folder / name, name);
  const DataManifest before = manifest_of_path(folder / "p-*.csv");
  EXPECT_EQ(before.splits.at("train").count, 2);
  write_file(folder / "q.csv", "other");
  EXPECT_EQ(manifest_of_path(folder / "p-*.csv").digest, before.digest);
  write_file(folder / "p-3.csv", "x");
  EXPECT_EQ(sentences(before, manifest_of_path(folder / "p-*.csv")),
            std::vector<std::string>{"train: added path/p-3.csv"});
}

TEST(Manifest, ASplitTakenFromTrainDependsOnTrainFractionAndSeed) {
  Folder folder;
  write_file(folder / "t.csv", "1");
  spec::Job job;
  job.data.train.path = folder / "t.csv";
  job.data.split_val = 0.1;
  job.trainer.seed = 7;
  const DataManifest first = manifest_of_job(job);
  EXPECT_EQ(first.splits.at("val").from_train, "0.1 of train, seed 7, stratified");
  EXPECT_EQ(first.splits.at("test").from_train, "as train has it");
  job.trainer.seed = 8;
  const DataManifest other_seed = manifest_of_job(job);
  EXPECT_EQ(sentences(first, other_seed), std::vector<std::string>{"val: changed"});
  job.trainer.seed = 7;
  write_file(folder / "t.csv", "2");
  const DataManifest other_data = manifest_of_job(job);
  EXPECT_NE(other_data.splits.at("val").digest, first.splits.at("val").digest);
  EXPECT_EQ(sentences(first, other_data).size(), 1u) << "what was cut as before is not told again";
}

// Two digests of a split may be equal only if both splits have the same samples, made from the data in the same way.
TEST(Manifest, AnotherSplitForTestOrAnotherTargetIsOtherValidationData) {
  Folder folder;
  write_file(folder / "t.csv", "1");
  spec::Job job;
  job.data.train.path = folder / "t.csv";
  job.data.split_val = 0.2;
  const auto val_with = [&](auto change) {
    spec::Job other = job;
    change(other.data);
    return manifest_of_job(other);
  };
  const DataManifest first = manifest_of_job(job);
  const DataManifest cut = val_with([](spec::DataOptions& data) { data.split_test = 0.1; });
  EXPECT_EQ(cut.splits.at("val").from_train, "0.2 of train after 0.1 for test, seed 0, stratified");
  std::set<std::string> digests = {first.splits.at("val").digest, cut.splits.at("val").digest};
  digests.insert(val_with([](auto& data) { data.split_test = 0.2; }).splits.at("val").digest);
  digests.insert(val_with([](auto& data) { data.stratify = false; }).splits.at("val").digest);
  digests.insert(val_with([](auto& data) { data.split_group = "customer"; }).splits.at("val").digest);
  digests.insert(val_with([](auto& data) { data.split_group = "shop"; }).splits.at("val").digest);
  digests.insert(val_with([](auto& data) { data.split_by = "day"; }).splits.at("val").digest);
  digests.insert(val_with([](auto& data) { data.text.window = 32; }).splits.at("val").digest);
  digests.insert(val_with([](auto& data) { data.text.tokens = "bytes"; }).splits.at("val").digest);
  digests.insert(val_with([](auto& data) { data.on_corrupt = "skip"; }).splits.at("val").digest);
  const DataManifest target = val_with([](auto& data) { data.columns.target = "y"; });
  digests.insert(target.splits.at("val").digest);
  EXPECT_EQ(digests.size(), 11u);
  EXPECT_EQ(sentences(first, target), std::vector<std::string>{"train: read as target y, before as it is"});
  // A test split with its own files takes nothing from train.
  write_file(folder / "test.csv", "2");
  EXPECT_EQ(val_with([&](auto& data) { data.test.path = folder / "test.csv"; }).splits.at("val").digest,
            first.splits.at("val").digest);
}

TEST(Manifest, ReadsBackAndRefusesDamagedText) {
  Folder folder;
  write_file(folder / "d/1", "one");
  const DataManifest manifest =
      make_manifest({{"train", {{{"path", folder / "d"}}, ""}}, {"val", {{}, "0.2 of train"}}});
  const auto back = parse_manifest(to_json(manifest));
  ASSERT_TRUE(back) << back.error();
  EXPECT_EQ(*back, manifest);
  const std::string text = to_json(manifest);
  RandomStream random(RandomKey{1});
  for (int i = 0; i < 2000; ++i) {
    std::string broken = text;
    broken[random.below(broken.size())] = static_cast<char>(random.bits32());
    parse_manifest(broken);  // must not crash
  }
  EXPECT_FALSE(parse_manifest(""));
  const std::string name(40, 'n');
  for (const std::string& file : {"[\"" + name + "\"]", "[\"" + name + "\", \"" + name + "\", \"3\", \"d\"]",
                                  "[\"" + name + "\", \"" + name + "\", 3, []]"}) {
    EXPECT_FALSE(parse_manifest(R"({"format":"sinew-data","version":1,"digest":"d","parts":{"train":{"digest":"d",)"
                                R"("files":[)" +
                                file + "]}}}"))
        << file;
  }
  EXPECT_FALSE(parse_manifest("{\"format\":\"sinew-data\"}"));
}

TEST(Manifest, CyclesOfLinksAreNotFollowed) {
  Folder folder;
  for (const std::string name : {"a", "b"}) {
    write_file(folder / "d/" + name + "/1", name);
    std::filesystem::create_directory_symlink("..", folder / "d/" + name + "/up");
  }
  std::filesystem::create_directory_symlink(".", folder / "d/here");
  write_file(folder / "other/2", "2");
  std::filesystem::create_directory_symlink("../other", folder / "d/other");  // the data includes a linked folder
  std::filesystem::create_symlink("nowhere", folder / "d/dangling");
  std::filesystem::create_symlink("itself", folder / "d/itself");
  std::vector<std::string> names;
  const DataManifest manifest = manifest_of_path(folder / "d");
  for (const DataFile& file : manifest.splits.at("train").files) names.push_back(file.name);
  EXPECT_EQ(names, (std::vector<std::string>{"path/a/1", "path/b/1", "path/other/2"}));

  std::string deep = folder / "deep";
  for (int i = 0; i < 80; ++i) deep += "/d";
  std::filesystem::create_directories(deep);
  EXPECT_EQ(code_of([&] { manifest_of_path(folder / "deep"); }), "DATA_FILE_UNREADABLE");
}

TEST(Manifest, ErrorsNameTheUnreadableFile) {
  Folder folder;
  try {
    manifest_of_path(folder / "nothing");
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.code, ErrorCode("DATA_FILE_UNREADABLE"));
    EXPECT_NE(std::string(error.what()).find("nothing"), std::string::npos);
    EXPECT_FALSE(error.hint.empty());
  }
}

TEST(FileDigests, AreCachedWhileTheFileIsUnchanged) {
  Folder folder;
  HandClock late;  // far ahead of the files' times
  late.seconds = 1e9;
  write_file(folder / "f", "one");
  int64_t read = 0;
  ManifestOptions options;
  options.cache = folder / "cache.json";
  options.clock = &late;
  options.before_reading = [&](int64_t bytes) { read += bytes; };
  const std::string first = manifest_of_path(folder / "f", options).digest;
  EXPECT_EQ(read, 3);
  EXPECT_EQ(manifest_of_path(folder / "f", options).digest, first);
  EXPECT_EQ(read, 3);
  write_file(folder / "f", "two");  // the same size
  EXPECT_NE(manifest_of_path(folder / "f", options).digest, first);
  EXPECT_EQ(read, 6);
  write_file(folder / "cache.json", "{\"x\": [1");  // a damaged cache is ignored
  manifest_of_path(folder / "f", options);
  EXPECT_EQ(read, 9);
}

// All digests that were used are cached, even if there are more than half a million.
TEST(FileDigests, OfHalfAMillionFilesAreCached) {
  Folder folder;
  HandClock late;
  {
    std::ofstream cache(folder / "cache.jsonl");
    const std::string digest = sha256_hex("");
    for (int i = 0; i < 500'001; ++i) cache << "[\"/gone/" << i << "\",1,2,3,4,5,\"" << digest << "\"]\n";
  }
  FileDigests digests(folder / "cache.jsonl", late);
  for (const int i : {0, 250'000, 500'000})
    EXPECT_TRUE(digests.knows("/gone/" + std::to_string(i), {1, 2, 3, 4, 5})) << i;
}

// If the file is still new when reading begins, its digest must not be cached, even if reading takes longer than two
// seconds.
TEST(FileDigests, AreNotCachedIfTheFileWasNewWhenReadingBegan) {
  struct SlowDisk final : Clock {  // a clock on which reading takes a minute
    static int64_t read_so_far() {
      std::ifstream facts("/proc/self/io");
      std::string name;
      int64_t bytes = 0;
      facts >> name >> bytes;  // rchar
      return bytes;
    }
    double monotonic_seconds() const override { return wall_seconds(); }
    double wall_seconds() const override { return begin + (read_so_far() - before > (4 << 20) ? 60 : 1); }
    void sleep_seconds(double) override {}
    double begin = 0;
    int64_t before = read_so_far();
  };
  Folder folder;
  write_file(folder / "f", std::string(5 << 20, 'x'));
  const FileStamp facts = stamp_of(folder / "f");
  SlowDisk clock;
  clock.begin = static_cast<double>(facts.changed_ns) / 1e9;
  FileDigests digests("", clock);
  digests.digest(folder / "f", facts);
  EXPECT_GT(clock.wall_seconds(), clock.begin + 50);
  EXPECT_FALSE(digests.knows(folder / "f", facts));
}

TEST(FileDigests, AreNotCachedWhileTheFileMayStillChange) {
  Folder folder;
  write_file(folder / "f", "one");
  FileDigests digests(folder / "cache.json", system_clock());
  const FileStamp facts = stamp_of(folder / "f");
  digests.digest(folder / "f", facts);
  EXPECT_FALSE(digests.knows(folder / "f", facts));  // the file is too new
}

}  // namespace
}  // namespace sinew::registry
