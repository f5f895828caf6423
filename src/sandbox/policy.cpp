#include "sandbox/policy.h"

#include <arpa/inet.h>
#include <netinet/in.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <sstream>

#include "base/proc.h"
#include "http/http.h"

namespace sinew::sandbox {
namespace {

namespace fs = std::filesystem;

std::string name_of_program(const std::string& path) {
  const std::string name = path.substr(path.rfind('/') + 1);
  return name.substr(0, name.find(' '));  // the kernel adds " (deleted)" once an upgrade has replaced the file
}

bool has_socket(const fs::path& process, const std::string& inode) {
  std::error_code gone;
  for (fs::directory_iterator file(process / "fd", gone), end; !gone && file != end; file.increment(gone)) {
    std::error_code closed;
    if (fs::read_symlink(file->path(), closed) == "socket:[" + inode + "]") return true;
  }
  return false;
}

bool listens_for_run(const fs::path& process, const std::string& inode, const std::string& run_directory) {
  std::error_code gone;
  const std::string program = fs::read_symlink(process / "exe", gone);
  if (gone) return false;  // the process has ended, or belongs to another user
  const auto same = [&](const std::string& argument) {
    std::error_code unknown;
    const fs::path path(argument);
    return fs::equivalent(path.is_absolute() ? path : process / "cwd" / path, run_directory, unknown);
  };
  return is_process_of_run(program, kernel_text(process / "cmdline"), same) && has_socket(process, inode);
}

bool is_any(const std::string& host) {
  return host == "0.0.0.0" || host == "::";
}

bool only_run_listens_at(const std::string& run_directory, const Endpoint& to) {
  constexpr size_t kMost = size_t{64} << 20;
  const std::string table = kernel_text("/proc/self/net/tcp", kMost) + kernel_text("/proc/self/net/tcp6", kMost);
  const std::vector<std::string> inodes = listeners_at(table, to);
  const std::vector<ProcessRow> processes = all_processes();
  const auto of_run = [&](const std::string& inode) {
    return std::ranges::any_of(processes, [&](const ProcessRow& row) {
      return listens_for_run("/proc/" + std::to_string(row.pid), inode, run_directory);
    });
  };
  return !inodes.empty() && std::ranges::all_of(inodes, of_run);
}

// Parses an address of /proc/net/tcp or tcp6: the words of the address as numbers of this machine, and the port.
std::optional<Endpoint> endpoint_in_table(const std::string& text) {
  const size_t digits = text.find(':');
  if (digits != 8 && digits != 32) return std::nullopt;
  std::array<uint32_t, 4> words{};
  for (size_t i = 0; i < digits / 8; ++i)
    words.at(i) = static_cast<uint32_t>(std::strtoul(text.substr(8 * i, 8).c_str(), nullptr, 16));
  sockaddr_storage address{};
  if (digits == 8) {
    auto& narrow = reinterpret_cast<sockaddr_in&>(address);
    narrow.sin_family = AF_INET;
    std::memcpy(&narrow.sin_addr, words.data(), sizeof narrow.sin_addr);
  } else {
    auto& wide = reinterpret_cast<sockaddr_in6&>(address);
    wide.sin6_family = AF_INET6;
    std::memcpy(&wide.sin6_addr, words.data(), sizeof wide.sin6_addr);
  }
  auto endpoint = endpoint_of(address, sizeof address);
  if (endpoint) endpoint->port = static_cast<uint16_t>(std::strtoul(text.c_str() + digits + 1, nullptr, 16));
  return endpoint;
}

}  // namespace

std::optional<Endpoint> endpoint_of(const sockaddr_storage& address, size_t size) {
  std::array<char, INET6_ADDRSTRLEN> text{};
  if (address.ss_family == AF_INET && size >= sizeof(sockaddr_in)) {
    const auto& narrow = reinterpret_cast<const sockaddr_in&>(address);
    ::inet_ntop(AF_INET, &narrow.sin_addr, text.data(), text.size());
    return Endpoint{text.data(), ntohs(narrow.sin_port)};
  }
  if (address.ss_family != AF_INET6 || size < sizeof(sockaddr_in6)) return std::nullopt;
  const auto& wide = reinterpret_cast<const sockaddr_in6&>(address);
  if (IN6_IS_ADDR_V4MAPPED(&wide.sin6_addr)) {
    ::inet_ntop(AF_INET, &wide.sin6_addr.s6_addr[12], text.data(), text.size());
  } else {
    ::inet_ntop(AF_INET6, &wide.sin6_addr, text.data(), text.size());
  }
  return Endpoint{text.data(), ntohs(wide.sin6_port)};
}

bool may_connect(const Links& links, const Endpoint& to, const Surroundings& here) {
  if (std::ranges::find(links.hosts, to.host) != links.hosts.end()) return true;
  Endpoint there = to;  // the kernel takes "all addresses" for this machine's own
  if (is_any(to.host)) there.host = to.host == "::" ? "::1" : "127.0.0.1";
  return here.is_here(there.host) && here.is_of_run(there);
}

bool may_bind(const Links& links, const Endpoint& at) {
  return at.host == links.listen && at.port == 0;
}

bool is_process_of_run(const std::string& program, const std::string& arguments,
                       const std::function<bool(const std::string&)>& same_directory) {
  std::istringstream words(arguments);
  std::string own, first, second;
  std::getline(words, own, '\0');
  std::getline(words, first, '\0');
  std::getline(words, second, '\0');
  const std::string name = name_of_program(program);
  const bool member = name == "sinew-worker" || (name == "sinew" && first == "coordinator");
  return member && !second.empty() && same_directory(second);
}

std::vector<std::string> listeners_at(const std::string& table, const Endpoint& to) {
  constexpr const char* kListening = "0A";
  std::vector<std::string> there, everywhere;
  std::istringstream lines(table);
  for (std::string line; std::getline(lines, line);) {
    std::istringstream words(line);
    std::string slot, local, remote, state, queues, timer, retransmits, user, timeout, inode;
    words >> slot >> local >> remote >> state >> queues >> timer >> retransmits >> user >> timeout >> inode;
    const auto at = state == kListening ? endpoint_in_table(local) : std::nullopt;
    if (!at || at->port != to.port) continue;
    if (at->host == to.host) there.push_back(inode);
    if (is_any(at->host)) everywhere.push_back(inode);
  }
  return there.empty() ? everywhere : there;
}

Surroundings surroundings(const std::string& run_directory) {
  return {[](const std::string& host) { return http::is_this_machine(host); },
          [run_directory](const Endpoint& to) { return only_run_listens_at(run_directory, to); }};
}

}  // namespace sinew::sandbox
