// For the tables of bad files in the tests of spec/.
#pragma once

#include <gtest/gtest.h>

#include <ostream>
#include <string>
#include <vector>

#include "spec/spec.h"

namespace sinew::spec {

inline constexpr const char* kData = "data: {train: x}\n";

struct BadFile {
  const char* name;
  std::string yaml;
  std::vector<std::string> problems;  // as printed; the file is called "job"
};

inline std::vector<std::string> problems_of(const std::string& yaml, const std::vector<std::string>& overrides = {},
                                            const Environment& environment = {}) {
  std::vector<std::string> texts;
  for (const Problem& problem : read_job(yaml, "job", overrides, environment).problems) {
    texts.push_back(to_string(problem));
  }
  return texts;
}

inline void PrintTo(const BadFile& file, std::ostream* out) {
  *out << file.yaml;
}

class BadFiles : public testing::TestWithParam<BadFile> {};

}  // namespace sinew::spec
