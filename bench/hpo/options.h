// Parses the command line options of the programs in bench/hpo. An option is --name value and has a default.
#pragma once

#include <cstdio>
#include <cstdlib>
#include <map>
#include <string>
#include <vector>

#include "base/error.h"
#include "tune/tune.h"

namespace sinew::bench {

using Options = std::map<std::string, std::string>;

inline int number(const Options& options, const char* name) {
  return std::atoi(options.at(name).c_str());
}

inline std::vector<std::string> split(const std::string& text) {
  std::vector<std::string> parts;
  for (size_t from = 0; from < text.size();) {
    const size_t to = std::min(text.find(',', from), text.size());
    parts.push_back(text.substr(from, to - from));
    from = to + 1;
  }
  return parts;
}

inline int run_with(int argc, char** argv, Options options, int (*run)(const Options&)) {
  for (int i = 1; i < argc; i += 2) {
    const std::string name = argv[i][0] == '-' && argv[i][1] == '-' ? argv[i] + 2 : "";
    if (!options.contains(name) || i + 1 == argc)
      return std::fprintf(stderr, "there is no option %s, or it has no value\n", argv[i]), 2;
    options[name] = argv[i + 1];
  }
  try {
    return run(options);
  } catch (const Error& error) {
    return std::fprintf(stderr, "%s\n  try: %s\n", to_string(error).c_str(), error.hint.c_str()), 2;
  }
}

}  // namespace sinew::bench
