// For the tests of image folders and lists: builds small image datasets.
#pragma once

#include <gtest/gtest.h>

#include <string>

#include "base/expected_error.h"
#include "data/data.h"
#include "data/image_decode_test_images.h"
#include "data/scratch_folder.h"

namespace sinew::data {

class Images : public testing::Test {
 protected:
  std::string path(const std::string& name) const { return folder_.path(name); }
  void put(const std::string& name, const Bytes& bytes) const {
    folder_.write(name, {reinterpret_cast<const char*>(bytes.data()), bytes.size()});
  }
  void put(const std::string& name, const std::string& text) const { folder_.write(name, text); }
  // Classes ant, bee, cat with `each` PNG files of height 6 and width 8.
  void put_classes(int each) const {
    for (const std::string name : {"ant", "bee", "cat"}) {
      for (int i = 0; i < each; ++i)
        put("train/" + name + "/" + std::to_string(i) + ".png", png_of(noisy_pixels(next_++, 6, 8, 3)));
    }
  }
  spec::DataOptions options() const {
    spec::DataOptions result;
    result.format = "image_folder";
    result.train.path = path("train");
    result.normalize = "none";
    return result;
  }
  spec::DataOptions list_options(const std::string& text) const {
    put("train/labels.txt", text);
    spec::DataOptions result = options();
    result.format = "image_list";
    result.train.path = path("train/labels.txt");
    return result;
  }

  mutable uint64_t next_ = 1;
  Folder folder_;
};

}  // namespace sinew::data
