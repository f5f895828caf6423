#include "data/webdataset.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>
#include <filesystem>
#include <numeric>

#include "data/formats.h"
#include "data/image_fixtures.h"
#include "data/numpy_fixtures.h"
#include "data/tar_fixtures.h"

namespace sinew::data {
namespace {

namespace fs = std::filesystem;
using testing::ElementsAre;

std::string text_of_image(const Bytes& bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

class Tars : public Images {
 protected:
  static std::string image(uint64_t seed) { return text_of_image(png_of(noisy_pixels(seed, 6, 8, 3))); }
  // `count` samples of the labels 0, 1, 2, ...
  static std::string samples(uint64_t first, int count, int classes = 3) {
    std::string members;
    for (int i = 0; i < count; ++i) {
      const std::string key = "s/" + std::to_string(first + static_cast<uint64_t>(i));
      members += tar_member(key + ".png", image(first + static_cast<uint64_t>(i)));
      members += tar_member(key + ".cls", std::to_string(i % classes) + "\n");
    }
    return members;
  }
  spec::DataOptions tars(const std::string& train) const {
    spec::DataOptions result;
    result.format = "webdataset";
    result.train.path = path(train);
    result.normalize = "none";
    return result;
  }
  std::string error_with(const std::string& members) const {
    put("t.tar", tar_of(members));
    return error_of([&] { open_dataset(tars("t.tar"), 1); });
  }
  std::vector<std::string> names(const spec::DataOptions& options, Split split = Split::train) const {
    const auto dataset = open_dataset(options, 1);
    std::vector<std::string> found;
    for (int64_t i = 0; i < dataset->size(split); ++i) found.push_back(dataset->describe(split, i));
    return found;
  }
};

TEST_F(Tars, SamplesAreFilesOfOneName) {
  put("t.tar", tar_of(tar_member("cats.2/b.JPG", text_of_image(jpeg_of(smooth_pixels(1, 6, 8, 3)))) +
                      tar_member("cats.2/b.json", "{}") + tar_member("cats.2/b.mask.png", "mask") +
                      tar_member("cats.2/b.Cls", " 10\r\n") + tar_member("a.cls", "9") + tar_member("a.Png", image(2)) +
                      tar_member("README", "no ending") + tar_member("._a.png", "of a file manager") +
                      tar_member("alone.cls", "3") + samples(7, 1, 1)));
  const auto dataset = open_dataset(tars("t.tar"), 1);
  EXPECT_EQ(dataset->size(Split::train), 3);
  EXPECT_EQ(dataset->describe(Split::train, 0), "cats.2/b.JPG");
  EXPECT_EQ(dataset->describe(Split::train, 1), "a.Png");
  EXPECT_THAT(dataset->info().class_names, ElementsAre("0", "9", "10")) << "sorted by value";
  const Batch batch = load_all(*dataset, Split::train);
  EXPECT_EQ(batch.input.shape, (Shape{3, 3, 6, 8}));
  EXPECT_THAT(std::vector<int64_t>(batch.target.as<int64_t>(), batch.target.as<int64_t>() + 3), ElementsAre(2, 1, 0));
  ASSERT_EQ(dataset->info().notes.size(), 1U);
  EXPECT_HAS(dataset->info().notes[0], "train: 5 files are left out");
  EXPECT_HAS(dataset->info().notes[0], "t.tar:cats.2/b.json");
}

TEST_F(Tars, NamesOfSamples) {
  const auto check = [](const char* member, const char* sample, const char* ending) {
    const SampleName name = sample_name(member);
    EXPECT_EQ(name.sample, sample) << member;
    EXPECT_EQ(name.ending, ending) << member;
  };
  check("a/b.c/17.Seg.PNG", "a/b.c/17", "seg.png");
  check("17.jpg", "17", "jpg");
  for (const char* none : {"", "17", "a.b/17", ".hidden.jpg", "a/.jpg", "17.", "a/"}) check(none, "", "");
}

TEST_F(Tars, BadSamplesNameTheirPlace) {
  const std::string a = tar_member("a.png", image(1)), b = samples(2, 2);
  EXPECT_ERROR(error_with(b + a), "DATA_BAD_TARGET", "t.tar:a.png: the image has no label");
  EXPECT_ERROR(error_with(a + tar_member("a.cls", "1") + tar_member("a.jpg", "") + b), "DATA_BAD_SOURCE",
               "t.tar:a.jpg: its sample has another image, a.png");
  EXPECT_ERROR(error_with(a + a + b), "DATA_BAD_SOURCE", "another image, a.png");
  EXPECT_ERROR(error_with(a + tar_member("a.cls", "1") + tar_member("a.cls", "1") + b), "DATA_BAD_SOURCE",
               "another label, a.cls");
  EXPECT_ERROR(error_with(a + b + tar_member("a.cls", "1")), "DATA_BAD_TARGET", "tar --sort=name");
  EXPECT_ERROR(error_with(a + tar_member("a.cls", " \n") + b), "DATA_BAD_TARGET", "t.tar:a.cls: the label is empty");
  EXPECT_ERROR(error_with(a + tar_member("a.cls", "\xFF\xFE") + b), "DATA_NOT_UTF8", "t.tar:a.cls");
  EXPECT_ERROR(error_with(a + tar_member("a.cls", std::string(2000, '1')) + b), "DATA_BAD_TARGET", "2000 bytes");
  EXPECT_ERROR(error_with(tar_member("a.json", "{}")), "DATA_EMPTY", "t.tar holds no image");
  EXPECT_ERROR(error_with(samples(1, 3, 1)), "DATA_BAD_SOURCE", "all images are of the class '0'");
  EXPECT_ERROR(error_with(b + tar_member("x.png", "no image") + tar_member("x.cls", "0")), "DATA_CORRUPT_IMAGE",
               "t.tar:x.png");
  spec::DataOptions skip = tars("t.tar");
  skip.on_corrupt = "skip";
  EXPECT_THAT(load_all(*open_dataset(skip, 1), Split::train).samples, ElementsAre(0, 1));
}

TEST_F(Tars, ACutTarIsAnErrorAtEveryByte) {
  const std::string whole = tar_of(samples(1, 3));
  for (size_t size = 0; size < whole.size() - 512; size += 41) {
    put("t.tar", whole.substr(0, size));
    const std::string error = error_of([&] { open_dataset(tars("t.tar"), 1); });
    ASSERT_TRUE(is_error(error, "DATA_DAMAGED_FILE", "t.tar")) << size << ": " << error;
  }
}

TEST_F(Tars, ATarThatIsCutLaterIsAnErrorAndNoCrash) {
  put("t.tar", tar_of(samples(1, 3)));
  const auto dataset = open_dataset(tars("t.tar"), 1);
  fs::resize_file(path("t.tar"), 600);
  EXPECT_ERROR(error_of([&] { load_all(*dataset, Split::train); }), "DATA_UNREADABLE_FILE",
               "t.tar: it ends at byte 600");
}

TEST_F(Tars, FoldersPatternsAndSplits) {
  put("d/my-train-01.tar", tar_of(samples(10, 3)));
  put("d/my-train-00.tar", tar_of(samples(20, 3)));
  put("d/my-val.tar", tar_of(samples(30, 3)));
  put("d/constraint.tar", tar_of(samples(40, 3)));
  const auto first = [&](const spec::DataOptions& options, Split split = Split::train) {
    return names(options, split).front() + " of " + std::to_string(names(options, split).size());
  };
  spec::DataOptions both = tars("d");
  both.val = both.train;
  EXPECT_EQ(first(both), "s/20.png of 6") << "the names of the tars say which belong to a split";
  EXPECT_EQ(first(both, Split::val), "s/30.png of 3");
  both.test = both.train;
  EXPECT_ERROR(error_of([&] { open_dataset(both, 1); }), "DATA_MISSING_FILES", "no tar of test");
  EXPECT_EQ(first(tars("d/my-val.tar")), "s/30.png of 3");
  EXPECT_EQ(first(tars("d/my-train-{01..01}.tar")), "s/10.png of 3");
  EXPECT_EQ(first(tars("d/my-train-{00..01}.tar")), "s/20.png of 6");
  EXPECT_EQ(first(tars("d/*.tar")), "s/40.png of 12");
  EXPECT_ERROR(error_of([&] { open_dataset(tars("d/my-train-{00..02}.tar"), 1); }), "DISK_NO_FILE", "my-train-02.tar");
  EXPECT_ERROR(error_of([&] { open_dataset(tars("d/none-*.tar"), 1); }), "DATA_MISSING_FILES", "none-*.tar");

  put("e/x.tar", tar_of(samples(1, 3)));
  put("e/y.tar", tar_of(samples(5, 3)));
  spec::DataOptions unnamed = tars("e");
  EXPECT_EQ(first(unnamed), "s/1.png of 6");
  unnamed.val = unnamed.train;
  EXPECT_ERROR(error_of([&] { open_dataset(unnamed, 1); }), "DATA_BAD_SOURCE", "e/x.tar: belongs to two splits");
  unnamed.val = {};
  unnamed.split_val = 0.5;
  EXPECT_EQ(names(unnamed, Split::val).size(), 3U);

  put("f/train/x.tar", tar_of(samples(1, 3)));
  put("f/test/x.tar", tar_of(samples(5, 3)));
  spec::DataOptions folders = tars("f");
  folders.test = folders.train;
  EXPECT_EQ(first(folders), "s/1.png of 3");
  EXPECT_EQ(first(folders, Split::test), "s/5.png of 3");
}

TEST_F(Tars, NoTarIsLeftOutSilently) {
  put("d/train-0.tar", tar_of(samples(1, 3)));
  put("d/extra-0.tar", tar_of(samples(5, 3)));
  const auto dataset = open_dataset(tars("d"), 1);
  EXPECT_EQ(dataset->size(Split::train), 3);
  ASSERT_EQ(dataset->info().notes.size(), 1U);
  EXPECT_HAS(dataset->info().notes[0], "1 tar is left out");
  EXPECT_HAS(dataset->info().notes[0], "extra-0.tar");
}

TEST_F(Tars, LinksAreCountedAndHaveAHint) {
  const auto link = [](const std::string& name, char type) { return tar_entry({.name = name, .type = type}); };
  put("t.tar", tar_of(link("s/0.png", '2') + link("x/9.png", '2') + samples(1, 3)));
  const auto dataset = open_dataset(tars("t.tar"), 1);
  ASSERT_EQ(dataset->info().notes.size(), 1U);
  EXPECT_HAS(dataset->info().notes[0], "2 links are left out");
  EXPECT_HAS(dataset->info().notes[0], "t.tar:s/0.png");
  put("t.tar", tar_of(link("x/9.png", '1') + samples(1, 3)));
  EXPECT_HAS(open_dataset(tars("t.tar"), 1)->info().notes.at(0), "tar --hard-dereference");
  put("t.tar", tar_of(tar_member("a.png", image(1)) + link("a.cls", '1') + samples(1, 3)));
  try {
    open_dataset(tars("t.tar"), 1);
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.code.text(), "DATA_BAD_TARGET");
    EXPECT_HAS(error.hint, "--hard-dereference");
  }
}

TEST_F(Tars, ATarBesideOtherDataChangesNothing) {
  put("tables/a.csv", std::string("x,y\n1,2\n3,4\n"));
  put("tables/old.tar", tar_of(samples(1, 3)));
  spec::DataOptions options = tars("tables");
  EXPECT_EQ(detect_format(options.train, options).format, "csv");
  EXPECT_EQ(propose_job(path("tables")).job.data.format, "csv");
  put("arrays/x.npy", npy(dict("<f4", "(4, 2)"), std::string(32, '\0')));
  put("arrays/y.npy", npy(dict("<i8", "(4,)"), std::string(32, '\0')));
  put("arrays/old.tar", tar_of(samples(1, 3)));
  EXPECT_EQ(propose_job(path("arrays")).job.data.format, "npy");
  put("only/README.md", std::string("# tars"));
  put("only/a.tar", tar_of(samples(1, 3)));
  options = tars("only");
  EXPECT_EQ(detect_format(options.train, options).format, "webdataset");
}

TEST_F(Tars, CompressedTarsHaveTheirOwnMessage) {
  for (const char* name : {"t.tar.gz", "t.tar.zst", "t.tgz", "T.TAR.GZ"}) {
    put(name, std::string("\x1F\x8B\x08", 3) + std::string(600, 'x'));
    spec::DataOptions options = tars(name);
    options.format = "auto";
    try {
      open_dataset(options, 1);
      FAIL() << name;
    } catch (const Error& error) {
      EXPECT_EQ(error.code.text(), "DATA_WRONG_FORMAT") << error.what();
      EXPECT_HAS(error.hint, "gunzip or unzstd");
      EXPECT_HAS(std::string(error.what()), "a compressed tar");
    }
  }
}

TEST_F(Tars, AreDetectedAndProposed) {
  put("d/train-0.tar", tar_of(samples(10, 30)));
  put("d/val-0.tar", tar_of(samples(50, 30)));
  for (const std::string of : {"d", "d/train-0.tar", "d/train-{0..0}.tar", "d/train-*.tar"}) {
    spec::DataOptions options = tars(of);
    options.format = "auto";
    EXPECT_EQ(open_dataset(options, 1)->info().format, "webdataset") << of;
    const Proposal proposal = propose_job(path(of));
    EXPECT_FALSE(proposal.trouble) << proposal.trouble->what();
    EXPECT_EQ(proposal.job.data.format, "webdataset");
    EXPECT_EQ(proposal.job.data.image.size, (std::vector<int64_t>{6, 8}));
    EXPECT_EQ(proposal.job.data.val.given(), of == "d") << "one tar has no val of its own";
    EXPECT_HAS(proposal_yaml(proposal), "format: webdataset");
  }
}

TEST_F(Tars, ArraysOfBytesAreImages) {
  const Pixels pixels = noisy_pixels(1, 6, 8, 3);
  std::string planes(144, '\0');
  for (size_t i = 0; i < 48; ++i) {
    for (size_t c = 0; c < 3; ++c) planes[c * 48 + i] = static_cast<char>(pixels.bytes[3 * i + c]);
  }
  const std::string rows(reinterpret_cast<const char*>(pixels.bytes.data()), pixels.bytes.size());
  const auto sample = [](const std::string& key, const std::string& file, const std::string& ending) {
    return tar_member(key + "." + ending, file) + tar_member(key + ".cls", key);
  };
  put("t.tar", tar_of(sample("1", image(1), "png") + sample("2", npy(dict("|u1", "(3, 6, 8)"), planes), "npy") +
                      sample("3", npy(dict("|u1", "(6, 8, 3)"), rows), "npy")));
  const Batch batch = load_all(*open_dataset(tars("t.tar"), 1), Split::train);
  ASSERT_EQ(batch.input.shape, (Shape{3, 3, 6, 8}));
  EXPECT_EQ(std::memcmp(batch.input.as<float>(), batch.input.as<float>() + 144, 144 * 4), 0);
  EXPECT_EQ(std::memcmp(batch.input.as<float>(), batch.input.as<float>() + 288, 144 * 4), 0);

  spec::DataOptions scaled = tars("t.tar");
  scaled.image.size = {3, 5};
  scaled.image.channels = 1;
  const Batch small = load_all(*open_dataset(scaled, 1), Split::train);
  EXPECT_EQ(std::memcmp(small.input.as<float>(), small.input.as<float>() + 15, 15 * 4), 0);
  EXPECT_EQ(std::memcmp(small.input.as<float>(), small.input.as<float>() + 30, 15 * 4), 0);

  const auto refused = [&](const std::string& file) {
    put("t.tar", tar_of(sample("1", image(1), "png") + sample("2", file, "npy")));
    spec::DataOptions sized = tars("t.tar");
    sized.image.size = {6, 8};
    return error_of([&] { load_all(*open_dataset(sized, 1), Split::train); });
  };
  EXPECT_ERROR(refused(npy(dict("<f4", "(3, 2, 2)"), std::string(48, 'x'))), "DATA_CORRUPT_IMAGE", "no bytes (uint8)");
  EXPECT_ERROR(refused(npy(dict("|u1", "(5, 2, 2)"), std::string(20, 'x'))), "DATA_CORRUPT_IMAGE", "t.tar:2.npy");
  EXPECT_ERROR(refused(npy(dict("|u1", "(3, 2, 2)"), std::string(11, 'x'))), "DATA_CORRUPT_IMAGE", "t.tar:2.npy");
  EXPECT_ERROR(refused(npy(dict("|u1", "(2, 2)", true), std::string(4, 'x'))), "DATA_CORRUPT_IMAGE", "Fortran");
  EXPECT_ERROR(refused("\x93NUMPY"), "DATA_CORRUPT_IMAGE", "t.tar:2.npy");
}

TEST_F(Tars, AnArrayInAFolderOfImagesStaysCorrupt) {
  put_classes(2);
  put("train/cat/9.png", npy(dict("|u1", "(3, 6, 8)"), std::string(144, 'x')));
  spec::DataOptions folder = options();
  EXPECT_ERROR(error_of([&] { open_dataset(folder, 1); }), "DATA_CORRUPT_IMAGE", "cat/9.png: not a JPEG");
  folder.on_corrupt = "skip";
  EXPECT_EQ(load_all(*open_dataset(folder, 1), Split::train).skipped.size(), 1U);
  folder.image.size = {6, 8};
  EXPECT_EQ(load_all(*open_dataset(folder, 1), Split::train).skipped.size(), 1U);
}

TEST_F(Tars, NumbersWithAFractionAreARegression) {
  std::string members;
  for (int i = 0; i < 4; ++i)
    members += tar_member(std::to_string(i) + ".png", image(static_cast<uint64_t>(i))) +
               tar_member(std::to_string(i) + ".cls", std::to_string(i) + ".5");
  put("t.tar", tar_of(members));
  const auto dataset = open_dataset(tars("t.tar"), 1);
  EXPECT_EQ(dataset->info().task, Task::regression);
  EXPECT_FLOAT_EQ(load_all(*dataset, Split::train).target.as<float>()[2], 2.5f);
}

TEST_F(Tars, PredictionsNeedNoLabels) {
  put("t.tar", tar_of(samples(1, 6)));
  const auto train = open_dataset(tars("t.tar"), 1);
  put("new.tar", tar_of(tar_member("x.png", image(1)) + tar_member("y.png", image(2))));
  spec::DataSource source;
  source.path = path("new.tar");
  const auto fresh = open_inference_data({}, train->info(), source, false);
  EXPECT_EQ(fresh->size(Split::test), 2);
  EXPECT_EQ(fresh->describe(Split::test, 1), "y.png");
  EXPECT_EQ(std::memcmp(load_all(*fresh, Split::test).input.as<float>(),
                        load_all(*train, Split::train).input.as<float>(), 2 * 144 * 4),
            0);
  EXPECT_ERROR(error_of([&] { open_inference_data({}, train->info(), source, true); }), "DATA_BAD_TARGET", "x.png");
  source.path = path("t.tar");
  EXPECT_EQ(load_all(*open_inference_data({}, train->info(), source, true), Split::test).target.as<int64_t>()[5], 2);
}

}  // namespace
}  // namespace sinew::data
