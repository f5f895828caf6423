#include <cmath>
#include <cstdlib>

#include "data/arrays.h"
#include "data/fixtures.h"
#include "data/numpy_fixtures.h"

namespace sinew::data {
namespace {

FileArray array_of(const std::string& file) {
  std::vector<std::byte> bytes(file.size());
  std::memcpy(bytes.data(), file.data(), file.size());
  const ArrayHeader header = parse_npy(bytes, "a.npy");
  return make_array(std::move(bytes), header, "a.npy");
}

std::vector<double> values_of(const FileArray& array) {
  std::vector<double> values;
  for (int64_t i = 0; i < array.rows(); ++i) {
    for (int64_t j = 0; j < element_count(array.row_shape()); ++j)
      values.push_back(value_at(array.dtype, array.row(i), j));
  }
  return values;
}

TEST(Npy, ReadsTypesOrdersAndVersions) {
  using Values = std::vector<double>;
  EXPECT_EQ(values_of(array_of(npy(dict("<f4", "(2, 2)"), raw<float>({1, 2, 3, 4.5})))), (Values{1, 2, 3, 4.5}));
  EXPECT_EQ(values_of(array_of(npy(dict(">f4", "(2, 2)"), raw<float>({1, 2, 3, 4.5}, true)))), (Values{1, 2, 3, 4.5}));
  EXPECT_EQ(values_of(array_of(npy(dict("<f8", "(2, 3)", true), raw<double>({1, 2, 3, 4, 5, 6})))),
            (Values{1, 3, 5, 2, 4, 6}));
  EXPECT_EQ(values_of(array_of(npy(dict("|u1", "(3,)"), "\x01\xFF\x02"))), (Values{1, 255, 2}));
  EXPECT_EQ(values_of(array_of(npy(dict("|b1", "(2,)"), std::string("\x01\x00", 2)))), (Values{1, 0}));
  EXPECT_EQ(values_of(array_of(npy(dict("<u2", "(2,)"), raw<uint16_t>({65535, 1})))), (Values{65535, 1}));
  EXPECT_EQ(values_of(array_of(npy(dict(">u4", "(1,)"), raw<uint32_t>({4294967295U}, true)))), (Values{4294967295.0}));
  EXPECT_EQ(values_of(array_of(npy(dict("<i8", "(2,)"), raw<int64_t>({-5, 7})))), (Values{-5, 7}));
  EXPECT_EQ(
      values_of(array_of(npy(dict("<f2", "(6,)"), raw<uint16_t>({0x3C00, 0xC000, 0x0001, 0x7BFF, 0x8000, 0x3555})))),
      (Values{1, -2, std::ldexp(1, -24), 65504, 0, 0.333251953125}));
  for (const int version : {2, 3}) {
    EXPECT_EQ(values_of(array_of(npy(dict("<i4", "(1, 2)"), raw<int32_t>({8, 9}), version))), (Values{8, 9}));
  }
  EXPECT_EQ(
      values_of(array_of(npy("{\"shape\":(2L,),\"fortran_order\":False,\"descr\":\"<i2\"}", raw<int16_t>({3, 4})))),
      (Values{3, 4}));
}

TEST(Npy, ErrorsNameWhatIsWrong) {
  const auto error = [](const std::string& file) { return error_of([&] { array_of(file); }); };
  EXPECT_ERROR(error("nothing"), "DATA_WRONG_FORMAT", "a.npy");
  EXPECT_ERROR(error(npy(dict("<f4", "(3,)"), "12345678")), "DATA_DAMAGED_FILE", "3 x 4 bytes = 12");
  EXPECT_ERROR(error(npy(dict("<f4", "(4611686018427387904, 4)"), "")), "DATA_DAMAGED_FILE", "4611686018427387904 x");
  EXPECT_ERROR(error(npy(dict("<f4", "(-1,)"), "")), "DATA_DAMAGED_FILE", "shape");
  EXPECT_ERROR(error(npy(dict("<f4", "(4611686018427387904, 4611686018427387904, 0)"), "")), "DATA_EMPTY", "a.npy");
  EXPECT_ERROR(error(npy(dict("|O", "(3,)"), "xx")), "DATA_UNSUPPORTED_DTYPE", "pickle");
  EXPECT_ERROR(error(npy(dict("<U5", "(3,)"), "xx")), "DATA_UNSUPPORTED_DTYPE", "'<U5'");
  EXPECT_ERROR(error(npy(dict("<c8", "(3,)"), "xx")), "DATA_UNSUPPORTED_DTYPE", "'<c8'");
  EXPECT_ERROR(error(npy("{'descr': [('a', '<f4')], 'fortran_order': False, 'shape': (3,)}", "xx")),
               "DATA_UNSUPPORTED_DTYPE", "structured");
  EXPECT_ERROR(error(npy("{'descr': '<f4', 'shape': (3,)}", "xx")), "DATA_DAMAGED_FILE", "fortran_order");
  EXPECT_ERROR(error(npy(dict("<f4", "(3,)") + " x", "xx")), "DATA_DAMAGED_FILE", "closing brace");
  EXPECT_ERROR(error(npy(dict("<u8", "(1,)"), raw<uint64_t>({uint64_t{1} << 63}))), "DATA_BAD_VALUE", "2^63");
  std::string cut = npy(dict("<f4", "(3,)"), "");
  EXPECT_ERROR(error(cut.substr(0, 30)), "DATA_DAMAGED_FILE", "30 bytes");
  cut[6] = 9;
  EXPECT_ERROR(error(cut), "DATA_WRONG_FORMAT", "version 9");
}

TEST(Npz, ReadsStoredDeflatedAndZip64Members) {
  const std::string x = npy(dict("|u1", "(4, 2, 2, 3)"), random_bytes(1, 48)),
                    y = npy(dict("<i8", "(4,)"), raw<int64_t>({0, 1, 2, 1}));
  const std::string test_x = npy(dict("|u1", "(1, 2, 2, 3)"), random_bytes(2, 12)),
                    test_y = npy(dict("<i8", "(1,)"), raw<int64_t>({2}));
  for (const auto& [deflated, wide] : std::vector<std::pair<bool, bool>>{{false, false}, {true, false}, {true, true}}) {
    Folder folder;
    spec::DataOptions options;
    options.normalize = "none";
    options.train.path = options.test.path = folder.write(
        "d.npz",
        npz({{"x_train.npy", x}, {"y_train.npy", y}, {"x_test.npy", test_x}, {"y_test.npy", test_y}}, deflated, wide));
    const auto dataset = open_dataset(options, 0);
    EXPECT_EQ(dataset->info().format, "npz");
    EXPECT_EQ(dataset->info().train_size, 4);
    EXPECT_EQ(dataset->info().test_size, 1);
    EXPECT_EQ(dataset->info().classes, 3);
    EXPECT_EQ(dataset->info().input_shape, (Shape{3, 2, 2}));  // channels first
    const Batch batch = load_all(*dataset, Split::train);
    const std::string pixels = random_bytes(1, 48);
    for (size_t i = 0; i < 4; ++i) {
      for (size_t c = 0; c < 3; ++c) {
        for (size_t p = 0; p < 4; ++p) {
          const auto expected = static_cast<float>(static_cast<uint8_t>(pixels[i * 12 + p * 3 + c])) / 255;
          ASSERT_FLOAT_EQ(batch.input.as<float>()[i * 12 + c * 4 + p], expected);
        }
      }
    }
  }
}

TEST(Npz, ErrorsNameTheDamage) {
  const std::string x = npy(dict("<f4", "(2, 1)"), raw<float>({1, 2})),
                    y = npy(dict("<i8", "(2,)"), raw<int64_t>({0, 1}));
  Folder folder;
  spec::DataOptions options;
  const auto error = [&](std::string_view bytes) {
    options.format = "npz";
    options.train.path = folder.write("d.npz", bytes);
    return error_of([&] { open_dataset(options, 0); });
  };
  const std::string good = npz({{"x.npy", x}, {"y.npy", y}}, true);
  EXPECT_EQ(error(good), "");
  EXPECT_ERROR(error(good.substr(0, good.size() - 1)), "DATA_DAMAGED_FILE", "end record");
  std::string flipped = npz({{"x.npy", x}, {"y.npy", y}}, false);
  flipped[35 + x.size() - 1] ^= 1;  // the last byte of the data of x
  EXPECT_ERROR(error(flipped), "DATA_DAMAGED_FILE", "d.npz:x.npy: its checksum");
  EXPECT_ERROR(error(npz({{"x.npy", x}, {"why.npy", y}}, true)), "DATA_MISSING_FILES", "x.npy, why.npy");
}

TEST(Npz, AnArrayThatIsTooLargeIsNotUnpacked) {
  const std::string x = npy(dict("<f4", "(1000,)"), std::string(4000, '\0'));
  for (const bool deflated : {false, true}) {
    const std::string file = npz({{"x.npy", x}}, deflated);
    const auto bytes = std::as_bytes(std::span(file));
    const std::vector<ZipMember> members = parse_zip(bytes, "d.npz");
    EXPECT_EQ(unpack(bytes, members.at(0), "d.npz", x.size()).size(), x.size());
    EXPECT_ERROR(error_of([&] { unpack(bytes, members.at(0), "d.npz", x.size() - 1); }), "DATA_FILE_TOO_LARGE",
                 "d.npz:x.npy");
  }
}

// Noise clips pixels to [0, 1], which would destroy images whose values have another range.
TEST(Npy, NoiseNeedsPixelsFromZeroToOne) {
  Folder folder;
  spec::DataOptions options;
  options.train.labels = folder.write("y.npy", npy(dict("<i8", "(2,)"), raw<int64_t>({0, 1})));
  const auto error = [&](const std::string& type, const std::string& values) {
    options.train.images = folder.write("x.npy", npy(dict(type, "(2, 1, 2, 2)"), values));
    return error_of([&] { open_dataset(options, 0); });
  };
  for (const char* normalize : {"auto", "none"}) {
    options.normalize = normalize;
    options.augment.noise = 0.01;
    EXPECT_ERROR(error("<f4", raw<float>({0, 1, 0.5, 1, 255, 3, 0, 17})), "DATA_BAD_OPTION", "x.npy[1]: holds 255.0");
    EXPECT_ERROR(error("<f8", raw<double>({0, 1, 0.5, 1, -0.25, 3, 0, 17})), "DATA_BAD_OPTION",
                 "x.npy[1]: holds -0.25");
    EXPECT_ERROR(error("<i2", raw<int16_t>({2, 1, 0, 1, 1, 0, 0, 0})), "DATA_BAD_OPTION", "data.augment.noise");
    EXPECT_EQ(error("<f4", raw<float>({0, 1, 0.5, 1, 0.25, 0.75, 0, 1})), "");
    EXPECT_EQ(error("|u1", std::string("\xFF\0\1\2\3\4\5\6", 8)), "");
    options.augment = {};
    options.augment.flip = 0.5;  // a flip works on any values
    EXPECT_EQ(error("<f4", raw<float>({0, 1, 0.5, 1, 255, 3, 0, 17})), "");
  }
}

// Many programs keep labels as floating-point numbers.
TEST(Npy, FewWholeLabelsAreClasses) {
  Folder folder;
  spec::DataOptions options;
  options.train.images = folder.write("x.npy", npy(dict("<f4", "(6, 1)"), raw<float>({1, 2, 3, 4, 5, 6})));
  const auto task = [&](const std::string& type, const std::string& values) {
    options.train.labels = folder.write("y.npy", npy(dict(type, "(6,)"), values));
    return open_dataset(options, 0)->info().task;
  };
  EXPECT_EQ(task("<f4", raw<float>({0, 1, 0, 1, 1, 0})), Task::classification);
  EXPECT_EQ(task("<f8", raw<double>({0, 1, 2, 1, 1, 0})), Task::classification);
  EXPECT_EQ(task("<f4", raw<float>({0, 1, 0, 0.5, 1, 0})), Task::regression);
  EXPECT_EQ(task("<f4", raw<float>({0, 1, 0, 7, 1, 0})), Task::regression) << "more classes than half of the samples";
  EXPECT_EQ(task("<i8", raw<int64_t>({0, 1, 0, 7, 1, 0})), Task::classification);
  EXPECT_EQ(task("<f4", raw<float>({-1, 1, -1, 1, 1, 1})), Task::regression);
}

// An array without axes has no samples, so every split refuses it.
TEST(Npy, ASingleNumberIsRefusedInEverySplit) {
  Folder folder;
  const std::string x = folder.write("x.npy", npy(dict("<f4", "(3, 2)"), raw<float>({1, 2, 3, 4, 5, 6}))),
                    y = folder.write("y.npy", npy(dict("<i8", "(3,)"), raw<int64_t>({0, 1, 0}))),
                    one = folder.write("one.npy", npy(dict("<f4", "()"), raw<float>({1}))),
                    label = folder.write("label.npy", npy(dict("<i8", "()"), raw<int64_t>({1})));
  for (const Split split : {Split::train, Split::val, Split::test}) {
    spec::DataOptions options;
    spec::DataSource* sources[] = {&options.train, &options.val, &options.test};
    options.train = {"", x, y};
    *sources[static_cast<size_t>(split)] = {"", one, label};
    const std::string error = error_of([&] { open_dataset(options, 0); });
    EXPECT_ERROR(error, "DATA_EMPTY", "one.npy");
    EXPECT_HAS(error, "data." + to_string(split));
  }
}

TEST(Npy, TwoFilesOfColumnsNormaliseByColumn) {
  Folder folder;
  spec::DataOptions options;
  options.train.images =
      folder.write("x.npy", npy(dict("<f8", "(3, 2)"), raw<double>({1e9, 5, 1e9 + 1, 5, 1e9 + 2, 5})));
  options.train.labels = folder.write("y.npy", npy(dict("<f4", "(3, 2)"), raw<float>({1, 2, 3, 4, 5, 6})));
  const auto dataset = open_dataset(options, 0);
  EXPECT_EQ(dataset->info().task, Task::regression);
  EXPECT_EQ(dataset->info().target_shape, (Shape{2}));
  EXPECT_EQ(dataset->info().target_mean, (std::vector<double>{3, 4}));
  EXPECT_EQ(info_from_json(info_json(dataset->info())).target_std, dataset->info().target_std);
  const Batch batch = load_all(*dataset, Split::train);
  EXPECT_FLOAT_EQ(batch.input.as<float>()[0], -std::sqrt(1.5F));
  EXPECT_EQ(batch.input.as<float>()[2], 0);  // large values keep their digits
  EXPECT_EQ(batch.input.as<float>()[1], 0);
  EXPECT_EQ(batch.target.as<float>()[5], 6);
  options.train.images = folder.write("x.npy", npy(dict("<f8", "(3, 2)"), raw<double>({1, 2, 3, NAN, 5, 6})));
  EXPECT_ERROR(error_of([&] { open_dataset(options, 0); }), "DATA_BAD_VALUE", "x.npy[1]: holds NaN");
}

// Reads files that NumPy wrote. SINEW_PYTHON names an interpreter that has NumPy.
TEST(Npz, ReadsWhatNumpyWrites) {
  const char* python = std::getenv("SINEW_PYTHON");
  if (python == nullptr) GTEST_SKIP() << "SINEW_PYTHON is not set";
  Folder folder;
  folder.write("write.py",
               "import numpy, sys\n"
               "g = numpy.random.default_rng(5)\n"
               "for i, t in enumerate(['u1','i1','<u2','>i2','<i4','>u4','<i8','<f2','>f4','<f8','?']):\n"
               "    x = (g.random((7, 3, 5)) * 2 if t == '?' else g.random((7, 3, 5)) * 100).astype(t)\n"
               "    x = numpy.asfortranarray(x) if i % 2 else x\n"
               "    y = x.reshape(7, -1).astype('f8').sum(1)\n"
               "    (numpy.savez if i % 3 else numpy.savez_compressed)(f'{sys.argv[1]}/{i}.npz', x=x, y=y)\n");
  ASSERT_EQ(std::system((std::string(python) + ' ' + folder.path("write.py") + ' ' + folder.path()).c_str()), 0);
  for (int i = 0; i < 11; ++i) {
    spec::DataOptions options;
    options.normalize = "none";
    options.train.path = folder.path(std::to_string(i) + ".npz");
    const auto dataset = open_dataset(options, 0);
    ASSERT_EQ(dataset->info().input_shape, (Shape{1, 3, 5}));
    const Batch batch = load_all(*dataset, Split::train);
    for (int64_t s = 0; s < 7; ++s) {
      double sum = 0;
      for (int64_t j = 0; j < 15; ++j) sum += batch.input.as<float>()[s * 15 + j];
      EXPECT_NEAR(sum * (i == 0 ? 255 : 1), batch.target.as<float>()[s], 1e-2) << i;
    }
  }
}

}  // namespace
}  // namespace sinew::data
