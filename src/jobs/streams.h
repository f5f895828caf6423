// What a command says: the pipes of its processes, and the file it may write its metrics to.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>

#include "jobs/output_file.h"

namespace sinew::jobs {

// The read end of one output of one rank: kept in a file of bounded size, and handed on line by line.
class RankStream {
 public:
  using Visit = std::function<void(const Line& line)>;

  // Makes the pipe; throws Error.
  RankStream(const std::string& path, Visit visit);
  RankStream(RankStream&& other) noexcept;
  RankStream& operator=(RankStream&&) = delete;
  ~RankStream();

  int write_end() const { return write_; }  // for the rank; closed by who starts it
  int descriptor() const { return read_; }  // -1 once it has ended
  // What has come, at most about a megabyte, and for no longer than `seconds` and a few lines more: who is told of them
  // may be slow. False: nothing more will come.
  bool read(double seconds);
  // All of it, for when nobody is left who should write; no more than some pipes full, should somebody outside go on.
  void drain();
  uint64_t lost_bytes() const { return file_.lost_bytes(); }

 private:
  void close();

  OutputFile file_;
  LineCutter cutter_;
  Visit visit_;
  int read_ = -1, write_ = -1;
  bool dry_ = false;  // the last read found nothing more
};

// A file that somebody else appends to, read from where it ended when this began. One that is truncated or replaced is
// read from its beginning; a line that it had not ended is none.
class FileTail {
 public:
  explicit FileTail(std::string path);
  ~FileTail();
  FileTail(const FileTail&) = delete;
  FileTail& operator=(const FileTail&) = delete;

  // Whole lines that came since; at most about a megabyte. `last`: all that is there now, and a line without its end
  // counts, too.
  void read(const RankStream::Visit& visit, bool last = false);

 private:
  bool open();
  void begin_anew();

  std::string path_;
  int descriptor_ = -1;
  uint64_t offset_ = 0, size_ = 0;  // size_: when it was last looked at
  ino_t file_ = 0;
  LineCutter cutter_;
};

}  // namespace sinew::jobs
