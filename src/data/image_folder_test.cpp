#include "data/image_folder.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <numeric>
#include <thread>

#include "data/image_fixtures.h"

namespace sinew::data {
namespace {

namespace fs = std::filesystem;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

std::vector<int64_t> everything(const Dataset& dataset, Split split) {
  std::vector<int64_t> samples(static_cast<size_t>(dataset.size(split)));
  std::iota(samples.begin(), samples.end(), 0);
  return samples;
}

std::vector<float> floats_of(const Array& array) {
  return std::vector<float>(array.as<float>(), array.as<float>() + array.count());
}

TEST_F(Images, FoldersAreClassesInOrder) {
  put("train/zebra/b.JPG", jpeg_of(smooth_pixels(1, 6, 8, 3)));
  put("train/zebra/a.png", png_of(smooth_pixels(2, 6, 8, 3)));
  put("train/10/x.jpeg", jpeg_of(smooth_pixels(3, 6, 8, 1)));
  put("train/9/deep/er/y.Png", png_of(smooth_pixels(4, 6, 8, 1)));
  put("train/9/notes.txt", std::string("not an image"));
  put("train/9/._y.png", std::string("left by a file manager"));
  const auto dataset = open_images(options(), 1);
  EXPECT_EQ(dataset->size(Split::train), 4);
  EXPECT_THAT(dataset->info().class_names,
              ElementsAre("10", "9", "zebra"));  // sorted by bytes, like torchvision's ImageFolder
  EXPECT_EQ(dataset->describe(Split::train, 0), "10/x.jpeg");
  EXPECT_EQ(dataset->describe(Split::train, 1), "9/deep/er/y.Png");
  EXPECT_EQ(dataset->describe(Split::train, 2), "zebra/a.png");
  EXPECT_EQ(dataset->describe(Split::train, 3), "zebra/b.JPG");
  const Batch batch = dataset->load(Split::train, everything(*dataset, Split::train), {});
  EXPECT_EQ(batch.input.shape, (Shape{4, 3, 6, 8}));
  const auto* classes = batch.target.as<int64_t>();
  EXPECT_THAT(std::vector<int64_t>(classes, classes + 4), ElementsAre(0, 1, 2, 2));
  EXPECT_EQ(dataset->info().input_shape, (Shape{3, 6, 8}));
  EXPECT_EQ(dataset->info().classes, 3);
  EXPECT_FALSE(dataset->in_memory());
}

TEST_F(Images, PixelsEqualThoseOfTheFile) {
  put_classes(2);
  const auto dataset = open_images(options(), 1);
  const Batch batch = dataset->load(Split::train, std::vector<int64_t>{4, 1}, {});
  EXPECT_THAT(batch.samples, ElementsAre(4, 1));
  const Pixels expected = noisy_pixels(5, 6, 8, 3);  // cat/0.png is the fifth file that put_classes wrote
  for (int64_t i = 0; i < 6 * 8; ++i) {
    for (int64_t c = 0; c < 3; ++c) {
      ASSERT_EQ(batch.input.as<float>()[c * 48 + i],
                static_cast<float>(expected.bytes[static_cast<size_t>(3 * i + c)]) / 255.0f);
    }
  }
}

TEST_F(Images, ABatchSaysWhatItsLoadingTook) {
  put_classes(2);
  const auto dataset = open_images(options(), 1);
  const std::vector<int64_t> all = everything(*dataset, Split::train);
  const Batch batch = dataset->load(Split::train, all, {});
  int64_t bytes = 0;
  for (const auto& file : fs::recursive_directory_iterator(path("train")))
    bytes += file.is_regular_file() ? static_cast<int64_t>(file.file_size()) : 0;
  EXPECT_EQ(batch.use.read_bytes, bytes);
  EXPECT_GT(batch.use[LoadStage::read], 0);
  EXPECT_GT(batch.use[LoadStage::decode], 0);
  EXPECT_GE(batch.use.read_seconds, 0);
  Prefetcher prefetcher(*dataset, 1, 2, 1 << 20);
  prefetcher.take({Split::train, 0, 0, 3, false});
  prefetcher.take({Split::train, 0, 3, 2, false});
  EXPECT_EQ(prefetcher.use().samples, 5);
  EXPECT_EQ(prefetcher.use().threads, 2);
  EXPECT_GT(prefetcher.use()[LoadStage::copy], 0);
}

TEST_F(Images, GreyTaskHasOneChannel) {
  put_classes(1);
  spec::DataOptions grey = options();
  grey.image.channels = 1;
  EXPECT_EQ(open_images(grey, 1)->load(Split::train, std::vector<int64_t>{0}, {}).input.shape, (Shape{1, 1, 6, 8}));
  grey.image.channels = 2;
  EXPECT_ERROR(error_of([&] { open_images(grey, 1); }), "DATA_BAD_OPTION", "data.image.channels");
}

TEST_F(Images, ValidationFoldersAndSplits) {
  put_classes(10);
  put("val/bee/1.png", png_of(noisy_pixels(100, 6, 8, 3)));
  spec::DataOptions with_val = options();
  with_val.val.path = path("val");
  with_val.split_test = 0.2;
  const auto dataset = open_images(with_val, 3);
  EXPECT_EQ(dataset->info().val_size, 1);
  EXPECT_EQ(dataset->load(Split::val, std::vector<int64_t>{0}, {}).target.as<int64_t>()[0], 1);
  EXPECT_EQ(dataset->size(Split::train) + dataset->size(Split::test), 30);
  EXPECT_GT(dataset->size(Split::test), 0);
  std::vector<std::string> names;
  for (const Split split : {Split::train, Split::test}) {
    for (int64_t i = 0; i < dataset->size(split); ++i) names.push_back(dataset->describe(split, i));
  }
  std::sort(names.begin(), names.end());
  EXPECT_EQ(std::unique(names.begin(), names.end()), names.end());

  put("val/wasp/1.png", png_of(noisy_pixels(101, 6, 8, 3)));
  EXPECT_ERROR(error_of([&] { open_images(with_val, 3); }), "DATA_UNKNOWN_CLASS", "'wasp'");
}

// ---- corrupt files -------------------------------------------------------------------------------------------------

TEST_F(Images, CorruptFilesFailOrAreLeftOut) {
  put_classes(3);
  Bytes cut = png_of(noisy_pixels(7, 6, 8, 3));
  cut.resize(cut.size() / 2);
  put("train/bee/1.png", cut);
  put("train/cat/2.png", Bytes());
  spec::DataOptions job = options();
  job.image.size = {6, 8};
  const std::vector<int64_t> all = {0, 4, 5, 8, 3};
  const std::string error = error_of([&] { open_images(job, 1)->load(Split::train, all, {}); });
  EXPECT_ERROR(error, "DATA_CORRUPT_IMAGE", path("train/bee/1.png") + ": ");
  EXPECT_THAT(error, HasSubstr("on_corrupt: skip"));

  job.on_corrupt = "skip";
  const Batch batch = open_images(job, 1)->load(Split::train, all, {});
  EXPECT_THAT(batch.samples, ElementsAre(0, 5, 3));
  EXPECT_EQ(batch.input.shape, (Shape{3, 3, 6, 8}));
  EXPECT_EQ(batch.input.bytes.size(), 3u * 3 * 6 * 8 * sizeof(float));
  EXPECT_EQ(batch.target.shape, (Shape{3}));
  EXPECT_EQ(batch.target.as<int64_t>()[1], 1);
  ASSERT_EQ(batch.skipped.size(), 2u);
  EXPECT_EQ(batch.skipped[0].sample, 4);
  EXPECT_THAT(batch.skipped[0].what, HasSubstr("bee/1.png: premature end"));
  EXPECT_EQ(batch.skipped[1].what, "cat/2.png: the file is empty");
  // The remaining rows equal the rows of a load without the corrupt files.
  const Batch whole = open_images(job, 1)->load(Split::train, std::vector<int64_t>{0, 5, 3}, {});
  EXPECT_EQ(floats_of(batch.input), floats_of(whole.input));

  const Batch none = open_images(job, 1)->load(Split::train, std::vector<int64_t>{4, 8}, {});
  EXPECT_EQ(none.count(), 0);
  EXPECT_EQ(none.input.shape, (Shape{0, 3, 6, 8}));
}

// An unreadable file is never skipped, because another machine may be able to read it.
TEST_F(Images, AReadErrorAlwaysFails) {
  put_classes(2);
  spec::DataOptions job = options();
  job.on_corrupt = "skip";
  const auto dataset = open_images(job, 1);
  fs::remove(path("train/bee/0.png"));
  const std::vector<int64_t> both = {0, 2};
  EXPECT_ERROR(error_of([&] { dataset->load(Split::train, both, {}); }), "DISK_NO_FILE", "bee/0.png");
  fs::create_directory(path("train/bee/0.png"));
  EXPECT_THROW(dataset->load(Split::train, std::vector<int64_t>{2}, {}), Error);
}

// ---- size ----------------------------------------------------------------------------------------------------------

TEST_F(Images, UnequalSizesNeedASize) {
  put_classes(2);
  put("train/cat/9.jpg", jpeg_of(smooth_pixels(1, 30, 20, 3)));
  const std::string error = error_of([&] { open_images(options(), 1); });
  EXPECT_ERROR(error, "DATA_SHAPE_MISMATCH", "ant/0.png is 8 x 6");
  EXPECT_THAT(error, HasSubstr("cat/9.jpg is 20 x 30"));
  EXPECT_THAT(error, HasSubstr("data.image.size"));
  spec::DataOptions job = options();
  job.image.size = {5, 4};
  EXPECT_EQ(open_images(job, 1)->load(Split::train, std::vector<int64_t>{0, 6}, {}).input.shape, (Shape{2, 3, 5, 4}));
}

// Opening a dataset probes only some files. If another file has a different size, loading it is an error, even with
// on_corrupt: skip.
TEST_F(Images, ALateDifferenceInSizeIsAnError) {
  put_classes(40);  // 120 files, of which 64 are probed
  spec::DataOptions job = options();
  job.on_corrupt = "skip";
  put("train/ant/10.png", png_of(noisy_pixels(1, 7, 8, 3)));  // the third file; files 0, 1, 3, 5, ... are probed
  std::unique_ptr<Dataset> dataset;
  try {
    dataset = open_images(job, 1);
  } catch (const Error&) {
    GTEST_FAIL() << "the third file was probed";
  }
  const std::vector<int64_t> third = {2};
  EXPECT_ERROR(error_of([&] { dataset->load(Split::train, third, {}); }), "DATA_SHAPE_MISMATCH", "8 x 7");
}

TEST_F(Images, AbsurdSizesAreRefused) {
  put_classes(1);
  for (const std::vector<int64_t>& size : {std::vector<int64_t>{0, 5}, {5, -1}, {1LL << 40, 1LL << 40}, {5}}) {
    spec::DataOptions job = options();
    job.image.size = size;
    EXPECT_ERROR(error_of([&] { open_images(job, 1); }), "DATA_BAD_OPTION", "data.image.size");
  }
}

// ---- normalisation and augmentation --------------------------------------------------------------------------------

TEST_F(Images, NormalisedChannelsHaveMeanZeroAndDeviationOne) {
  put_classes(5);
  spec::DataOptions job = options();
  job.normalize = "auto";
  for (const int64_t threads : {1, 3}) {
    job.prefetch_threads = threads;
    const auto dataset = open_images(job, 1);
    EXPECT_THAT(dataset->info().reasons.at("data.normalize"), HasSubstr("15 of the 15 training images"));
    const Batch batch = dataset->load(Split::train, everything(*dataset, Split::train), {});
    for (int64_t c = 0; c < 3; ++c) {
      double sum = 0, square = 0;
      for (int64_t i = 0; i < 15; ++i) {
        for (int64_t j = 0; j < 48; ++j) {
          const double value = batch.input.as<float>()[(i * 3 + c) * 48 + j];
          sum += value, square += value * value;
        }
      }
      EXPECT_NEAR(sum / (15 * 48), 0, 1e-5);
      EXPECT_NEAR(square / (15 * 48), 1, 1e-5);
    }
  }
}

TEST_F(Images, FlatImagesNormaliseToZero) {
  for (const char* name : {"train/one/1.png", "train/other/1.png"})
    put(name, png_of(Pixels{4, 4, 3, std::vector<uint8_t>(48, 51)}));
  spec::DataOptions job = options();
  job.normalize = "auto";
  for (const float value : floats_of(open_images(job, 1)->load(Split::train, std::vector<int64_t>{0}, {}).input))
    EXPECT_NEAR(value, 0, 1e-6);
}

TEST_F(Images, AugmentsOnlyTrainByKeyAndEpoch) {
  put_classes(4);
  put("val/ant/1.png", png_of(noisy_pixels(200, 6, 8, 3)));
  spec::DataOptions job = options();
  job.val.path = path("val");
  job.augment.crop_padding = 2;
  job.augment.rotate = 20;
  const auto dataset = open_images(job, 1);
  const std::vector<int64_t> three = {7, 2, 5}, one = {2}, first = {0};
  const SampleContext plain{4, 1, false}, augmented{4, 1, true}, later{4, 2, true};
  const auto row_of = [&](const Batch& batch, size_t row) {
    const float* at = batch.input.as<float>() + row * 144;
    return std::vector<float>(at, at + 144);
  };
  const Batch together = dataset->load(Split::train, three, augmented);
  EXPECT_EQ(row_of(together, 1), floats_of(dataset->load(Split::train, one, augmented).input));
  EXPECT_NE(row_of(together, 1), floats_of(dataset->load(Split::train, one, plain).input));
  EXPECT_NE(row_of(together, 1), floats_of(dataset->load(Split::train, one, later).input));
  EXPECT_EQ(floats_of(dataset->load(Split::val, first, augmented).input),
            floats_of(dataset->load(Split::val, first, plain).input));
}

TEST_F(Images, ManyThreadsLoadTheSameSamples) {
  for (int i = 0; i < 8; ++i) {
    put("train/c" + std::to_string(i % 2) + "/" + std::to_string(i) + ".jpg",
        jpeg_of(smooth_pixels(static_cast<uint64_t>(i), 60, 80, 3)));
  }
  spec::DataOptions job = options();
  job.image.size = {24, 24};
  job.augment.rotate = 10;
  const auto dataset = open_images(job, 1);
  const auto samples = everything(*dataset, Split::train);
  const std::vector<float> expected = floats_of(dataset->load(Split::train, samples, {1, 0, true}).input);
  std::vector<int> wrong(4, 0);
  {
    std::vector<std::jthread> threads;
    for (size_t t = 0; t < 4; ++t) {
      threads.emplace_back([&, t] {
        for (int i = 0; i < 10; ++i)
          wrong[t] += floats_of(dataset->load(Split::train, samples, {1, 0, true}).input) != expected;
      });
    }
  }
  EXPECT_THAT(wrong, ElementsAre(0, 0, 0, 0));
}

TEST_F(Images, TheDigestChangesWithFilesAndClasses) {
  put_classes(2);
  const Digest first = open_images(options(), 1)->info().digest;
  EXPECT_EQ(open_images(options(), 1)->info().digest, first);
  put("train/bee/0.png", png_of(noisy_pixels(300, 6, 8, 3)));
  const Digest second = open_images(options(), 1)->info().digest;
  EXPECT_NE(second, first);
  fs::rename(path("train/bee/1.png"), path("train/cat/7.png"));
  EXPECT_NE(open_images(options(), 1)->info().digest, second);
}

// ---- lists ---------------------------------------------------------------------------------------------------------

TEST_F(Images, ListsNameFilesAndLabels) {
  put_classes(2);
  const auto dataset = open_images(list_options("\xEF\xBB\xBF"
                                                "path,label\r\n# a comment\r\n\r\ncat/1.png,10\r\nant/0.png\t9\r\n" +
                                                path("train/bee/1.png") + ",10"),
                                   1);
  EXPECT_EQ(dataset->size(Split::train), 3);
  EXPECT_THAT(dataset->info().class_names, ElementsAre("9", "10"));
  const Batch batch = dataset->load(Split::train, everything(*dataset, Split::train), {});
  const auto* classes = batch.target.as<int64_t>();
  EXPECT_THAT(std::vector<int64_t>(classes, classes + 3), ElementsAre(1, 0, 1));
  EXPECT_EQ(dataset->describe(Split::train, 0), "cat/1.png");
  EXPECT_EQ(dataset->describe(Split::train, 2), path("train/bee/1.png"));
}

TEST_F(Images, ListsOfNumbersAreRegression) {
  put_classes(2);
  const std::string text = "ant/0.png\t1.5\nant/1.png\t-3\nbee/0.png\t3e0\n";
  const auto dataset = open_images(list_options(text), 1);
  EXPECT_EQ(dataset->info().task, Task::regression);
  EXPECT_EQ(dataset->info().target_mean.at(0), 0.5);
  EXPECT_NEAR(dataset->info().target_std.at(0), std::sqrt((1 + 12.25 + 6.25) / 3), 1e-12);
  const Batch batch = dataset->load(Split::train, everything(*dataset, Split::train), {});
  EXPECT_EQ(batch.target.dtype, DType::f32);
  EXPECT_THAT(floats_of(batch.target), ElementsAre(1.5f, -3.0f, 3.0f));
  spec::DataOptions job = list_options("ant/0.png\t1\nant/1.png\ttwo\n");
  job.task = "regression";
  EXPECT_ERROR(error_of([&] { open_images(job, 1); }), "DATA_BAD_TARGET", "line 2 of the list): 'two'");
}

TEST_F(Images, ListErrorsNameTheLine) {
  put_classes(1);
  const auto error = [&](const std::string& list) { return error_of([&] { open_images(list_options(list), 1); }); };
  EXPECT_ERROR(error("ant/0.png,a\nant/0.png a\n"), "DATA_BAD_ROW", "labels.txt:2: no tab or comma");
  EXPECT_ERROR(error("ant/0.png,a\n,a\n"), "DATA_BAD_ROW", "labels.txt:2: the path");
  EXPECT_ERROR(error("ant/0.png,\n"), "DATA_BAD_ROW", "labels.txt:1: the label");
  EXPECT_ERROR(error("ant/0.png,a\n\nant/7.png,a\n"), "DATA_UNREADABLE_FILE", "labels.txt:3: ");
  EXPECT_ERROR(error("\n# nothing\n"), "DATA_EMPTY", "labels.txt");
}

TEST_F(Images, OtherFilesAreCountedAndNamed) {
  put_classes(2);
  EXPECT_THAT(open_images(options(), 1)->info().notes, IsEmpty());
  for (const char* name : {"train/ant/clip.mp4", "train/ant/notes.txt", "train/cat/deep/a.csv", "train/readme.md"})
    put(name, std::string("x"));
  put("train/ant/.DS_Store", std::string("x"));  // hidden files are not counted
  put("train/bee/5.WebP", webp_of(noisy_pixels(1, 6, 8, 3)));
  put("train/bee/6.gif", gif_of(noisy_pixels(2, 6, 8, 1)));
  put("train/bee/7.bmp", bmp_of(noisy_pixels(3, 6, 8, 3)));
  put("train/bee/8.tiff", tiff_of(noisy_pixels(4, 6, 8, 3)));
  const auto dataset = open_images(options(), 1);
  EXPECT_EQ(dataset->size(Split::train), 10);
  ASSERT_EQ(dataset->info().notes.size(), 1u);
  EXPECT_THAT(dataset->info().notes[0], HasSubstr("train: 4 files are left out"));
  EXPECT_THAT(dataset->info().notes[0], HasSubstr("ant/clip.mp4, ant/notes.txt, "));

  put("train/wasp/a.mp4", std::string("x"));
  EXPECT_ERROR(error_of([&] { open_images(options(), 1); }), "DATA_EMPTY", "wasp/a.mp4 is a video");
}

TEST_F(Images, FolderErrorsSayWhatIsExpected) {
  const auto error = [&] { return error_of([&] { open_images(options(), 1); }); };
  EXPECT_ERROR(error(), "DISK_NO_FILE", "train");
  put("train/readme.txt", std::string("hello"));
  EXPECT_ERROR(error(), "DATA_EMPTY", "FOLDER/cat/1.jpg");
  put("train/1.jpg", jpeg_of(smooth_pixels(1, 6, 8, 3)));
  EXPECT_ERROR(error(), "DATA_EMPTY", "data.format: image_list");
  fs::create_directories(path("train/empty"));
  EXPECT_ERROR(error(), "DATA_EMPTY", "train/empty");
  fs::remove(path("train/empty"));
  put_classes(1);
  spec::DataOptions job = options();
  job.task = "regression";
  EXPECT_ERROR(error_of([&] { open_images(job, 1); }), "DATA_BAD_OPTION", "image_list");
}

TEST_F(Images, ACycleOfLinksIsRefused) {
  put_classes(1);
  fs::create_directory_symlink(path("train/ant"), path("train/ant/again"));
  EXPECT_ERROR(error_of([&] { open_images(options(), 1); }), "DATA_BAD_SOURCE", "link");
}

// Decodes real photographs, if $SINEW_DATA/raccoon/images/*.jpg exist.
TEST_F(Images, RealPhotosDecode) {
  const char* folder = std::getenv("SINEW_DATA");
  if (folder == nullptr || !fs::is_directory(fs::path(folder) / "raccoon/images"))
    GTEST_SKIP() << "no photos under SINEW_DATA";
  fs::create_directories(path("train"));
  fs::create_directory_symlink(fs::path(folder) / "raccoon/images", path("train/raccoon"));
  put("train/noise/1.png", png_of(noisy_pixels(1, 96, 96, 3)));
  spec::DataOptions job = options();
  job.image.size = {96, 96};
  job.normalize = "auto";
  const auto dataset = open_images(job, 1);
  const Batch batch = dataset->load(Split::train, everything(*dataset, Split::train), {});
  EXPECT_GT(batch.count(), 100);
  double square = 0;
  for (const float value : floats_of(batch.input)) {
    ASSERT_TRUE(std::isfinite(value));
    square += static_cast<double>(value) * value;
  }
  EXPECT_NEAR(square / static_cast<double>(batch.input.count()), 1, 0.01);
}

}  // namespace
}  // namespace sinew::data
