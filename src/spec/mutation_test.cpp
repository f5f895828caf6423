// Tests that read_job refuses a valid file in which one line was broken, and nearly always reports a problem at that
// line.
#include <fstream>
#include <functional>
#include <regex>
#include <sstream>

#include "base/random.h"
#include "spec/expect_problems.h"

namespace sinew::spec {
namespace {

using Lines = std::vector<std::string>;

Lines good_file(const std::string& name) {
  std::ifstream file(std::string(SINEW_SOURCE_DIR) + "/tests/jobs/" + name + ".yaml");
  Lines lines;
  for (std::string line; std::getline(file, line);) lines.push_back(line);
  EXPECT_FALSE(lines.empty()) << name;
  return lines;
}

std::string text_of(const Lines& lines) {
  std::string text;
  for (const std::string& line : lines) text += line + "\n";
  return text;
}

size_t indentation(const std::string& line) {
  return std::min(line.find_first_not_of(' '), line.size());
}
bool is_key(const std::string& line) {
  return line.find(':') != std::string::npos && line.find('#') == std::string::npos;
}
std::string value_of(const std::string& line) {
  const size_t colon = line.find(": ");
  return colon == std::string::npos ? "" : line.substr(colon + 2);
}
std::string with_value(const std::string& line, const std::string& value) {
  return line.substr(0, line.find(':')) + ": " + value;
}

// Breaks the line and returns the 1-based number of the line that must then have a problem. Returns 0 if the mutation
// does not apply to the line.
struct Mutation {
  const char* name;
  std::function<int(Lines& lines, size_t at, RandomStream& random)> apply;
};

int replace_value(Lines& lines, size_t at, const std::string& value) {
  if (value_of(lines[at]).empty()) return 0;
  lines[at] = with_value(lines[at], value);
  return static_cast<int>(at) + 1;
}

const std::vector<Mutation>& mutations() {
  static const std::vector<Mutation> list = {
      {"misspelt key",
       [](Lines& lines, size_t at, RandomStream& random) {
         const size_t first = indentation(lines[at]), length = lines[at].find(':') - first;
         lines[at].insert(first + random.below(length + 1), "qz");
         return static_cast<int>(at) + 1;
       }},
      {"key given twice",
       [](Lines& lines, size_t at, RandomStream&) {
         lines.insert(lines.begin() + static_cast<long>(at), lines[at]);
         return static_cast<int>(at) + 2;
       }},
      {"section for a value",
       [](Lines& lines, size_t at, RandomStream&) { return replace_value(lines, at, "{qz: 1}"); }},
      {"null", [](Lines& lines, size_t at,
                  RandomStream& random) { return replace_value(lines, at, random.below(2) == 0 ? "null" : "~"); }},
      {"quote not closed",
       [](Lines& lines, size_t at, RandomStream& random) {
         return replace_value(lines, at, random.below(2) == 0 ? "\"abc" : "'abc");
       }},
      {"bracket not closed",
       [](Lines& lines, size_t at, RandomStream& random) {
         return replace_value(lines, at, random.below(2) == 0 ? "[1, 2" : "{a: 1");
       }},
      {"out of range",
       [](Lines& lines, size_t at, RandomStream&) {
         static const std::regex number("[0-9.e-]+");
         return std::regex_match(value_of(lines[at]), number) ? replace_value(lines, at, "-7") : 0;
       }},
      {"not a number",
       [](Lines& lines, size_t at, RandomStream& random) {
         static const std::regex number("[0-9.e-]+");
         const char* bad[] = {".nan", "many", "12x", "'3'", "0x10", "1_000", "true", "1e999", "[1]", "1 2"};
         return std::regex_match(value_of(lines[at]), number) ? replace_value(lines, at, bad[random.below(10)]) : 0;
       }},
      {"bad unit",
       [](Lines& lines, size_t at, RandomStream& random) {
         static const std::regex amount("[0-9.]+[kM]?(ep|st|sp|tok|s|m|h|d|dur)");
         const char* bad[] = {"10", "10 ep", "10x", "-1ep", "ep", "1e3st", "0.5st"};
         return std::regex_match(value_of(lines[at]), amount) ? replace_value(lines, at, bad[random.below(7)]) : 0;
       }},
      {"unknown choice",
       [](Lines& lines, size_t at, RandomStream&) {
         static const std::regex choice(
             " +(activation|norm|stem|format|task|normalize|on_corrupt|tokens|precision|"
             "memory_format|device|mode): .*");
         return std::regex_match(lines[at], choice) ? replace_value(lines, at, "qz") : 0;
       }},
      {"no colon",
       [](Lines& lines, size_t at, RandomStream&) {
         if (value_of(lines[at]).empty() || value_of(lines[at]).find(':') != std::string::npos) return 0;
         lines[at].erase(lines[at].find(':'), 1);
         return static_cast<int>(at) + 1;
       }},
      {"deeper than its neighbours",
       [](Lines& lines, size_t at, RandomStream& random) {
         const bool follows = at > 0 && is_key(lines[at - 1]) && !value_of(lines[at - 1]).empty() &&
                              indentation(lines[at - 1]) == indentation(lines[at]);
         if (!follows) return 0;
         lines[at].insert(0, std::string(1 + random.below(3), ' '));
         return static_cast<int>(at) + 1;
       }},
      {"less deep than its neighbours",
       [](Lines& lines, size_t at, RandomStream&) {
         const bool follows =
             at > 0 && indentation(lines[at - 1]) >= indentation(lines[at]) && indentation(lines[at]) > 0;
         if (!follows) return 0;
         lines[at].erase(0, 1);
         return static_cast<int>(at) + 1;
       }},
      {"tab",
       [](Lines& lines, size_t at, RandomStream&) {
         if (indentation(lines[at]) == 0) return 0;
         lines[at] = "\t" + lines[at].substr(indentation(lines[at]));
         return static_cast<int>(at) + 1;
       }},
      {"byte that is no text",
       [](Lines& lines, size_t at, RandomStream& random) {
         static const std::string kBytes("\x00\x01\x04\x07\x0b\x1b\x7f\x80\xff\xc0\xed", 11);
         lines[at].insert(random.below(lines[at].size()), 1, kBytes[random.below(kBytes.size())]);
         return static_cast<int>(at) + 1;
       }},
      {"train left out",
       [](Lines& lines, size_t at, RandomStream&) {
         if (lines[at] != "data:") return 0;
         for (size_t i = at + 1; i < lines.size(); ++i) {
           if (!lines[i].starts_with("  train:")) continue;
           do lines.erase(lines.begin() + static_cast<long>(i));
           while (indentation(lines[i]) > 2);
           return static_cast<int>(at) + 1;
         }
         return 0;
       }},
  };
  return list;
}

constexpr const char* kMutated[] = {"digits", "table", "photos", "text"};

TEST(Mutations, AreRefusedAtTheirLine) {
  constexpr int kEach = 60;
  int cases = 0, refused = 0, right_line = 0;
  RandomStream random(random_key({5}));
  for (const Mutation& mutation : mutations()) {
    for (int made = 0, tries = 0; made < kEach && tries < 20000; ++tries) {
      Lines lines = good_file(kMutated[random.below(4)]);
      const size_t at = random.below(lines.size());
      if (!is_key(lines[at])) continue;
      const int expected = mutation.apply(lines, at, random);
      if (expected == 0) continue;
      ++made;
      ++cases;
      const Reading reading = read_job(text_of(lines), "job");
      const bool at_line = std::any_of(reading.problems.begin(), reading.problems.end(),
                                       [&](const Problem& problem) { return problem.line == expected; });
      refused += reading.problems.empty() ? 0 : 1;
      right_line += at_line ? 1 : 0;
      if (!at_line) {
        std::printf("%s, line %d of\n%s->\n", mutation.name, expected, text_of(lines).c_str());
        for (const Problem& problem : reading.problems) std::printf("%s\n", to_string(problem).c_str());
      }
    }
  }
  std::printf("%d mutated files: %d refused, %d at the broken line\n", cases, refused, right_line);
  EXPECT_GE(cases, 900);
  EXPECT_EQ(refused, cases);
  EXPECT_GE(right_line * 100, cases * 99);
}

// Makes random changes, some of which leave the file valid. read_job must not crash. If it accepts a file, then to_yaml
// followed by read_job must give the same job again.
TEST(Mutations, RandomChangesDoNotCrashTheReader) {
  RandomStream random(random_key({6}));
  int accepted = 0;
  for (int i = 0; i < 3000; ++i) {
    Lines lines = good_file(kMutated[random.below(4)]);
    const size_t a = random.below(lines.size()), b = random.below(lines.size());
    switch (random.below(4)) {
      case 0: lines.erase(lines.begin() + static_cast<long>(a)); break;
      case 1: std::swap(lines[a], lines[b]); break;
      case 2: lines[a] = lines[b]; break;
      default: {
        std::string& line = lines[a];
        if (!line.empty()) line[random.below(line.size())] = static_cast<char>(32 + random.below(95));
      }
    }
    const Reading reading = read_job(text_of(lines), "job");
    if (!reading.problems.empty()) continue;
    ++accepted;
    const Reading again = read_job(to_yaml(reading.job), "job");
    ASSERT_TRUE(again.problems.empty()) << text_of(lines);
    ASSERT_EQ(again.job, reading.job) << text_of(lines);
  }
  EXPECT_GT(accepted, 100);
  EXPECT_LT(accepted, 2500);
}

}  // namespace
}  // namespace sinew::spec
