// Decides which addresses a confined process may connect to and listen at.
#pragma once

#include <sys/socket.h>

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "sandbox/sandbox.h"

namespace sinew::sandbox {

struct Endpoint {
  std::string host;  // an address in digits; an IPv4 address inside an IPv6 one becomes an IPv4 address
  uint16_t port = 0;
  bool operator==(const Endpoint&) const = default;
};
// Returns nullopt if it is no whole IPv4 or IPv6 address.
std::optional<Endpoint> endpoint_of(const sockaddr_storage& address, size_t size);

// Facts about this machine, as arguments so that tests can make them up.
struct Surroundings {
  std::function<bool(const std::string& host)> is_here;  // whether this machine has the address
  std::function<bool(const Endpoint&)> is_of_run;        // whether only processes of the run listen there
};
Surroundings surroundings(const std::string& run_directory);

bool may_connect(const Links& links, const Endpoint& to, const Surroundings& here);
bool may_bind(const Links& links, const Endpoint& at);

// Returns whether a process is the coordinator or a worker of the run. `program` is the path of its program,
// `arguments` its arguments separated by zeros. `same_directory` compares an argument with the run directory.
bool is_process_of_run(const std::string& program, const std::string& arguments,
                       const std::function<bool(const std::string&)>& same_directory);

// Returns the inodes of the sockets that may get a connection to `to`. `table` is a text like /proc/net/tcp, or two
// such texts. A socket that listens at this very address comes before one that listens at all addresses. Pure.
std::vector<std::string> listeners_at(const std::string& table, const Endpoint& to);

}  // namespace sinew::sandbox
