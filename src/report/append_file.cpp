#include "report/append_file.h"

#include <span>

#include "base/error.h"
#include "base/fenced_disk.h"

namespace sinew::report {
namespace {

constexpr size_t kMaxWaiting = 8 << 20;

}  // namespace

void AppendFile::append(std::string_view record) {
  if (waiting_.size() + record.size() > kMaxWaiting) flush();
  if (waiting_.size() + record.size() > kMaxWaiting) {
    ++dropped_;
    why_dropped_ = refused_ ? "another process writes the files of this run now" : failure_;
    return;
  }
  waiting_.append(record);
}

void AppendFile::flush() {
  if (waiting_.empty() && !go_on_) return;
  refused_ = may_write_ && !may_write_();
  if (refused_) return;
  failure_.clear();
  try {
    if (go_on_) file_ = go_on_();
    go_on_ = nullptr;
    if (!file_ && !waiting_.empty()) file_ = disk_.append(path_);
    while (!waiting_.empty()) waiting_.erase(0, file_->write_some(std::as_bytes(std::span(waiting_))));
  } catch (const MayNotWrite&) {
    refused_ = true;
  } catch (const DiskError& error) {
    failure_ = text_with_hint(error);
    if (failure_.find(path_) == std::string::npos) failure_ = "cannot write " + path_ + ": " + failure_;
  }
}

std::string AppendFile::trouble() const {
  if (!failure_.empty())
    return dropped_ > 0 ? failure_ + "; " + std::to_string(dropped_) + " records are lost" : failure_;
  if (dropped_ > 0) {
    return std::to_string(dropped_) + " records are missing from " + path_ + ": " + why_dropped_;
  }
  return other_trouble_;
}

}  // namespace sinew::report
