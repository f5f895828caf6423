// Tests what the digest of an image dataset covers, and which names its classes may have.
#include <gmock/gmock.h>

#include <filesystem>

#include "data/image_fixtures.h"
#include "data/image_folder.h"

namespace sinew::data {
namespace {

namespace fs = std::filesystem;

// The digest covers val and test too, because a worker that evaluates on other images must not join the run.
TEST_F(Images, TheDigestCoversEverySplit) {
  put_classes(2);
  for (const std::string split : {"val", "test"}) {
    for (int i = 0; i < 3; ++i) put(split + "/bee/" + std::to_string(i) + ".png", png_of(noisy_pixels(200, 6, 8, 3)));
  }
  spec::DataOptions all = options();
  all.val.path = path("val");
  all.test.path = path("test");
  const auto digest = [&](const spec::DataOptions& of) { return open_images(of, 1)->info().digest; };
  const Digest first = digest(all), of_train = digest(options());
  EXPECT_NE(first, of_train);
  EXPECT_EQ(digest(all), first);
  for (const std::string split : {"val", "test"}) {
    const Digest before = digest(all);
    put(split + "/bee/1.png", png_of(noisy_pixels(201, 6, 8, 3)));  // another image of equal size
    const Digest content = digest(all);
    EXPECT_NE(content, before) << split;
    Bytes longer = png_of(noisy_pixels(201, 6, 8, 3));
    longer.resize(longer.size() + 1);
    put(split + "/bee/1.png", longer);
    EXPECT_NE(digest(all), content) << split;
    const Digest size = digest(all);
    fs::create_directories(path(split + "/cat"));
    fs::rename(path(split + "/bee/2.png"), path(split + "/cat/2.png"));
    EXPECT_NE(digest(all), size) << split;
  }
  EXPECT_EQ(digest(options()), of_train);
}

// Class names go into model.json at the end of a training. So names that are not text are refused before it begins.
TEST_F(Images, ClassesThatAreNotTextAreRefusedAtOnce) {
  put_classes(1);
  put("train/caf\xE9/1.png", png_of(noisy_pixels(1, 6, 8, 3)));
  EXPECT_ERROR(error_of([&] { open_images(options(), 1); }), "DATA_NOT_UTF8", "/train/caf?: the class 'caf?'");
  const std::string list = "ant/0.png\tant\nbee/0.png\tb\xE9\x65\n";
  EXPECT_ERROR(error_of([&] { open_images(list_options(list), 1); }), "DATA_NOT_UTF8", "labels.txt:2: the class 'b?e'");
}

}  // namespace
}  // namespace sinew::data
