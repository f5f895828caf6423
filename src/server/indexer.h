// Inside server/: a thread that reads the run directories into the store, about once a second, until it is destroyed.
#pragma once

#include <atomic>
#include <functional>
#include <string>
#include <thread>

#include "store/store.h"

namespace sinew::server {

class Indexer {
 public:
  // `log` receives each problem once; it runs on the indexer's thread and may be empty.
  Indexer(store::Store& store, const std::string& root, std::function<void(const std::string& line)> log);
  ~Indexer();  // completes the run that is being indexed
  void stop() { stopping_ = true; }

 private:
  void run(store::Store& store, const std::string& root);

  const std::function<void(const std::string&)> log_;
  std::atomic<bool> stopping_ = false;
  std::thread thread_;
};

}  // namespace sinew::server
