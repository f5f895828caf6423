#include "registry/recent_checks.h"

#include <algorithm>
#include <chrono>

#include "base/cost_limit.h"
#include "base/error.h"
#include "checkpoint/checkpoint.h"
#include "registry/file_digests.h"
#include "registry/registry.h"

namespace sinew::registry {
namespace {

constexpr size_t kMaxChecks = 4096;
constexpr double kSettledSeconds = 2;

std::string folder_of(const std::string& path) {
  return path.substr(0, path.rfind('/') + 1);
}

}  // namespace

bool RecentChecks::has(const std::string& key, const std::string& stamp) {
  const std::lock_guard lock(mutex_);
  const auto at = checks_.find(key);
  return at != checks_.end() && !stamp.empty() && at->second.stamp == stamp &&
         clock_.monotonic_seconds() - at->second.seconds <= kTrustSeconds;
}

void RecentChecks::add(const std::string& key, const std::string& stamp) {
  if (stamp.empty()) return;
  const std::lock_guard lock(mutex_);
  if (checks_.size() >= kMaxChecks) checks_.clear();
  checks_[key] = {stamp, clock_.monotonic_seconds()};
}

RecentChecks::Turn::Turn(RecentChecks& checks, std::string key) : checks_(checks), key_(std::move(key)) {
  constexpr auto kLookAtLimit = std::chrono::milliseconds(50);
  std::unique_lock lock(checks_.mutex_);
  while (!checks_.turns_.insert(key_).second) {
    CostLimit::check_current();
    checks_.turn_ended_.wait_for(lock, kLookAtLimit);
  }
}

RecentChecks::Turn::~Turn() {
  {
    const std::lock_guard lock(checks_.mutex_);
    checks_.turns_.erase(key_);
  }
  checks_.turn_ended_.notify_all();
}

std::string stamp_text(const std::vector<std::string>& paths, const Clock& clock) {
  std::string text;
  try {
    for (const std::string& path : paths) {
      const FileStamp stamp = stamp_of(path);
      const auto newest = static_cast<double>(std::max(stamp.modified_ns, stamp.changed_ns)) / 1e9;
      if (newest + kSettledSeconds > clock.wall_seconds()) return "";
      for (const int64_t number : {stamp.bytes, stamp.inode, stamp.device, stamp.modified_ns, stamp.changed_ns})
        text += std::to_string(number) + " ";
    }
    return text;
  } catch (const Error&) {
    return "";
  }
}

struct RunFileChecks::State {
  explicit State(Clock& clock_given) : clock(clock_given), checks(clock_given) {}
  Clock& clock;
  RecentChecks checks;  // keyed by the stamp, which contains the inode
};

RunFileChecks::RunFileChecks(Clock& clock) : state_(std::make_unique<State>(clock)) {}
RunFileChecks::~RunFileChecks() = default;

void RunFileChecks::check(const std::string& folder, const std::string& name, const std::string& shown) {
  const std::string path = folder + "/" + name;
  const RecentChecks::Turn turn(state_->checks, path);
  const std::string stamp = stamp_text({path}, state_->clock);
  if (state_->checks.has(stamp, stamp)) return;
  try {
    if (checkpoint::check_listed_file(system_disk(), path)) state_->checks.add(stamp, stamp);
  } catch (const DiskError&) {
    throw;
  } catch (const Error& error) {
    std::string what = error.what();
    if (const size_t at = what.find(folder); at != std::string::npos) what.replace(at, folder.size(), shown);
    throw Error(error.code, what, error.hint);
  }
}

bool check_model_files(Artifacts& artifacts, const std::vector<store::Attachment>& files, const std::string& place) {
  constexpr uint64_t kMaxInfoBytes = 64 << 20;
  std::map<std::string, checkpoint::ModelDigests> folders;  // the files of each folder; the folder is "" or "model/"
  std::map<std::string, std::string> lists;                 // the digest of each folder's list
  for (const store::Attachment& file : files) {
    const std::string folder = folder_of(file.path), name = file.path.substr(folder.size());
    folders[folder][name] = {static_cast<uint64_t>(file.bytes), file.digest};
    if (name == checkpoint::kModelDigestsFile) lists[folder] = file.digest;
  }
  const CostLimit::Temporary texts_are_temporary;
  const auto text_of = [&](const std::string& digest, uint64_t bytes) {
    CostLimit::hold_current(static_cast<int64_t>(2 * bytes));
    const auto read = artifacts.read(digest);
    return std::string(reinterpret_cast<const char*>(read.data()), read.size());
  };
  for (const auto& [folder, found] : folders) {
    const std::string where = place + (folder.empty() ? "" : "/" + folder.substr(0, folder.size() - 1));
    const auto list = lists.find(folder);
    if (list != lists.end()) {
      const uint64_t bytes = found.at(checkpoint::kModelDigestsFile).bytes;
      if (bytes > checkpoint::kMaxDigestsBytes)
        throw checkpoint::model_damaged(where, std::string(checkpoint::kModelDigestsFile) + " is larger than 1 MiB");
      const auto listed = checkpoint::parse_model_digests(text_of(list->second, bytes));
      if (!listed)
        throw checkpoint::model_damaged(where, std::string(checkpoint::kModelDigestsFile) + " " + listed.error());
      if (const auto wrong = checkpoint::wrong_model_file(*listed, found))
        throw checkpoint::model_damaged(where, *wrong);
      continue;
    }
    const auto info = found.find(checkpoint::kModelInfoFile);
    if (info == found.end() || info->second.bytes > kMaxInfoBytes) continue;
    if (checkpoint::names_model_digests(text_of(info->second.sha256, info->second.bytes)))
      throw checkpoint::model_damaged(where, std::string(checkpoint::kModelDigestsFile) + " is missing");
  }
  return !lists.empty();
}

}  // namespace sinew::registry
