// Reports the progress of a run exactly once, however many members compute it. Private to loop/.
//
// A worker that is alone, or the leader of several members, reports everything to the Reporter. The other members
// report nothing and remember the records of the last minutes. When the leader dies, the next leader reads from the
// files what was written, and adds what is missing. Many steps may be missing, because training continues while the
// coordinator is away, but no member may then write. A joiner receives the records that its donor remembers, because
// the joiner may be the next leader.
#pragma once

#include <atomic>
#include <deque>
#include <memory>
#include <string>

#include "base/write_fence.h"
#include "loop/loop.h"

namespace sinew::loop {

class LeaderReporter {
 public:
  // `members` is null if the run has one worker. Otherwise, the process may write only if both the lease and
  // options.may_write allow it. A member that becomes the leader later truncates the files to its own step. The
  // previous leader, or an earlier attempt of a resumed run, may have written later steps; the new leader computes
  // these itself.
  //
  // A member takes over `disk` when it becomes the leader, before it reads any file. A call throws WriterReplaced if
  // another process has taken over since.
  LeaderReporter(report::ReporterOptions options, const std::map<std::string, std::string>& hparams,
                 const Members* members, WriteFence& disk, Clock& clock);

  bool reports();  // Returns whether this process writes the files. Opens them once it leads and may write.
  void metrics(Step step, int64_t samples, const report::Metrics& values);
  void ledger(Step step, Digest digest);
  void say(report::Level level, const std::string& event, const std::string& text, const report::Metrics& metrics = {});
  void progress(const report::Progress& progress);
  // With several members, passes the records of the step to the kernel at once, because the other members remember them
  // only for a while.
  void end_step();
  void finish(bool success);
  void flush();
  // From now on this process writes the files, although it is not the leader: no coordinator leads the run any more,
  // and the caller has made sure that nobody else writes. If `anew`, this process has taken over the disk again, so
  // files that it had open may belong to another member.
  void lead_alone(bool anew);
  // Returns whether the last flush left records in memory because this process did not hold the lease. No checkpoint
  // may appear before these records are in the files, because a run that resumes from it does not write them again.
  // Records that wait for a disk do not count: one file that cannot be written must not stop all checkpoints. Any
  // thread may call this.
  bool has_unwritten() const { return has_unwritten_; }
  std::string trouble() const;  // why the disk does not take the records; empty if this process merely must not write
  // Returns the records that are perhaps not in the files yet, as text for the snapshot that a joiner takes; the joiner
  // adopts them.
  std::string records() const;
  void adopt(const std::string& records);  // throws Error if records() did not make the text

 private:
  struct Record {
    enum class Kind { metrics, ledger, message } kind = Kind::metrics;
    Step step;
    int64_t samples = 0;
    report::Metrics values;
    Digest digest;
    report::Level level = report::Level::info;
    std::string event, text;
    double remembered_at = 0;
  };
  bool takes_over();
  void take(Record record);
  void remember(Record record);
  void keep(Record record);
  void forget_old();
  static void write(report::Reporter& reporter, const Record& record);

  report::ReporterOptions options_;
  std::map<std::string, std::string> hparams_;
  const Members* members_;
  WriteFence& disk_;
  Clock& clock_;
  std::string trouble_;  // why this process could not take over the disk
  Step newest_;          // the step of the newest record
  std::atomic<bool> has_unwritten_{false}, leads_alone_{false};
  std::unique_ptr<report::Reporter> reporter_;
  // The records that may be missing in the files of the run. A leader drops them as soon as all are written there;
  // another member, and a leader with a directory of its own, drop those that are old.
  std::deque<Record> remembered_;
};

}  // namespace sinew::loop
