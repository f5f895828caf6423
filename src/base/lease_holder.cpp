#include "base/lease_holder.h"

#include <signal.h>
#include <unistd.h>

#include <cerrno>
#include <nlohmann/json.hpp>
#include <optional>

#include "base/json_fields.h"
#include "base/json_text.h"
#include "base/proc.h"
#include "base/process.h"

namespace sinew {
namespace {

using Json = nlohmann::ordered_json;

struct Holder {
  std::string host, numbers, began, url;
  int64_t pid = 0;
};

// Returns when the kernel started the process, in ticks since boot, or "" if the row describes no process. A later
// process with the same process id has another start time.
std::string began_of(const ProcessRow& row) {
  return row.pid == 0 ? "" : std::to_string(row.started);
}

// Returns whether the process has ended although /proc still shows it. /proc shows a process until its parent waits for
// it, and the first process of a container may never do that. A process of which only the first thread has ended shows
// the same state, but has other threads.
bool is_unreaped(const ProcessRow& row) {
  return (row.state == 'Z' || row.state == 'X') && row.threads <= 1;
}

// Returns a text that identifies this process's PID namespace, or "" if it is unknown. The text differs between two
// containers of one machine, and between two machines with the same host name.
std::string pid_namespace() {
  char text[64] = {};
  const ssize_t size = ::readlink("/proc/self/ns/pid", text, sizeof text - 1);
  const std::string boot = boot_id();
  return size <= 0 || boot.empty() ? "" : boot + " " + std::string(text, static_cast<size_t>(size));
}

// Returns nullopt if a field is missing or has another type.
std::optional<Holder> parse(const std::string& text) {
  const Json json = Json::parse(text, nullptr, false);
  if (!json.is_object()) return std::nullopt;
  Holder holder;
  for (const auto& [name, field] :
       {std::pair("host", &holder.host), std::pair("numbers", &holder.numbers), std::pair("began", &holder.began)}) {
    const auto text_given = text_of(json, name);
    if (!text_given) return std::nullopt;
    *field = *text_given;
  }
  const auto pid = json.find("pid");
  if (pid == json.end() || !pid->is_number_integer()) return std::nullopt;
  holder.pid = pid->get<int64_t>();
  holder.url = text_or_empty(json, "url");
  return holder;
}

}  // namespace

std::string lease_holder(const std::string& url) {
  Json json{{"host", host_name()},
            {"numbers", pid_namespace()},
            {"pid", ::getpid()},
            {"began", began_of(process_row(::getpid()))}};
  if (!url.empty()) json["url"] = url;
  return dump_json(json);
}

bool has_surely_ended(const std::string& text) {
  const auto holder = parse(text);
  if (!holder || holder->pid <= 0 || holder->pid > INT32_MAX || holder->began.empty() || holder->numbers.empty())
    return false;
  if (holder->host != host_name() || holder->numbers != pid_namespace()) return false;
  const auto pid = static_cast<pid_t>(holder->pid);
  const ProcessRow row = process_row(pid);
  if (row.pid != 0) return is_unreaped(row) || began_of(row) != holder->began;
  // /proc shows no such process, but it may hide processes of other users.
  return ::kill(pid, 0) != 0 && errno == ESRCH;
}

std::string describe_holder(const std::string& text) {
  const auto holder = parse(text);
  if (!holder) return text;
  return "process " + std::to_string(holder->pid) + " on " + holder->host +
         (holder->url.empty() ? "" : " at " + holder->url);
}

}  // namespace sinew
