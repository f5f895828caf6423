#include "data/fixtures.h"

namespace sinew::data {
namespace {

std::string records(uint64_t seed, int count, int label_bytes, int classes) {
  std::string out;
  for (int i = 0; i < count; ++i) {
    if (label_bytes == 2) out.push_back(static_cast<char>(i % 20));
    out.push_back(static_cast<char>((i + static_cast<int>(seed)) % classes));
    out += random_bytes(seed * 1000 + static_cast<uint64_t>(i), 3072);
  }
  return out;
}

TEST(Cifar, FolderOfBatchesAndNames) {
  Folder folder;
  folder.write("data_batch_2.bin", records(2, 5, 1, 10));
  folder.write("data_batch_1.bin", records(1, 3, 1, 10));
  folder.write("test_batch.bin", records(3, 2, 1, 10));
  folder.write("batches.meta.txt", "airplane\nautomobile\nbird\ncat\ndeer\ndog\nfrog\nhorse\nship\ntruck\n\n");
  spec::DataOptions options;
  options.normalize = "none";
  options.train.path = options.test.path = folder.path();
  const auto dataset = open_dataset(options, 0);
  EXPECT_EQ(dataset->info().format, "cifar10");
  EXPECT_EQ(dataset->info().classes, 10);
  EXPECT_EQ(dataset->info().class_names[9], "truck");
  EXPECT_EQ(dataset->info().input_shape, (Shape{3, 32, 32}));
  EXPECT_EQ(dataset->info().train_size, 8);
  EXPECT_EQ(dataset->info().test_size, 2);
  EXPECT_EQ(dataset->describe(Split::train, 2), "data_batch_1.bin[2]");
  EXPECT_EQ(dataset->describe(Split::train, 3), "data_batch_2.bin[0]");
  EXPECT_EQ(dataset->describe(Split::test, 1), "test_batch.bin[1]");
  const Batch batch = load_all(*dataset, Split::train);
  const std::string pixels = random_bytes(2004, 3072);  // the pixels of the last training image
  for (size_t p = 0; p < 3072; ++p) {
    ASSERT_FLOAT_EQ(batch.input.as<float>()[7 * 3072 + p], static_cast<float>(static_cast<uint8_t>(pixels[p])) / 255);
  }
  EXPECT_EQ(batch.target.as<int64_t>()[7], 6);
}

TEST(Cifar, HundredFineLabelsAndPerChannelNormalisation) {
  Folder folder;
  folder.write("train.bin", records(1, 120, 2, 100));
  folder.write("test.bin", records(2, 4, 2, 100));
  spec::DataOptions options;
  options.train.path = options.val.path = folder.path();
  const auto dataset = open_dataset(options, 0);
  EXPECT_EQ(dataset->info().format, "cifar100");
  EXPECT_EQ(dataset->info().classes, 100);
  EXPECT_EQ(dataset->info().val_size, 4);
  const Batch batch = load_all(*dataset, Split::train);
  EXPECT_EQ(batch.target.as<int64_t>()[99], 0);
  for (int64_t c = 0; c < 3; ++c) {
    double sum = 0, squares = 0;
    for (int64_t i = 0; i < batch.count(); ++i) {
      for (int64_t p = 0; p < 1024; ++p) {
        const double value = batch.input.as<float>()[(i * 3 + c) * 1024 + p];
        sum += value;
        squares += value * value;
      }
    }
    EXPECT_NEAR(sum / (120 * 1024), 0, 1e-5);
    EXPECT_NEAR(squares / (120 * 1024), 1, 1e-5);
  }
}

TEST(Cifar, ErrorsNameTheDamage) {
  Folder folder;
  spec::DataOptions options;
  options.format = "cifar10";
  const auto error = [&](std::string_view bytes) {
    options.train.path = folder.write("data_batch_1.bin", bytes);
    return error_of([&] { open_dataset(options, 0); });
  };
  std::string good = records(1, 3, 1, 10);
  EXPECT_EQ(error(good), "");
  EXPECT_ERROR(error(good.substr(1)), "DATA_DAMAGED_FILE", "9,218 bytes");
  EXPECT_ERROR(error(""), "DATA_DAMAGED_FILE", "0 bytes");
  good[3073] = 77;
  EXPECT_ERROR(error(good), "DATA_DAMAGED_FILE", "data_batch_1.bin[1]: label 77");
}

}  // namespace
}  // namespace sinew::data
