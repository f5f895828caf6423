#include "checkpoint/names.h"

#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cstdio>
#include <mutex>
#include <set>

#include "base/check.h"

namespace sinew::checkpoint {
namespace {

constexpr std::string_view kStep = "step-";
constexpr std::string_view kSaving = ".saving-";
constexpr std::string_view kRemoved = ".removed-";

bool plain(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' || c == '-' || c == '.';
}

// The hidden names that this process is using: the only global state of the module. A forked child inherits the set,
// but its own names contain another pid.
struct InUse {
  std::mutex mutex;
  std::set<std::string> names;
  uint64_t made = 0;
};
InUse& in_use() {
  static InUse instance;
  return instance;
}

template <typename Integer>
std::optional<Integer> parse_integer(std::string_view text) {
  Integer value = 0;
  const auto [end, code] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (code != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return value;
}

}  // namespace

std::string step_name(Step step) {
  SINEW_CHECK(step.value >= 0, step);
  char text[32];
  std::snprintf(text, sizeof text, "step-%08lld", static_cast<long long>(step.value));
  return text;
}

std::optional<Step> parse_step_name(std::string_view name) {
  if (!name.starts_with(kStep)) return std::nullopt;
  const auto value = parse_integer<int64_t>(name.substr(kStep.size()));
  if (!value || *value < 0 || step_name(Step(*value)) != name) return std::nullopt;
  return Step(*value);
}

bool is_part_name(std::string_view part) {
  return !part.empty() && part.size() <= 200 && part[0] != '.' && part[0] != '-' && part[0] != '_' &&
         std::all_of(part.begin(), part.end(), plain);
}

std::string_view part_of(std::string_view file) {
  if (!file.ends_with(kTensorSuffix)) return {};
  return file.substr(0, file.size() - kTensorSuffix.size());
}

bool is_listed_name(std::string_view file) {
  return file == kStateFile || is_part_name(part_of(file));
}

std::string join(const std::string& directory, std::string_view name) {
  std::string path = directory.empty() ? "." : directory;
  if (path.back() != '/') path += '/';
  return path.append(name);
}

std::string base_name(const std::string& path) {
  const size_t end = path.find_last_not_of('/');
  if (end == std::string::npos) return "";
  const size_t slash = path.find_last_of('/', end);
  const size_t begin = slash == std::string::npos ? 0 : slash + 1;
  return path.substr(begin, end + 1 - begin);
}

HiddenName::HiddenName(Use use, Step step) {
  InUse& used = in_use();
  const std::lock_guard lock(used.mutex);
  name_ = std::string(use == Use::saving ? kSaving : kRemoved) + step_name(step) + "-" + std::to_string(::getpid()) +
          "-" + std::to_string(used.made++);
  used.names.insert(name_);
}

HiddenName::~HiddenName() {
  InUse& used = in_use();
  const std::lock_guard lock(used.mutex);
  used.names.erase(name_);
}

bool is_leftover(const std::string& name) {
  if (!name.starts_with(kSaving) && !name.starts_with(kRemoved)) return false;
  const size_t number = name.rfind('-');
  const size_t pid_at = number == std::string::npos || number == 0 ? std::string::npos : name.rfind('-', number - 1);
  if (pid_at == std::string::npos) return false;
  const auto pid = parse_integer<pid_t>(std::string_view(name).substr(pid_at + 1, number - pid_at - 1));
  if (!pid || *pid <= 0) return false;
  // rundir::RunLock excludes a second writer, so a name with another pid belongs to a dead writer. A process with that
  // pid may live nevertheless: a writer without the lock, or a process that got the pid later. Then the directory is
  // kept. Keeping it costs space, but removing it may destroy work.
  if (*pid != ::getpid()) return ::kill(*pid, 0) < 0 && errno == ESRCH;
  InUse& used = in_use();
  const std::lock_guard lock(used.mutex);
  return !used.names.contains(name);
}

}  // namespace sinew::checkpoint
