// Tests resolved.yaml, in which every `auto` is decided. A resumed run reads only this file, so it must be a valid job
// file that names the same data.
#include <functional>
#include <nlohmann/json.hpp>

#include "data/fixtures.h"
#include "data/formats.h"
#include "data/image_decode_test_images.h"
#include "data/numpy_fixtures.h"
#include "data/tar_fixtures.h"

namespace sinew::data {
namespace {

spec::Job resolved(const spec::DataOptions& options, const DataInfo& info) {
  spec::Job job;
  job.data = options;
  job.data.format = info.format;
  return job;
}

// One dataset in every format that can be detected.
struct Sets {
  Folder folder;

  std::string image(const std::string& name, uint64_t seed) const {
    const Bytes bytes = png_of(noisy_pixels(seed, 4, 5, 3));
    return folder.write(name, {reinterpret_cast<const char*>(bytes.data()), bytes.size()});
  }
  spec::DataOptions path(const std::string& path, const std::string& target = "") const {
    spec::DataOptions options;
    options.train.path = path;
    options.columns.target = target;
    return options;
  }
  spec::DataOptions of(const std::string& format) const {
    if (format == "idx") {
      folder.write("mnist/train-images-idx3-ubyte", idx_bytes(8, {4, 2, 3}, random_bytes(1, 24)));
      folder.write("mnist/train-labels-idx1-ubyte", idx_bytes(8, {4}, std::string("\0\1\2\1", 4)));
      return path(folder.path("mnist"));
    }
    if (format == "cifar10") return path(folder.write("c10/data_batch_1.bin", random_bytes(2, size_t{3073} * 3, 10)));
    if (format == "cifar100") return path(folder.write("c100/some.bin", random_bytes(3, size_t{3074} * 3, 10)));
    const std::string rows = "x,y\n1,a\n2,b\n3,a\n";
    if (format == "csv") return path(folder.write("t.csv", rows), "y");
    if (format == "tsv") return path(folder.write("t.tsv", "x\ty\n1\ta\n2\tb\n3\ta\n"), "y");
    if (format == "jsonl") return path(folder.write("t.jsonl", "{\"x\":1,\"y\":\"a\"}\n{\"x\":2,\"y\":\"b\"}\n"), "y");
    const std::string x = npy(dict("<f4", "(3, 2)"), raw<float>({1, 2, 3, 4, 5, 6})),
                      y = npy(dict("<i8", "(3,)"), raw<int64_t>({0, 1, 0}));
    if (format == "npy") {
      spec::DataOptions options;
      options.train = {"", folder.write("x.npy", x), folder.write("y.npy", y)};
      return options;
    }
    if (format == "npz") return path(folder.write("d.npz", npz({{"x.npy", x}, {"y.npy", y}}, true)));
    if (format == "text") return path(folder.write("t.txt", std::string(500, 'a') + std::string(500, 'b')));
    if (format == "text_folder") {
      for (const char* name : {"texts/a/1.txt", "texts/a/2.txt", "texts/b/1.txt", "texts/b/2.txt"})
        folder.write(name, std::string("the words of ") + name);
      return path(folder.path("texts"), "label");
    }
    if (format == "webdataset") {
      const auto file = [&](uint64_t seed) {
        const Bytes bytes = png_of(noisy_pixels(seed, 4, 5, 3));
        return std::string(reinterpret_cast<const char*>(bytes.data()), bytes.size());
      };
      return path(folder.write("t.tar", tar_of(tar_member("1.png", file(1)) + tar_member("1.cls", "cat") +
                                               tar_member("2.png", file(2)) + tar_member("2.cls", "dog"))));
    }
    image("images/cat/1.png", 1), image("images/dog/2.png", 2);
    if (format == "image_folder") return path(folder.path("images"));
    return path(folder.write("images/all.csv", "path,label\ncat/1.png,cat\ndog/2.png,dog\n"));
  }
};

TEST(Resolved, EveryDetectedFormatResolvesToAJobForTheSameData) {
  const Sets sets;
  for (const Format& format : formats()) {
    const spec::DataOptions options = sets.of(std::string(format.name));
    const auto dataset = open_dataset(options, 7);
    ASSERT_EQ(dataset->info().format, format.name);
    const std::string yaml = spec::to_yaml(resolved(options, dataset->info()), dataset->info().reasons);
    const spec::Reading reading = spec::read_job(yaml, "resolved.yaml");
    ASSERT_TRUE(reading.problems.empty()) << to_string(reading.problems[0]) << "\n" << yaml;
    EXPECT_EQ(open_dataset(reading.job.data, 7)->info().digest, dataset->info().digest) << format.name;
  }
}

// An option of another format must be refused, as it is when the job names the format. It must never be ignored
// silently.
TEST(Resolved, OptionsThatTheFormatDoesNotUseAreRefused) {
  struct Foreign {
    const char* key;
    std::function<void(spec::DataOptions&)> give;
  };
  const Foreign kForeign[] = {
      {"data.columns.features", [](auto& data) { data.columns.features = {"x"}; }},
      {"data.columns.categorical", [](auto& data) { data.columns.categorical = {"x"}; }},
      {"data.columns.ignore", [](auto& data) { data.columns.ignore = {"z"}; }},
      {"data.columns.numeric", [](auto& data) { data.columns.numeric = {"x"}; }},
      {"data.columns.on_bad_cell", [](auto& data) { data.columns.on_bad_cell = "missing"; }},
      {"data.table.sep", [](auto& data) { data.table.sep = "pipe"; }},
      {"data.table.dates", [](auto& data) { data.table.dates = "day_first"; }},
      {"data.image.size",
       [](auto& data) {
         data.image.size = {4, 5};
       }},
      {"data.image.channels", [](auto& data) { data.image.channels = 1; }},
      {"data.text.tokens", [](auto& data) { data.text.tokens = "bytes"; }},
      {"data.text.window", [](auto& data) { data.text.window = 16; }},
      {"data.normalize", [](auto& data) { data.normalize = "none"; }},
      {"data.augment.flip", [](auto& data) { data.augment.flip = 0.5; }},
      {"data.augment.scale",
       [](auto& data) {
         data.augment.scale = {0.9, 1.1};
       }},
  };
  const Sets sets;
  for (const Format& format : formats()) {
    const spec::DataOptions usual = sets.of(std::string(format.name));
    int refused = 0;
    for (const Foreign& foreign : kForeign) {
      spec::DataOptions named = usual, detected = usual;
      named.format = format.name;
      foreign.give(named), foreign.give(detected);
      const bool has_effect = spec::without_effect(named).empty();
      refused += has_effect ? 0 : 1;
      const std::string error = error_of([&] { open_dataset(detected, 7); });
      EXPECT_EQ(is_error(error, "DATA_BAD_OPTION", foreign.key) && error.starts_with(foreign.key), !has_effect)
          << error;
      EXPECT_EQ(error.find("choose data.format: auto"), std::string::npos) << error;
    }
    EXPECT_GT(refused, 2) << format.name;
  }
}

// A given target must not turn a file of another format into a table.
TEST(Resolved, ATargetInAFormatWithoutColumnsIsRefused) {
  const Sets sets;
  spec::DataOptions options = sets.of("npz");
  options.columns.target = "y";
  EXPECT_ERROR(error_of([&] { open_dataset(options, 7); }), "DATA_BAD_OPTION", "data.columns.target ");
}

// A broken cell may hold any bytes. The reason that quotes the cell must still be one line of UTF-8.
TEST(Resolved, AReasonThatQuotesABrokenCellIsUtf8) {
  for (const std::string& cell : {std::string(39, 'x') + "ü", std::string("\x96"), std::string("a\xC3"),
                                  std::string("\xC2\x9B"
                                              "31m"),
                                  std::string(500, '\xFF')}) {
    const Folder folder;
    spec::DataOptions options;
    options.train.path = folder.write("t.csv", "x,y\n1,2.5\n2," + cell + "\n3,3.5\n4,4.5\n");
    options.columns.target = "y";
    options.task = "regression";
    options.on_corrupt = "skip";
    const auto dataset = open_dataset(options, 7);
    EXPECT_EQ(dataset->info().train_size, 3);
    const std::string& reason = dataset->info().reasons.at("data.on_corrupt");
    EXPECT_HAS(reason, "t.csv:3:3: column 'y' holds '");
    EXPECT_LT(reason.size(), folder.path().size() + 200);
    EXPECT_NO_THROW(nlohmann::json(reason).dump());
    const std::string yaml = spec::to_yaml(resolved(options, dataset->info()), dataset->info().reasons);
    const spec::Reading reading = spec::read_job(yaml, "resolved.yaml");
    EXPECT_TRUE(reading.problems.empty()) << to_string(reading.problems[0]) << "\n" << yaml;
  }
}

}  // namespace
}  // namespace sinew::data
