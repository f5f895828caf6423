// study.jsonl: the record of a study on disk, one line for each event (docs/formats/study.md).
//
// A leader that reads the lines in their order has the study as it was, and the next suggestion follows from it. A line
// is durable before anything acts on it, so a torn last line is an event on which nothing acted; the next leader cuts
// it off. Leaders append only while they hold the study's lock (leader.h).
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

  // The events that other leaders have appended since the last call. Call it first each time after taking the study's
  // lock: it cuts off the torn line of a leader that died.
  std::vector<StudyEvent> news(const tune::Space& space);
  // Durable when it returns, except for a report: the trial's own metrics hold that too.
  void append(const tune::Space& space, const StudyEvent& event);

 private:
  Disk& disk_;
  std::string path_;
  uint64_t known_bytes_ = 0;  // read or written here
  int64_t known_lines_ = 0;
  std::unique_ptr<Disk::File> file_;  // opened by the first append() after news()
};

struct ReadStudy {
  StudyHead head;
  std::vector<StudyEvent> events;
};
// Both throw Error; for a damaged line it names the line's number.
ReadStudy read_study(Disk& disk, const std::string& path, const tune::Space& space);
// Reads only the first line. The space depends on it.
StudyHead read_study_head(Disk& disk, const std::string& path);

// One line of the file, without its newline.
std::string to_json(const StudyHead& head);
std::string to_json(const tune::Space& space, const StudyEvent& event);

}  // namespace sinew::study
