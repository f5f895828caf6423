#include "checkpoint/publish.h"

#include "checkpoint/names.h"

namespace sinew::checkpoint {
namespace {

// Removes the directory if possible. If not, the next save tries again; until then, a hidden directory does no harm.
void remove_if_possible(Disk& disk, const std::string& path) {
  try {
    disk.remove_all(path);
  } catch (const Error&) {
  }
}

void clear_leftovers(Disk& disk, const std::string& root) {
  for (const auto& entry : disk.list(root)) {
    if (is_leftover(entry.name)) remove_if_possible(disk, join(root, entry.name));
  }
}

enum class Present { no, intact, damaged };

Present existing_state(Disk& disk, const std::string& path, Digest digest) {
  if (!disk.exists(path)) return Present::no;
  const auto summary = verify(disk, path);
  if (!summary) return Present::damaged;
  if (summary->digest == digest) return Present::intact;
  throw Error("CHECKPOINT_CONFLICT",
              path + " holds another state of this step: its digest is " + to_hex(summary->digest) +
                  ", this run's is " + to_hex(digest),
              "use a new run directory, or move that checkpoint to another place");
}

// Renames `temporary` to `path`. If `aside` is not empty, a damaged directory is at `path`. This function first moves
// that directory to `aside`, and moves it back if the second rename fails.
void put_in_place(Disk& disk, const std::string& temporary, const std::string& path, const std::string& aside) {
  if (aside.empty()) return disk.rename(temporary, path);
  disk.rename(path, aside);
  try {
    disk.rename(temporary, path);
  } catch (const Error&) {
    try {
      disk.rename(aside, path);
    } catch (const Error&) {  // that directory was damaged anyway; the caller gets the first error
    }
    throw;
  }
}

void copy_file(Disk& disk, const std::string& from, const std::string& to) {
  const auto file = disk.create(to);
  copy_bytes(disk, from, 0, disk.size(from), *file);
  file->sync();
  file->close();
}

}  // namespace

std::string publish(Disk& disk, const std::string& root, Step step, Digest digest,
                    const std::function<void(const std::string& directory)>& fill) {
  const std::string path = join(root, step_name(step));
  if (list(disk, root).empty()) make_directories_durably(disk, root);  // a root that has a step is durable already
  clear_leftovers(disk, root);
  const Present present = existing_state(disk, path, digest);
  if (present == Present::intact) {
    disk.sync_directory(root);  // the process that renamed it may have died before its own sync
    return path;
  }
  const HiddenName saving(HiddenName::Use::saving, step), removed(HiddenName::Use::removed, step);
  const std::string temporary = disk.staging(join(root, saving.name()));
  const std::string aside = present == Present::damaged ? disk.staging(join(root, removed.name())) : "";
  try {
    disk.make_directories(temporary);
    fill(temporary);
    disk.sync_directory(temporary);
    put_in_place(disk, temporary, path, aside);
  } catch (...) {
    remove_if_possible(disk, temporary);
    throw;
  }
  disk.sync_directory(root);
  if (!aside.empty()) remove_if_possible(disk, aside);
  return path;
}

void delete_step(Disk& disk, const std::string& root, Step step) {
  const HiddenName removed(HiddenName::Use::removed, step);
  const std::string aside = disk.staging(join(root, removed.name()));
  disk.rename(join(root, step_name(step)), aside);
  disk.sync_directory(root);  // make the rename durable before deleting the first file
  disk.remove_all(aside);
}

void mirror(Disk& disk, const std::string& directory, const std::string& root) {
  const auto source = describe(disk, directory);
  if (!source) {
    throw Error("CHECKPOINT_DAMAGED", directory + "/" + source.error().file + " " + source.error().what,
                "check the device; 'sinew checkpoint verify' shows which checkpoints are intact");
  }
  const std::string copy = publish(disk, root, source->step, source->digest, [&](const std::string& temporary) {
    for (const auto& entry : disk.list(directory)) {
      if (!entry.name.starts_with('.')) copy_file(disk, join(directory, entry.name), join(temporary, entry.name));
    }
  });
  if (const auto copied = verify(disk, copy, true); !copied) {
    throw Error(
        "CHECKPOINT_NOT_READ_BACK",
        "the copy " + copy + " was written but reads back damaged: " + copied.error().file + " " + copied.error().what,
        "check the device of the mirror, and the original with: sinew checkpoint verify " + directory);
  }
}

}  // namespace sinew::checkpoint
