// Reads the outputs of a command: the pipes of its ranks, and the file to which it may write its metrics.
#pragma once

#include <cstdint>
#include <functional>
#include <string>

#include "jobs/output_file.h"
#include "rundir/rundir.h"

namespace sinew::jobs {

// The read end of stdout or stderr of one rank. Writes the output to a file of limited size and visits its lines.
class RankStream {
 public:
  using Visit = std::function<void(const Line& line)>;

  // Creates the pipe. Throws Error if the system has no room for it.
  RankStream(const std::string& path, Visit visit);
  RankStream(RankStream&& other) noexcept;
  RankStream& operator=(RankStream&&) = delete;
  ~RankStream();

  int write_end() const { return write_; }  // for the rank; the code that starts the rank closes it
  int descriptor() const { return read_; }  // -1 after the end of the stream
  // Reads what has arrived, at most about a megabyte. Stops soon after `seconds`, because visiting lines may be slow.
  // Returns false at the end of the stream.
  bool read(double seconds);
  // Reads what is left. Call it after all ranks have ended. It reads only a limited amount, because another process may
  // still write to the pipe.
  void drain();
  uint64_t lost_bytes() const { return file_.lost_bytes(); }

 private:
  void close();

  OutputFile file_;
  LineSplitter splitter_;
  Visit visit_;
  int read_ = -1, write_ = -1;
  bool dry_ = false;  // true: the newest read found the pipe empty
};

// Reads a growing file from its present end on. If the file shrinks or is replaced, reads it from the beginning.
class FileTail {
 public:
  explicit FileTail(std::string path);

  // Visits the new complete lines, at most about a megabyte. With `last` it reads up to the present end of the file and
  // also visits a last line without a line end.
  void read(const RankStream::Visit& visit, bool last = false);

 private:
  void read_unfinished_line(const RankStream::Visit& visit, uint64_t end);

  std::string path_;
  rundir::FilePosition position_;
};

}  // namespace sinew::jobs
