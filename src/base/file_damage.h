// For tests: damages one file of a directory. A seed chooses the file and the damage.
#pragma once

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <stdexcept>
#include <string>
#include <vector>

#include "base/random.h"

namespace sinew {

class FileDamage {
 public:
  // `names` are the files that may be damaged. One kind of damage replaces a file by that of the same name in `other`,
  // a directory of the same kind.
  FileDamage(std::string directory, std::string other, std::vector<std::string> names)
      : directory_(std::move(directory)), other_(std::move(other)), names_(std::move(names)) {}

  // Changes the bytes of one file. Returns what it did.
  std::string apply(uint64_t seed) const {
    RandomStream random{random_key({seed, 0xDA3A6E})};
    const std::string& name = names_[random.below(names_.size())];
    const std::string before = bytes_of(directory_ + "/" + name);
    std::string after = before, what;
    switch (seed % 5) {
      case 0: {
        const size_t length = std::min<size_t>(before.size(), 1 + random.below(4096));
        const size_t at = random.below(before.size() - length + 1);
        std::fill_n(after.begin() + static_cast<std::ptrdiff_t>(at), length, '\0');
        if (after == before) after[at] = 1;  // the block was zero already
        what = "zeroed " + std::to_string(length) + " bytes at " + std::to_string(at);
        break;
      }
      case 1: {
        const size_t at = random.below(before.size());
        after[at] = static_cast<char>(after[at] ^ (1 << random.below(8)));
        what = "flipped a bit at " + std::to_string(at);
        break;
      }
      case 2:
        after.resize(random.below(before.size()));
        what = "cut at " + std::to_string(after.size());
        break;
      case 3:
        after = bytes_of(other_ + "/" + name);
        what = "took the file of another directory";
        break;
      default:
        after =
            bytes_of(directory_ + "/" + names_[(random.below(names_.size() - 1) + index_of(name) + 1) % names_.size()]);
        what = "took another file of the directory";
    }
    if (after == before) throw std::runtime_error("nothing was damaged: " + name + ": " + what);
    std::ofstream(directory_ + "/" + name, std::ios::binary | std::ios::trunc) << after;
    return name + ": " + what;
  }

 private:
  size_t index_of(const std::string& name) const {
    return static_cast<size_t>(std::ranges::find(names_, name) - names_.begin());
  }
  static std::string bytes_of(const std::string& path) {
    std::ifstream in(path, std::ios::binary);
    return {std::istreambuf_iterator<char>(in), {}};
  }

  std::string directory_, other_;
  std::vector<std::string> names_;
};

}  // namespace sinew
