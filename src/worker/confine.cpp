#include "worker/tasks.h"

namespace sinew::worker {

std::unique_ptr<sandbox::OutsideFile> confine(const std::optional<task::Sandbox>& wanted, const std::string& output,
                                              sandbox::OutsideFile::Kind kind) {
  if (!wanted) return nullptr;
  auto file = output.empty() ? nullptr : std::make_unique<sandbox::OutsideFile>(output, kind);
  sandbox::confine({.memory_bytes = wanted->memory_bytes});
  return file;
}

}  // namespace sinew::worker
