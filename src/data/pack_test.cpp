#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <map>
#include <sstream>

#include "base/disk.h"
#include "data/fixtures.h"
#include "data/formats.h"
#include "data/image_fixtures.h"
#include "data/in_order.h"
#include "data/pack_index.h"
#include "data/tar.h"

namespace sinew::data {
namespace {

namespace fs = std::filesystem;
using testing::ElementsAre;
using testing::IsEmpty;

class Packs : public Images {
 protected:
  // 20 images of three classes in two formats; some have names that need another one in a tar.
  spec::DataOptions folder() const {
    put_classes(6);
    put("train/cat/0.jpg", jpeg_of(smooth_pixels(50, 6, 8, 3)));  // beside 0.png
    put("train/cat/a.b.c.JPEG", jpeg_of(smooth_pixels(51, 6, 8, 3)));
    spec::DataOptions result = options();
    result.normalize = "auto";
    result.split_val = 0.2;
    result.split_test = 0.1;
    result.augment.flip = 0.5;
    return result;
  }
  PackResult pack(const spec::DataOptions& from, const std::string& to, bool decode = false, int64_t shard = 4096,
                  int64_t threads = 2) const {
    return pack_images(from, 7, {path(to), shard, decode, threads, {}});
  }
  spec::DataOptions packed(const std::string& name, const spec::DataOptions& from) const {
    spec::DataOptions result = from;
    result.format = "webdataset";
    result.split_val = result.split_test = 0;
    result.train = result.val = result.test = {};
    result.train.path = result.val.path = result.test.path = path(name);
    return result;
  }
  std::string file(const std::string& name) const { return read_text(system_disk(), path(name)); }
  std::map<std::string, std::string> files(const std::string& folder) const {
    std::map<std::string, std::string> found;
    for (const Disk::Entry& entry : system_disk().list(path(folder)))
      found[entry.name] = file(folder + "/" + entry.name);
    return found;
  }
};

bool same_bytes(const Array& a, const Array& b) {
  return a.shape == b.shape && a.dtype == b.dtype && a.bytes.size() == b.bytes.size() &&
         std::memcmp(a.bytes.data(), b.bytes.data(), a.bytes.size()) == 0;
}

void expect_equal(const Dataset& a, const Dataset& b) {
  for (const Split split : {Split::train, Split::val, Split::test}) {
    ASSERT_EQ(a.size(split), b.size(split));
    ASSERT_GT(a.size(split), 0);
    std::vector<int64_t> samples;
    for (int64_t i = a.size(split); i-- > 0;) samples.push_back(i);
    const SampleContext context{3, 2, true};
    const Batch one = a.load(split, samples, context), two = b.load(split, samples, context);
    EXPECT_EQ(one.samples, two.samples);
    EXPECT_TRUE(same_bytes(one.input, two.input)) << to_string(split);
    EXPECT_TRUE(same_bytes(one.target, two.target)) << to_string(split);
  }
}

TEST_F(Packs, GiveTheSamplesOfTheFolder) {
  const spec::DataOptions from = folder();
  const PackResult result = pack(from, "out");
  const auto original = open_dataset(from, 7);
  const auto same = open_dataset(packed("out", from), 99);
  EXPECT_EQ(original->info().class_names, same->info().class_names);
  EXPECT_EQ(original->info().preparation, same->info().preparation) << "mean and deviation";
  expect_equal(*original, *same);
  ASSERT_EQ(result.splits.size(), 3U);
  EXPECT_GT(result.splits[0].shards, 1);
  EXPECT_EQ(result.splits[0].samples, original->size(Split::train));
  EXPECT_TRUE(fs::exists(path("out/train-000001.tar")));
  EXPECT_TRUE(fs::exists(path("out/val-000000.tar")));
  EXPECT_FALSE(result.rounded);

  fs::remove(path("out/pack.index"));  // another program could have written the tars
  const auto scanned = open_dataset(packed("out", from), 99);
  EXPECT_THAT(scanned->info().class_names, ElementsAre("0", "1", "2"));
  EXPECT_THAT(scanned->info().notes, IsEmpty());
  expect_equal(*original, *scanned);
}

TEST_F(Packs, EqualImagesGiveEqualBytes) {
  const spec::DataOptions from = folder();
  pack(from, "one", false, 4096, 1);
  pack(from, "two", false, 4096, 5);
  EXPECT_TRUE(files("one") == files("two"));
  pack(packed("one", from), "three");
  const auto one = files("one"), three = files("three");
  for (const auto& [name, bytes] : one) {
    if (name == "pack.index") continue;
    EXPECT_TRUE(bytes == three.at(name)) << name << ": a pack of a pack is the same pack";
  }
}

TEST_F(Packs, APartOfAPackIsReadWithTheIndex) {
  const spec::DataOptions from = folder();
  pack(from, "out", false, 2048);
  spec::DataOptions some = packed("out", from);
  some.val = some.test = {};
  some.train.path = path("out/train-{000001..000002}.tar");
  const auto part = open_dataset(some, 1);
  EXPECT_THAT(part->info().class_names, ElementsAre("ant", "bee", "cat")) << "the index names the classes";
  EXPECT_EQ(part->describe(Split::train, 0), open_dataset(packed("out", from), 1)->describe(Split::train, 1));
}

TEST_F(Packs, AChangedByteOfASampleIsFound) {
  spec::DataOptions from = folder();
  from.split_val = from.split_test = 0;
  pack(from, "out", false, 1 << 20);
  spec::DataOptions to = packed("out", from);
  to.val = to.test = {};
  const auto dataset = open_dataset(to, 1);
  const std::string whole = file("out/train-000000.tar");
  const std::string jpeg = file("train/cat/a.b.c.JPEG");
  const size_t at = whole.find(jpeg);
  ASSERT_NE(at, std::string::npos);
  for (const size_t offset : {size_t{0}, jpeg.size() / 2, jpeg.size() - 1}) {
    std::string changed = whole;
    changed[at + offset] = static_cast<char>(changed[at + offset] ^ 1);
    put("out/train-000000.tar", changed);
    EXPECT_ERROR(error_of([&] { load_all(*dataset, Split::train); }), "DATA_CORRUPT_IMAGE",
                 "train-000000.tar:cat/a_b_c.jpeg: the bytes are not those that were packed");
  }
  EXPECT_ERROR(error_of([&] { pack(to, "again"); }), "DATA_CORRUPT_IMAGE", "a_b_c.jpeg");
  EXPECT_FALSE(fs::exists(path("again")));
  EXPECT_FALSE(fs::exists(path("again.packing"))) << "a pack that fails leaves nothing";
  to.on_corrupt = "skip";
  const Batch batch = load_all(*open_dataset(to, 1), Split::train);
  ASSERT_EQ(batch.skipped.size(), 1U);
  EXPECT_HAS(batch.skipped[0].what, "cat/a_b_c.jpeg");
}

TEST_F(Packs, DecodedPixelsNeedNoDecoding) {
  spec::DataOptions from = folder();
  EXPECT_FALSE(pack(from, "exact", true).rounded);
  expect_equal(*open_dataset(from, 7), *open_dataset(packed("exact", from), 7));

  from.image.size = {4, 5};
  from.normalize = "none";
  from.augment = {};
  EXPECT_TRUE(pack(from, "scaled", true).rounded);
  const Batch original = load_all(*open_dataset(from, 7), Split::train),
              rounded = load_all(*open_dataset(packed("scaled", from), 7), Split::train);
  ASSERT_EQ(original.input.shape, rounded.input.shape);
  for (int64_t i = 0; i < original.input.count(); ++i)
    ASSERT_NEAR(original.input.as<float>()[i], rounded.input.as<float>()[i], 0.5 / 255 + 1e-6);
  EXPECT_TRUE(same_bytes(original.target, rounded.target));
}

TEST_F(Packs, CorruptImagesKeepTheirPlace) {
  spec::DataOptions from = folder();
  put("train/bee/1.png", std::string("no image"));
  from.image.size = {6, 8};
  from.on_corrupt = "skip";
  EXPECT_EQ(pack(from, "out", true).left_encoded, 1);
  pack(from, "encoded");
  const auto original = open_dataset(from, 7);
  expect_equal(*original, *open_dataset(packed("out", from), 7));
  expect_equal(*original, *open_dataset(packed("encoded", from), 7));
  from.on_corrupt = "fail";
  EXPECT_ERROR(error_of([&] { pack(from, "other", true); }), "DATA_CORRUPT_IMAGE", "bee/1.png");
}

TEST_F(Packs, AListKeepsItsNumbers) {
  put("train/a.png", png_of(noisy_pixels(1, 6, 8, 3)));
  put("train/b.png", png_of(noisy_pixels(2, 6, 8, 3)));
  const spec::DataOptions from =
      list_options("a.png\t0.5\nb.png,-2\n../train/a.png,7\n" + path("train/b.png") + ",1e3\n");
  pack(from, "out");
  spec::DataOptions options = packed("out", from);
  options.val = options.test = {};
  const auto dataset = open_dataset(options, 1);
  EXPECT_EQ(dataset->info().task, Task::regression);
  const Batch one = load_all(*open_dataset(from, 1), Split::train), two = load_all(*dataset, Split::train);
  EXPECT_TRUE(same_bytes(one.input, two.input));
  EXPECT_TRUE(same_bytes(one.target, two.target));
  EXPECT_EQ(dataset->describe(Split::train, 2), "train/a.png") << "no name leads out of the folder of the tar";
}

TEST_F(Packs, RefuseWhatCannotBePacked) {
  const spec::DataOptions from = folder();
  put("full/file", std::string("x"));
  EXPECT_ERROR(error_of([&] { pack(from, "full"); }), "FILE_EXISTS", "full exists and is not an empty folder");
  fs::create_directories(path("empty"));
  pack(from, "empty");
  fs::create_directories(path("new.packing"));
  EXPECT_ERROR(error_of([&] { pack(from, "new"); }), "FILE_EXISTS", "new.packing");
  spec::DataOptions table;
  put("t.csv", std::string("a,b\n1,2\n"));
  table.train.path = path("t.csv");
  EXPECT_ERROR(error_of([&] { pack(table, "out"); }), "DATA_BAD_OPTION", "csv needs no packing");
  spec::DataOptions folds = from;
  folds.split_val = 0;
  folds.folds = 3;
  EXPECT_ERROR(error_of([&] { pack(folds, "out"); }), "DATA_BAD_OPTION", "data.split.folds");
}

TEST_F(Packs, WholeNumbersAsNamesStayNames) {
  for (const std::string name : {"0", "1", "2", "10", "11"}) {
    for (int i = 0; i < 2; ++i)
      put("train/" + name + "/" + std::to_string(i) + ".png", png_of(noisy_pixels(next_++, 6, 8, 3)));
  }
  const spec::DataOptions from = options();
  pack(from, "out");
  spec::DataOptions to = packed("out", from);
  to.val = to.test = {};
  const auto labels = [&](const Dataset& dataset) {
    const Batch batch = load_all(dataset, Split::train);
    std::map<std::string, std::string> found;
    for (int64_t i = 0; i < batch.count(); ++i)
      found[dataset.describe(Split::train, i)] =
          dataset.info().class_names[static_cast<size_t>(batch.target.as<int64_t>()[i])];
    return found;
  };
  const auto original = labels(*open_dataset(from, 1));
  const auto indexed = open_dataset(to, 1);
  EXPECT_EQ(labels(*indexed), original);
  fs::create_directories(path("copied"));
  fs::copy(path("out/train-000000.tar"), path("copied/test-000000.tar"));
  spec::DataSource copied;
  copied.path = path("copied/test-000000.tar");
  const Batch batch = load_all(*open_inference_data({}, indexed->info(), copied, true), Split::test);
  const Batch same = load_all(*indexed, Split::train);
  ASSERT_GE(batch.count(), 1);
  for (int64_t i = 0; i < batch.count(); ++i)
    EXPECT_EQ(batch.target.as<int64_t>()[i], same.target.as<int64_t>()[i]) << i;
  fs::remove(path("out/pack.index"));
  EXPECT_EQ(labels(*open_dataset(to, 1)), original);
}

TEST_F(Packs, ClassesCalledLikeFractionsAreClasses) {
  for (const std::string name : {"0.5", "1.0"}) {
    for (int i = 0; i < 2; ++i)
      put("train/" + name + "/" + std::to_string(i) + ".png", png_of(noisy_pixels(next_++, 6, 8, 3)));
  }
  pack(options(), "out");
  spec::DataOptions to = packed("out", options());
  to.val = to.test = {};
  const auto dataset = open_dataset(to, 1);
  EXPECT_EQ(dataset->info().task, Task::classification);
  EXPECT_THAT(dataset->info().class_names, ElementsAre("0.5", "1.0"));
  to.task = "regression";
  EXPECT_ERROR(error_of([&] { open_dataset(to, 1); }), "DATA_BAD_OPTION", "names of classes");

  const spec::DataOptions numbers = list_options("0.5/0.png\t0.5\n1.0/0.png\t2\n");
  pack(numbers, "numbers");
  spec::DataOptions mixed = packed("numbers", numbers);
  mixed.test = {};
  mixed.val.path = path("out/*.tar");
  EXPECT_ERROR(error_of([&] { open_dataset(mixed, 1); }), "DATA_BAD_OPTION", "names of classes");
}

TEST_F(Packs, AnotherTarOfTheSameSizeIsNotReadWithTheIndex) {
  spec::DataOptions from = folder();
  from.split_val = from.split_test = 0;
  pack(from, "out", false, 1 << 20);
  spec::DataOptions to = packed("out", from);
  to.val = to.test = {};
  to.on_corrupt = "skip";
  const std::string name = "out/train-000000.tar", whole = file(name);
  const auto error_with = [&](std::string_view from_text, const std::string& text, size_t after = 0) {
    std::string changed = whole;
    const size_t at = changed.find(from_text, after);
    EXPECT_NE(at, std::string::npos);
    changed.replace(at, text.size(), text);
    put(name, changed);
    return error_of([&] { open_dataset(to, 1); });
  };
  const size_t label = (whole.find("bee/1.cls") / 512 + 1) * 512;
  ASSERT_EQ(whole[label], '1');
  EXPECT_ERROR(error_with("1", "2", label), "DATA_DAMAGED_FILE", "the tar is not the one of pack.index");
  EXPECT_ERROR(error_with("bee/1.png", "bee/7.png"), "DATA_DAMAGED_FILE", "the tar is not the one of pack.index");

  std::string other = whole;  // the same names, sizes and labels, but other images
  for (const char* image : {"ant/0.png", "ant/1.png", "ant/2.png"}) other[other.find(image) + 512 + 60] ^= 1;
  put(name, other);
  EXPECT_ERROR(error_of([&] { open_dataset(to, 1); }), "DATA_DAMAGED_FILE", "ant/0.png is another sample there");
  std::string damaged = whole;
  damaged[damaged.find("ant/0.png") + 512 + 60] ^= 1;
  put(name, damaged);
  EXPECT_EQ(load_all(*open_dataset(to, 1), Split::train).skipped.size(), 1U) << "one damaged image is skipped";
}

TEST_F(Packs, AMissingTarIsFoundByAPattern) {
  spec::DataOptions from = folder();
  pack(from, "out", false, 2048);
  ASSERT_TRUE(fs::exists(path("out/train-000002.tar")));
  spec::DataOptions to = packed("out", from);
  to.val = to.test = {};
  to.train.path = path("out/train-*.tar");
  EXPECT_EQ(error_of([&] { open_dataset(to, 1); }), "");
  fs::remove(path("out/train-000002.tar"));
  EXPECT_ERROR(error_of([&] { open_dataset(to, 1); }), "DISK_NO_FILE", "train-000002.tar");
  to.train.path = path("out/train-{000000..000001}.tar");
  EXPECT_EQ(error_of([&] { open_dataset(to, 1); }), "") << "the job names a part";
}

TEST_F(Packs, APackWithoutTestIsReadForPredictions) {
  spec::DataOptions from = folder();
  from.split_test = 0;
  pack(from, "out");
  spec::DataOptions to = packed("out", from);
  to.test = {};
  const auto train = open_dataset(to, 1);
  const auto fresh = open_inference_data({}, train->info(), to.train, true);
  EXPECT_EQ(fresh->size(Split::test), train->size(Split::train) + train->size(Split::val));
  ASSERT_FALSE(fresh->info().notes.empty());
  EXPECT_HAS(fresh->info().notes.back(), "the tars of all splits are read: train, val");
}

TEST_F(Packs, TheFolderMustBeOneThatCanBeRenamed) {
  const spec::DataOptions from = folder();
  fs::create_directories(path("real"));
  fs::create_directory_symlink(path("real"), path("link"));
  fs::create_directory_symlink(path("nowhere"), path("dead"));
  EXPECT_ERROR(error_of([&] { pack(from, "link"); }), "DATA_BAD_OPTION", "is a symbolic link");
  EXPECT_ERROR(error_of([&] { pack(from, "dead"); }), "DATA_BAD_OPTION", "is a symbolic link");
  for (const char* none : {".", "a/..", "..", "", "/", "x/../.."})
    EXPECT_ERROR(error_of([&] {
                   pack_images(from, 7, {none, 4096, false, 1, {}});
                 }),
                 "DATA_BAD_OPTION", "names no folder")
        << none;
  EXPECT_ERROR(error_of([&] {
                 pack_images(from, 7, {"/proc", 4096, false, 1, {}});
               }),
               "DATA_BAD_OPTION", "mount point");
  // Somebody takes the name while the pack is written.
  const auto take = [&](int64_t, int64_t) { put("taken/file", std::string("x")); };
  EXPECT_ERROR(error_of([&] {
                 pack_images(from, 7, {path("taken"), 4096, false, 1, take});
               }),
               "DISK_FAILED", "the pack is complete in " + path("taken.packing"));
  EXPECT_TRUE(fs::exists(path("taken.packing/pack.index"))) << "hours of work are not thrown away";
}

TEST_F(Packs, TheHintAboutDamagedBytesFits) {
  spec::DataOptions from = folder();
  from.split_val = from.split_test = 0;
  pack(from, "out", false, 1 << 20);
  std::string damaged = file("out/train-000000.tar");
  damaged[damaged.find("cat/a_b_c.jpeg") + 512 + 60] ^= 1;
  put("out/train-000000.tar", damaged);
  spec::DataOptions to = packed("out", from);
  to.val = to.test = {};
  to.on_corrupt = "skip";
  try {
    pack(to, "again");
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.hint.find("on_corrupt"), std::string::npos) << error.hint;
    EXPECT_HAS(error.hint, "copy the tar again");
  }
}

// ---- the index -----------------------------------------------------------------------------------------------------

TEST_F(Packs, AnIndexThatDoesNotFitIsRefused) {
  const spec::DataOptions from = folder();
  pack(from, "out");
  const std::string index = file("out/pack.index");
  const auto error = [&] { return error_of([&] { open_dataset(packed("out", from), 1); }); };
  EXPECT_EQ(error(), "");

  const std::string tar = file("out/train-000001.tar");
  put("out/train-000001.tar", tar + std::string(512, '\0'));
  EXPECT_ERROR(error(), "DATA_DAMAGED_FILE", "train-000001.tar: has");
  fs::remove(path("out/train-000001.tar"));
  EXPECT_ERROR(error(), "DISK_NO_FILE", "train-000001.tar") << "a missing tar must not go unnoticed";
  put("out/train-000001.tar", tar);
  put("out/train-000099.tar", tar);
  EXPECT_ERROR(error(), "DATA_BAD_SOURCE", "train-000099.tar is not in pack.index");
  fs::remove(path("out/train-000099.tar"));

  const auto with = [&](const std::string& old, const std::string& text) {
    std::string changed = index;
    changed.replace(changed.find(old), old.size(), text);
    put("out/pack.index", changed);
    return error();
  };
  EXPECT_ERROR(with("sinew-pack\t1", "sinew-pack\t2"), "DATA_DAMAGED_FILE", "another version");
  EXPECT_ERROR(with("sinew-pack", "something"), "DATA_DAMAGED_FILE", "no index");
  EXPECT_ERROR(with("{", "["), "DATA_DAMAGED_FILE", "line 2");
  EXPECT_ERROR(with("\"ant\"", "17"), "DATA_DAMAGED_FILE", "line 2");
  EXPECT_ERROR(with("\"ant\"", "\"bee\""), "DATA_DAMAGED_FILE", "names a class twice");
  EXPECT_ERROR(with("shard\ttrain-000000.tar\t", "shard\t../x\t"), "DATA_DAMAGED_FILE", "line 3");
  EXPECT_ERROR(with("\"bee\"", "\"bug\""), "DATA_DAMAGED_FILE", "it is damaged");
  EXPECT_ERROR(with("end\t", "end\t0"), "DATA_DAMAGED_FILE", "is not the end");
  put("out/pack.index", index + "\n");
  EXPECT_ERROR(error(), "DATA_DAMAGED_FILE", "not the last");
}

TEST_F(Packs, EveryCutOfTheIndexIsAnError) {
  pack(folder(), "out");
  const std::string index = file("out/pack.index");
  const PackIndexTaker taker{[](const PackHeader&) {}, [](const PackShard&) { return true; }, [](const PackSample&) {}};
  const auto error = [&] { return error_of([&] { read_pack_index(path("out/pack.index"), taker); }); };
  EXPECT_EQ(error(), "");
  for (size_t size = 0; size < index.size(); size += 3) {
    put("out/pack.index", index.substr(0, size));
    ASSERT_TRUE(is_error(error(), "DATA_DAMAGED_FILE", "pack.index: line ")) << size << ": " << error();
  }
  for (size_t at = 0; at < index.size(); at += 2) {
    std::string changed = index;
    changed[at] = static_cast<char>(changed[at] ^ 4);
    put("out/pack.index", changed);
    ASSERT_TRUE(is_error(error(), "DATA_DAMAGED_FILE", "pack.index: line ")) << at << ": " << error();
  }
}

TEST_F(Packs, AnIndexOfManyLinesIsReadInPieces) {
  const auto disk_file = system_disk().create(path("big.index"));
  PackIndexWriter writer(*disk_file, {{"a", "b"}});
  constexpr int kShards = 3, kSamples = 20000;  // some megabytes
  for (int shard = 0; shard < kShards; ++shard) {
    for (int i = 0; i < kSamples; ++i) {
      const std::string name = "folder/" + std::to_string(i) + ".jpg";
      writer.sample({static_cast<uint64_t>(i), 5, 77, "1", name});
    }
    writer.end_shard({"s" + std::to_string(shard) + ".tar", 30'000'000, 0});
  }
  writer.end({});
  disk_file->close();
  int64_t samples = 0;
  read_pack_index(path("big.index"),
                  {[](const PackHeader& header) { EXPECT_THAT(header.classes, ElementsAre("a", "b")); },
                   [](const PackShard& shard) { return shard.name == "s1.tar"; },
                   [&](const PackSample& sample) {
                     ASSERT_EQ(sample.name, "folder/" + std::to_string(samples) + ".jpg");
                     ASSERT_EQ(sample.offset, static_cast<uint64_t>(samples));
                     ASSERT_EQ(sample.checksum, 77U);
                     ++samples;
                   }});
  EXPECT_EQ(samples, kSamples);
}

TEST_F(Packs, AHostileIndexIsRefused) {
  put("long.index", std::string("sinew-pack\t1\n") + std::string(17 << 20, 'x') + "\n");
  const PackIndexTaker taker{[](const PackHeader&) {}, [](const PackShard&) { return true; }, [](const PackSample&) {}};
  EXPECT_ERROR(error_of([&] { read_pack_index(path("long.index"), taker); }), "DATA_DAMAGED_FILE", "is too long");
  const auto disk_file = system_disk().create(path("written.index"));
  EXPECT_ERROR(error_of([&] { PackIndexWriter(*disk_file, {{std::string(17 << 20, 'x')}}); }), "DATA_BAD_SOURCE",
               "more than the limit of 16 MiB");

  const std::string image(reinterpret_cast<const char*>(png_of(noisy_pixels(1, 6, 8, 3)).data()), 8);
  const std::string tar = tar_header("a.png", image.size()) + image + std::string(tar_padding(image.size())) +
                          tar_header("a.cls", 1) + "\xFF" + std::string(tar_padding(1)) + std::string(tar_end());
  put("bad/train-0.tar", tar);
  const auto index_file = system_disk().create(path("bad/pack.index"));
  PackIndexWriter writer(*index_file, {});
  writer.sample({512, image.size(), 1, "\xFF", "a.png"});
  writer.end_shard({"train-0.tar", tar.size(), 0});
  writer.end({});
  index_file->close();
  spec::DataOptions bad;
  bad.format = "webdataset";
  bad.train.path = path("bad");
  EXPECT_ERROR(error_of([&] { open_dataset(bad, 1); }), "DATA_NOT_UTF8", "pack.index: a.png");
}

// ---- pieces in order -----------------------------------------------------------------------------------------------

TEST(InOrder, TakesAllPiecesInOrder) {
  for (const int64_t threads : {1, 2, 7}) {
    std::vector<int64_t> taken;
    in_order<int64_t>(
        1000, threads, [](int64_t i) { return i * i; },
        [&](int64_t i, int64_t piece) {
          EXPECT_EQ(piece, i * i);
          taken.push_back(i);
        });
    EXPECT_EQ(taken.size(), 1000U);
    EXPECT_TRUE(std::ranges::is_sorted(taken));
  }
  in_order<int>(
      0, 3, [](int64_t) { return 1; }, [](int64_t, int) { FAIL(); });
}

TEST(InOrder, ThrowsTheFirstFailure) {
  for (int round = 0; round < 50; ++round) {
    int64_t taken = 0;
    const auto make = [](int64_t i) {
      if (i == 30 || i == 33) throw Error("DATA_EMPTY", "piece " + std::to_string(i), "none");
      return i;
    };
    EXPECT_ERROR(error_of([&] { in_order<int64_t>(100, 4, make, [&](int64_t, int64_t) { ++taken; }); }), "DATA_EMPTY",
                 "piece 30");
    EXPECT_EQ(taken, 30);
    const auto stop = [&](int64_t i, int64_t) {
      if (i == 10) throw Error("DATA_EMPTY", "taking", "none");
    };
    EXPECT_ERROR(error_of([&] {
                   in_order<int64_t>(
                       100, 4, [](int64_t i) { return i; }, stop);
                 }),
                 "DATA_EMPTY", "taking");
  }
}

}  // namespace
}  // namespace sinew::data
