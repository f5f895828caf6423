// What an image data set is known by, and what may be a class of it.
#include <gmock/gmock.h>

#include <filesystem>

#include "data/image_fixtures.h"
#include "data/image_folder.h"

namespace sinew::data {
namespace {

namespace fs = std::filesystem;
using testing::HasSubstr;

// Who evaluates on other pictures is another member.
TEST_F(Images, TheDigestFollowsEveryPart) {
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
    put(split + "/bee/1.png", png_of(noisy_pixels(201, 6, 8, 3)));  // as large, another picture
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

// Names of classes end up in model.json, when all work is done: bytes that are no text are refused before it begins.
TEST_F(Images, ClassesThatAreNotTextAreRefusedAtOnce) {
  put_classes(1);
  put("train/caf\xE9/1.png", png_of(noisy_pixels(1, 6, 8, 3)));
  EXPECT_THAT(error_of([&] { open_images(options(), 1); }).what(),
              HasSubstr("/train/caf?: the class 'caf?' is not UTF-8"));
  const std::string list = "ant/0.png\tant\nbee/0.png\tb\xE9\x65\n";
  EXPECT_THAT(error_of([&] { open_images(list_options(list), 1); }).what(),
              HasSubstr("labels.txt:2: the class 'b?e' is not UTF-8"));
}

}  // namespace
}  // namespace sinew::data
