// Compares the problems of an invalid job file with the expected ones. For the tests of spec/.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <ostream>
#include <string>
#include <string_view>
#include <vector>

#include "spec/spec.h"

namespace sinew::spec {

inline constexpr const char* kData = "data: {train: x}\n";

struct BadFile {
  const char* name;
  std::string yaml;
  std::vector<std::string> problems;  // in the form that problems_are takes; the file's name is "job"
};

inline std::vector<std::string> problems_of(const std::string& yaml, const std::vector<std::string>& overrides = {},
                                            const Environment& environment = {}) {
  std::vector<std::string> texts;
  for (const Problem& problem : read_job(yaml, "job", overrides, environment).problems) {
    texts.push_back(to_string(problem));
  }
  return texts;
}

// Returns whether a printed problem is the expected one. "job:2:23: SPEC_WRONG_TYPE | trainer.seed | 'x'" expects the
// position, the code, and the texts between the bars anywhere in the message.
inline bool is_problem(const std::string& text, std::string_view expected) {
  const auto next = [&](std::string_view separator) {
    const std::string_view part = expected.substr(0, expected.find(separator));
    expected.remove_prefix(std::min(part.size() + separator.size(), expected.size()));
    return part;
  };
  const std::string position = std::string(next(": ")) + ": ", code = " [" + std::string(next(" | ")) + "]";
  bool good = text.starts_with(position) && text.find(code) != std::string::npos;
  while (!expected.empty()) good = text.find(next(" | ")) != std::string::npos && good;
  return good;
}

inline testing::AssertionResult problems_are(const std::vector<std::string>& texts,
                                             const std::vector<std::string>& expected) {
  bool good = texts.size() == expected.size();
  for (size_t i = 0; good && i < texts.size(); ++i) good = is_problem(texts[i], expected[i]);
  if (good) return testing::AssertionSuccess();
  return testing::AssertionFailure() << testing::PrintToString(texts) << " instead of "
                                     << testing::PrintToString(expected);
}

inline void PrintTo(const BadFile& file, std::ostream* out) {
  *out << file.yaml;
}

class BadFiles : public testing::TestWithParam<BadFile> {};

}  // namespace sinew::spec
