// Runs another optimiser as a child process. The child speaks the ask-tell protocol (docs/formats/ask-tell.md) on its
// standard input and output.
#pragma once

#include <cstdio>
#include <string>

#include "tune/tune.h"

namespace sinew::bench {

class Child {
 public:
  explicit Child(const std::string& command);  // /bin/sh runs the command
  ~Child();
  Child(const Child&) = delete;
  Child& operator=(const Child&) = delete;

  void begin(const std::string& sampler, const std::string& space, uint64_t seed, int trials);
  struct Asked {
    int64_t id = 0;
    tune::Point point;
  };
  Asked ask(const tune::Space& space);
  void tell(int64_t id, double value);

 private:
  std::string say(const std::string& line);
  FILE* to_ = nullptr;
  FILE* from_ = nullptr;
  int pid_ = 0;
};

}  // namespace sinew::bench
