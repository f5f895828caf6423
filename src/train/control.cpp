#include <algorithm>
#include <cstdio>
#include <string>

#include "train/train.h"

namespace sinew::train {

std::string to_string(ControlEntry::Kind kind) {
  switch (kind) {
    case ControlEntry::Kind::stop: return "stop";
    case ControlEntry::Kind::checkpoint: return "checkpoint";
    case ControlEntry::Kind::evaluate: return "evaluate";
    case ControlEntry::Kind::learning_rate: return "learning_rate";
    case ControlEntry::Kind::batch_size: return "batch_size";
  }
  return "";
}

void ControlLog::append(ControlEntry entry) {
  entries_.push_back(std::move(entry));
}

std::vector<ControlEntry> ControlLog::effective_at(Step step) const {
  std::vector<ControlEntry> found;
  std::copy_if(entries_.begin(), entries_.end(), std::back_inserter(found),
               [&](const ControlEntry& entry) { return entry.effective == step; });
  return found;
}

void ControlLog::resume_at(Step step) {
  std::erase_if(entries_, [&](const ControlEntry& entry) {
    return entry.kind == ControlEntry::Kind::stop && entry.effective >= step;
  });
}

double ControlLog::learning_rate_factor(Step step) const {
  double factor = 1.0;
  for (const ControlEntry& entry : entries_) {
    if (entry.kind == ControlEntry::Kind::learning_rate && entry.effective <= step) factor = entry.value;
  }
  return factor;
}

int64_t ControlLog::batch_size(Step step, int64_t from_job) const {
  int64_t size = from_job;
  for (const ControlEntry& entry : entries_) {
    if (entry.kind == ControlEntry::Kind::batch_size && entry.effective <= step)
      size = static_cast<int64_t>(entry.value);
  }
  return size;
}

std::string ControlLog::digest_text(Step up_to) const {
  std::string text;
  for (const ControlEntry& entry : entries_) {
    const bool changes_numbers =
        entry.kind == ControlEntry::Kind::learning_rate || entry.kind == ControlEntry::Kind::batch_size;
    if (!changes_numbers || entry.effective >= up_to) continue;  // an entry at step t first shows in state t + 1
    char line[96];
    std::snprintf(line, sizeof line, "%lld %s %a\n", static_cast<long long>(entry.effective.value),
                  to_string(entry.kind).c_str(), entry.value);
    text += line;
  }
  return text;
}

}  // namespace sinew::train
