// Reads and appends study.jsonl, the event log of a study, with one line for each event (docs/formats/study.md).
//
// Leaders that apply the lines in order all get the same study, from which the same next suggestion follows. A line is
// durable before any leader acts on it, so no leader has acted on a torn last line. The next leader cuts a torn line
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

  // Returns the events that other leaders have appended since the last call, and cuts off the torn line of a leader
  // that died. Call it whenever you have taken the lock of the study, before anything else.
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
// Reads only the first line. The space that read_study needs depends on that line.
StudyHead read_study_head(Disk& disk, const std::string& path);

// One line of the file, without its newline.
std::string to_json(const StudyHead& head);
std::string to_json(const tune::Space& space, const StudyEvent& event);

}  // namespace sinew::study
