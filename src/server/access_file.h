// Inside server/: the file of the access log. A full file is renamed to FILE.1, FILE.1 to FILE.2, and so on; the oldest
// one is overwritten.
#pragma once

#include <cstdint>
#include <mutex>
#include <string>

namespace sinew::server {

class AccessFile {
 public:
  // Throws Error (DISK_...) if the file cannot be opened. Only the user of this process can read the file.
  explicit AccessFile(std::string path, int64_t max_bytes = 16 << 20, int kept = 4);
  AccessFile(const AccessFile&) = delete;
  AccessFile& operator=(const AccessFile&) = delete;
  ~AccessFile();
  // Appends the line. If the line cannot be written, for example because the disk is full, it is lost: no request may
  // wait or fail for the sake of the log. Any thread may call it.
  void write(const std::string& line);

 private:
  void open();
  void rotate();

  const std::string path_;
  const int64_t max_bytes_;
  const int kept_;
  std::mutex mutex_;
  int descriptor_ = -1;
  int64_t bytes_ = 0;
};

}  // namespace sinew::server
