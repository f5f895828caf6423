#include <cmath>

#include "data/arrays.h"
#include "data/fixtures.h"
#include "data/formats.h"

namespace sinew::data {
namespace {

struct Written {
  Folder folder;
  std::string images, labels;  // bytes of the arrays
  spec::DataOptions options;
  Written(int64_t count, int64_t height, int64_t width, bool gz = false) {
    images = random_bytes(1, static_cast<size_t>(count * height * width));
    labels = random_bytes(2, static_cast<size_t>(count), 10);
    labels[0] = 9;
    const auto pack = [&](std::string bytes) { return gz ? gzipped(bytes) : bytes; };
    const auto dim = [](int64_t n) { return static_cast<uint32_t>(n); };
    options.train.images = folder.write("im", pack(idx_bytes(8, {dim(count), dim(height), dim(width)}, images)));
    options.train.labels = folder.write("la", pack(idx_bytes(8, {dim(count)}, labels)));
  }
};

TEST(Idx, PixelsAndLabelsComeBackWhole) {
  for (const bool gz : {false, true}) {
    Written written(50, 5, 7, gz);
    written.options.normalize = "none";
    const auto dataset = open_dataset(written.options, 0);
    EXPECT_EQ(dataset->info().format, "idx");
    EXPECT_EQ(dataset->info().input_shape, (Shape{1, 5, 7}));
    EXPECT_EQ(dataset->info().classes, 10);
    EXPECT_EQ(dataset->info().task, Task::classification);
    EXPECT_TRUE(dataset->in_memory());
    const Batch batch = load_all(*dataset, Split::train);
    ASSERT_EQ(batch.input.shape, (Shape{50, 1, 5, 7}));
    ASSERT_EQ(batch.target.shape, (Shape{50}));
    for (size_t i = 0; i < written.images.size(); ++i) {
      ASSERT_FLOAT_EQ(batch.input.as<float>()[i], static_cast<float>(static_cast<uint8_t>(written.images[i])) / 255.0F);
    }
    for (size_t i = 0; i < 50; ++i) ASSERT_EQ(batch.target.as<int64_t>()[i], written.labels[i]);
    EXPECT_EQ(dataset->describe(Split::train, 17), "im[17]");
  }
}

TEST(Idx, NormalisedTrainHasMeanZeroAndDeviationOne) {
  Written written(300, 8, 9);
  written.options.split_val = 0.2;
  written.options.split_test = 0.1;
  const auto dataset = open_dataset(written.options, 5);
  EXPECT_EQ(dataset->info().train_size, 210);
  EXPECT_EQ(dataset->info().val_size, 60);
  EXPECT_EQ(dataset->info().test_size, 30);
  const Batch train = load_all(*dataset, Split::train);
  double sum = 0, squares = 0;
  for (int64_t i = 0; i < train.input.count(); ++i) {
    sum += train.input.as<float>()[i];
    squares += train.input.as<float>()[i] * train.input.as<float>()[i];
  }
  const auto count = static_cast<double>(train.input.count());
  EXPECT_NEAR(sum / count, 0, 1e-6);
  EXPECT_NEAR(squares / count, 1, 1e-6);
  // The statistics come from train alone, so the mean of val differs from 0 by chance.
  const Batch val = load_all(*dataset, Split::val);
  double val_sum = 0;
  for (int64_t i = 0; i < val.input.count(); ++i) val_sum += val.input.as<float>()[i];
  EXPECT_GT(std::abs(val_sum / static_cast<double>(val.input.count())), 1e-5);
}

TEST(Idx, SplitsHoldEachSampleOfTheFileOnce) {
  Written written(90, 2, 2);
  for (size_t i = 0; i < 90; ++i) written.images[4 * i] = static_cast<char>(i);  // each image holds its own index
  written.folder.write("im", idx_bytes(8, {90, 2, 2}, written.images));
  written.options.split_val = 0.3;
  written.options.normalize = "none";
  const auto dataset = open_dataset(written.options, 1);
  std::vector<int> seen(90);
  for (const Split split : {Split::train, Split::val}) {
    const Batch batch = load_all(*dataset, split);
    for (int64_t i = 0; i < batch.count(); ++i) {
      const auto which = static_cast<size_t>(std::lround(batch.input.as<float>()[4 * i] * 255));
      ++seen[which];
      EXPECT_EQ(dataset->describe(split, i), "im[" + std::to_string(which) + "]");
      EXPECT_EQ(batch.target.as<int64_t>()[i], written.labels[which]);
    }
  }
  EXPECT_EQ(seen, std::vector<int>(90, 1));
}

TEST(Idx, ConstantImagesHaveStdOne) {
  Folder folder;
  spec::DataOptions options;
  options.train.images = folder.write("im", idx_bytes(8, {3, 2, 2}, std::string(12, 'x')));
  options.train.labels = folder.write("la", idx_bytes(8, {3}, std::string("\0\1\1", 3)));
  const Batch batch = load_all(*open_dataset(options, 0), Split::train);
  for (int i = 0; i < 12; ++i) EXPECT_EQ(batch.input.as<float>()[i], 0.0F);
}

TEST(Idx, EveryTypeIsBigEndian) {
  struct Case {
    uint8_t type;
    std::string data;
    float first, second;
  };
  const std::vector<Case> cases = {{0x08, std::string("\xFE\x01", 2), 254, 1},
                                   {0x09, std::string("\xFE\x01", 2), -2, 1},
                                   {0x0B, std::string("\xFF\xFE\x01\x00", 4), -2, 256},
                                   {0x0C, std::string("\xFF\xFF\xFF\xFE\x00\x00\x01\x00", 8), -2, 256},
                                   {0x0D, std::string("\x3F\x80\x00\x00\xC0\x20\x00\x00", 8), 1, -2.5},
                                   {0x0E, std::string("\x3F\xF0\0\0\0\0\0\0\xC0\x04\0\0\0\0\0\0", 16), 1, -2.5}};
  for (const Case& one : cases) {
    Folder folder;
    spec::DataOptions options;
    options.format = "idx";
    options.normalize = "none";
    options.train.images = folder.write("im", idx_bytes(one.type, {2, 1}, one.data));
    options.train.labels = folder.write("la", idx_bytes(8, {2}, std::string("\0\1", 2)));
    const auto dataset = open_dataset(options, 0);
    EXPECT_EQ(dataset->info().input_shape, (Shape{1}));  // rows of columns, not images
    const Batch batch = load_all(*dataset, Split::train);
    EXPECT_EQ(batch.input.as<float>()[0], one.first) << static_cast<int>(one.type);
    EXPECT_EQ(batch.input.as<float>()[1], one.second) << static_cast<int>(one.type);
  }
}

TEST(Idx, FloatTargetsMeanRegressionAndStayInTheirUnits) {
  Folder folder;
  spec::DataOptions options;
  options.train.images = folder.write("im", idx_bytes(8, {2, 3}, "abcdef"));
  options.train.labels = folder.write("la", idx_bytes(0x0D, {2}, std::string("\x3F\x80\x00\x00\xC0\x40\x00\x00", 8)));
  const auto dataset = open_dataset(options, 0);
  EXPECT_EQ(dataset->info().task, Task::regression);
  EXPECT_EQ(dataset->info().classes, 0);
  EXPECT_DOUBLE_EQ(dataset->info().target_mean.at(0), -1);
  EXPECT_DOUBLE_EQ(dataset->info().target_std.at(0), 2);
  const Batch batch = load_all(*dataset, Split::train);
  EXPECT_EQ(batch.target.dtype, DType::f32);
  EXPECT_EQ(batch.target.as<float>()[1], -3.0F);
}

TEST(Idx, FindsFilesByTheirUsualNames) {
  Folder folder;
  folder.write("train-images-idx3-ubyte.gz", gzipped(idx_bytes(8, {4, 2, 2}, std::string(16, 'a'))));
  folder.write("train-labels-idx1-ubyte.gz", gzipped(idx_bytes(8, {4}, std::string("\0\1\2\0", 4))));
  folder.write("t10k-images-idx3-ubyte.gz", gzipped(idx_bytes(8, {2, 2, 2}, std::string(8, 'b'))));
  folder.write("t10k-labels-idx1-ubyte.gz", gzipped(idx_bytes(8, {2}, std::string("\0\1", 2))));
  spec::DataOptions options;
  options.train.path = options.test.path = folder.path();
  const auto dataset = open_dataset(options, 0);
  EXPECT_EQ(dataset->info().format, "idx");
  EXPECT_EQ(dataset->info().train_size, 4);
  EXPECT_EQ(dataset->info().test_size, 2);
  EXPECT_EQ(dataset->info().reasons.count("data.format"), 1U);
}

TEST(Idx, ErrorsNameTheFileTheExpectedAndTheFoundValue) {
  Written good(10, 4, 4);
  const std::string whole = idx_bytes(8, {10, 4, 4}, good.images);
  const auto opened = [&](std::string_view bytes) {
    good.folder.write("im", bytes);
    good.options.format = "idx";
    return error_of([&] { open_dataset(good.options, 0); });
  };
  EXPECT_EQ(opened(whole), "");
  const auto short_by_one = opened(whole.substr(0, whole.size() - 1));
  EXPECT_ERROR(short_by_one, "DATA_DAMAGED_FILE", "10 x 4 x 4 x 1 byte = 160");
  EXPECT_ERROR(short_by_one, "DATA_DAMAGED_FILE", "159");
  EXPECT_ERROR(opened(whole + "x"), "DATA_DAMAGED_FILE", "161");
  EXPECT_ERROR(opened(whole.substr(0, 9)), "DATA_DAMAGED_FILE", "16");
  EXPECT_ERROR(opened(""), "DATA_DAMAGED_FILE", "0 bytes");
  EXPECT_ERROR(opened("\x01\x02\x03\x04 more"), "DATA_WRONG_FORMAT", "1 2 3 4");
  EXPECT_ERROR(opened(idx_bytes(8, {0xFFFFFFFF, 0xFFFFFFFF, 0xFFFFFFFF, 0xFFFFFFFF}, "x")), "DATA_DAMAGED_FILE",
               "4294967295 x");
  EXPECT_ERROR(opened(idx_bytes(8, {9, 4, 4}, good.images.substr(0, 144))), "DATA_COUNT_MISMATCH", "9 samples");
  EXPECT_ERROR(opened(gzipped(whole).substr(0, 60)), "DATA_DAMAGED_FILE", "gzip at byte 60");
  std::string broken = gzipped(whole);
  broken[broken.size() - 6] ^= 1;
  EXPECT_ERROR(opened(broken), "DATA_DAMAGED_FILE", "gzip");
  EXPECT_ERROR(opened(gzipped(whole) + "junk"), "DATA_DAMAGED_FILE", "not gzip");
  EXPECT_EQ(opened(gzipped(whole.substr(0, 50)) + gzipped(whole.substr(50))), "");  // two members in a row
  good.options.train.images = good.folder.path("absent");
  EXPECT_ERROR(error_of([&] { open_dataset(good.options, 0); }), "DATA_UNREADABLE_FILE", "absent: No such file");
}

TEST(Idx, LabelsOfOtherSplitsMustBeClassesOfTrain) {
  Written written(10, 2, 2);
  written.options.test.images = written.folder.write("ti", idx_bytes(8, {2, 2, 2}, "abcdefgh"));
  written.options.test.labels = written.folder.write("tl", idx_bytes(8, {2}, std::string("\1\x0A", 2)));
  EXPECT_ERROR(error_of([&] { open_dataset(written.options, 0); }), "DATA_UNKNOWN_CLASS", "tl[1]: label 10");
  written.folder.write("ti", idx_bytes(8, {2, 1, 4}, "abcdefgh"));
  EXPECT_ERROR(error_of([&] { open_dataset(written.options, 0); }), "DATA_SHAPE_MISMATCH", "ti");
}

TEST(Idx, DigestChangesWithFilesAndSplits) {
  Written written(20, 3, 3);
  const Digest first = open_dataset(written.options, 0)->info().digest;
  EXPECT_EQ(open_dataset(written.options, 1)->info().digest, first);  // without a split the seed has no effect
  written.options.split_val = 0.5;
  const Digest split = open_dataset(written.options, 0)->info().digest;
  EXPECT_NE(split, first);
  EXPECT_NE(open_dataset(written.options, 1)->info().digest, split);
  written.options.split_val = 0;
  written.images[77] ^= 1;
  written.folder.write("im", idx_bytes(8, {20, 3, 3}, written.images));
  EXPECT_NE(open_dataset(written.options, 0)->info().digest, first);
}

}  // namespace
}  // namespace sinew::data
