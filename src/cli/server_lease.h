// One server a store: a lease in it, held from start to end. What a server writes names it, so that one which was
// thought dead and is not can not write beside its successor.
#pragma once

#include <atomic>
#include <condition_variable>
#include <functional>
#include <mutex>
#include <string>
#include <thread>

#include "store/store.h"

namespace sinew::cli {

class ServerLease {
 public:
  // Throws Error naming the holder when another server lives. One of this machine whose process is gone is not waited
  // for. `lost` is called once, on another thread, when somebody else has it.
  ServerLease(store::Store& store, std::string url, std::function<void(std::string why)> lost);
  ~ServerLease();  // given back
  store::HeldLease held() const { return {kName, fence_}; }

 private:
  static constexpr const char* kName = "server";
  void keep();

  store::Store& store_;
  const std::function<void(std::string)> lost_;
  int64_t fence_ = 0;
  std::mutex mutex_;
  std::condition_variable changed_;
  bool ending_ = false;
  std::thread thread_;
};

}  // namespace sinew::cli
