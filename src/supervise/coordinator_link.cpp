#include "supervise/coordinator_link.h"

#include <utility>

#include "base/error.h"
#include "http/http.h"

namespace sinew::supervise {
namespace {

constexpr double kAnswerSeconds = 1;  // longest wait for an answer; a healthy coordinator needs a millisecond

class FileCoordinatorLink final : public CoordinatorLink {
 public:
  explicit FileCoordinatorLink(std::string run_directory) : directory_(std::move(run_directory)) {}

  bool connect(pid_t coordinator) override {
    if (client_) return true;
    const auto info = cluster::coordinator_info_now(directory_);
    if (!info || info->pid != coordinator) return false;
    // A confined worker can write this file, and must not choose where this process sends requests.
    if (!http::is_this_machine(http::host_of(info->url))) return false;
    client_.emplace(info->url, info->secret, kAnswerSeconds);
    url_ = info->url;
    return true;
  }

  void disconnect() override { client_.reset(); }
  std::string url() const override { return url_; }

  std::optional<cluster::CoordinatorStatus> status() override { return client_ ? client_->status() : std::nullopt; }
  bool lost(pid_t worker, const std::string& why) override { return client_ && client_->lost(worker, why); }
  bool control(const std::string& kind, double value, const std::string& reason) override {
    return client_ && client_->control(kind, value, reason);
  }

  std::optional<int64_t> recorded_end(pid_t coordinator) override {
    const auto info = cluster::coordinator_info_now(directory_);
    return info && info->pid == coordinator ? info->exit_code : std::nullopt;
  }

  std::string record_end(int exit_code) override {
    try {
      if (const auto info = cluster::read_coordinator_info(directory_))
        cluster::record_end(directory_, info->pid, exit_code);
    } catch (const Error& error) {
      return error.what();
    }
    return "";
  }

 private:
  const std::string directory_;
  std::optional<cluster::CoordinatorClient> client_;
  std::string url_;
};

}  // namespace

std::unique_ptr<CoordinatorLink> file_coordinator_link(std::string run_directory) {
  return std::make_unique<FileCoordinatorLink>(std::move(run_directory));
}

}  // namespace sinew::supervise
