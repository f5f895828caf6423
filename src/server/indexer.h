// Inside server/: a thread that copies the run directories into the store about once a second, until the Indexer is
// destroyed.
#pragma once

#include <atomic>
#include <functional>
#include <string>
#include <thread>

#include "store/store.h"

namespace sinew::server {

class Indexer {
 public:
  // Calls `log` once for each of the first 1,000 different problems, on the indexer's thread. `log` may be empty. The
  // file `tokens` says which owners of experiments are administrators.
  Indexer(store::Store& store, const std::string& root, const std::string& tokens,
          std::function<void(const std::string& line)> log);
  ~Indexer();  // waits until the run that is being indexed is complete
  void stop() { stopping_ = true; }

 private:
  void run(store::Store& store, const std::string& root, const std::string& tokens);

  const std::function<void(const std::string&)> log_;
  std::atomic<bool> stopping_ = false;
  std::thread thread_;
};

}  // namespace sinew::server
