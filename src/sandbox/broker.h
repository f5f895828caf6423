// Inside sandbox/: the process that opens the links of a confined process.
#pragma once

#include "sandbox/sandbox.h"

namespace sinew::sandbox {

// Forks the broker. Make it before the process is confined, and give it the listener of the filter afterwards.
class Broker {
 public:
  explicit Broker(const Links& links);  // throws Error if the kernel does not let the broker do its work
  ~Broker();
  Broker(const Broker&) = delete;
  Broker& operator=(const Broker&) = delete;
  void serve(int listener);  // gives the listener to the broker, which answers from now on

 private:
  void expect_answer(const char* what) const;
  int channel_ = -1;
};

}  // namespace sinew::sandbox
