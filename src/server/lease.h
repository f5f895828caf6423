// Inside server/: the lease that lets only one server use a store. The server holds the lease from its start to its end
// and names it in every write. So the store refuses the writes of a server that has lost its lease.
#pragma once

#include <condition_variable>
#include <mutex>
#include <string>
#include <thread>

#include "store/store.h"

namespace sinew::server {

class ServerLease {
 public:
  // Throws Error (SERVER_ALREADY_RUNNING), which names the holder's address, if another server holds the lease. If the
  // holder is a process of this machine that has ended, takes the lease at once.
  ServerLease(store::Store& store, const std::string& address);
  ~ServerLease();  // releases the lease
  store::HeldLease held() const { return {kName, fence_}; }
  std::string lost() const;  // why this server has lost the lease; empty while it holds it

 private:
  static constexpr const char* kName = "server";
  void renew();

  store::Store& store_;
  int64_t fence_ = 0;
  mutable std::mutex mutex_;
  std::condition_variable changed_;
  std::string lost_;
  bool ending_ = false;
  std::thread thread_;
};

}  // namespace sinew::server
