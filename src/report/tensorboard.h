// TensorBoard event files, written by hand: the bytes of each event, and where they go.
//
// Format facts: TFRecord frames with masked CRC-32C around Event messages (tensorboard/compat/proto/event.proto,
// summary.proto; plugins/hparams/plugin_data.proto). Only plain scalars (simple_value), hyperparameters and session
// marks are written; every reader understands these.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>

#include "report/report.h"

namespace sinew::report {

// Each returns one whole record, ready to append.
std::string version_record(double wall_seconds);
// Every file says START at its first step. A reader that has seen a START before drops what it holds of this step and
// later, which is how a resumed run takes back the steps it repeats.
std::string session_start_record(double wall_seconds, int64_t first_step);
std::string scalars_record(double wall_seconds, int64_t step, const Metrics& values);
// "0.1" becomes a number, "true" a boolean, everything else stays text.
std::string hparams_record(double wall_seconds, const std::map<std::string, std::string>& values);
std::string session_end_record(double wall_seconds, bool success);

std::string tfrecord(std::string_view data);  // u64 length | crc | data | crc

// Path of a new event file that readers, which go by name, take up after all that are there.
std::string new_event_path(const std::string& directory, double wall_seconds);

// Readers keep the first end of a session they see; so a resumed run takes back the end its last attempt wrote.
// Also cuts a torn last record. Throws DiskError.
void cut_session_end(const std::string& directory);

}  // namespace sinew::report
