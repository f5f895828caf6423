// Inside report/: encodes TensorBoard events, and chooses the names of event files.
//
// The format: TFRecord frames with masked CRC-32C around Event messages (tensorboard/compat/proto/event.proto,
// summary.proto; plugins/hparams/plugin_data.proto). These functions write only what every reader understands: plain
// scalars (simple_value), hyperparameters, and the start and end of sessions.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>

#include "base/disk.h"
#include "report/report.h"

namespace sinew::report {

// Each function returns one complete record, which can be appended to the file.
std::string version_record(double wall_seconds);
// Marks the start of a session at its first step. A reader that has seen an earlier start drops the values that it has
// for this step and for later ones. So a resumed run replaces the steps that it repeats.
std::string session_start_record(double wall_seconds, int64_t first_step);
std::string scalars_record(double wall_seconds, int64_t step, const Metrics& values);
// Writes "0.1" as a number, "true" as a boolean, and everything else as text.
std::string hparams_record(double wall_seconds, const std::map<std::string, std::string>& values);
std::string session_end_record(double wall_seconds, bool success);

std::string tfrecord(std::string_view data);  // u64 length | crc | data | crc

// Returns the path of a new event file. Its name sorts after those of all existing event files, because readers load
// the files in the order of their names.
std::string new_event_path(Disk& disk, const std::string& directory, double wall_seconds);

// Removes the session end that an earlier attempt wrote to the newest event file: readers keep only the first session
// end that they see, and would ignore that of this attempt. Also removes an incomplete last record. Before it reads the
// file, it opens it by Disk::append. On a WriteFence this puts a copy under the file's name, so that an earlier writer
// that still lives cannot change what readers see. Such a writer can have only the newest file open. Throws DiskError
// if the disk fails.
void cut_session_end(Disk& disk, const std::string& directory);

}  // namespace sinew::report
