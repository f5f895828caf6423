// Reads and appends study.jsonl, the event log of a study, with one line for each event (docs/formats/study.md).
//
// A leader that applies the lines in their order gets the same study, and the same next suggestion follows from it. A
// line is durable before any leader acts on it, so no leader has acted on a torn last line; the next leader cuts it
// off. Leaders append only while they hold the lock of the study (leader.h).
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "base/disk.h"
#include "study/event.h"
#include "tune/tune.h"

namespace sinew::study {

class RecordFile {
 public:
  // Creates the file with its head. Throws Error if it exists.
  RecordFile(Disk& disk, const std::string& path, const StudyHead& head);
  // Opens the file; news() then returns all its events.
  RecordFile(Disk& disk, std::string path) : disk_(disk), path_(std::move(path)) {}

  // Returns the events that other leaders have appended since the last call. Call it first each time after taking the
  // lock of the study: it cuts off the torn line of a leader that died.
  std::vector<StudyEvent> news(const tune::Space& space);
  // Appends an event. It is durable when append() returns, except for a report, whose value is also in the metrics of
  // the trial.
  void append(const tune::Space& space, const StudyEvent& event);

 private:
  Disk& disk_;
  std::string path_;
  uint64_t known_bytes_ = 0;  // the bytes that this object has read or written
  int64_t known_lines_ = 0;
  std::unique_ptr<Disk::File> file_;  // opened by the first append() after news()
};

struct ReadStudy {
  StudyHead head;
  std::vector<StudyEvent> events;
};
// read_study and read_study_head throw Error. If a line is damaged, the error names its number.
ReadStudy read_study(Disk& disk, const std::string& path, const tune::Space& space);
// Reads only the first line, which the space depends on.
StudyHead read_study_head(Disk& disk, const std::string& path);

// One line of the file, without its newline.
std::string to_json(const StudyHead& head);
std::string to_json(const tune::Space& space, const StudyEvent& event);

}  // namespace sinew::study
