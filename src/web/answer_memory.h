// Inside web/: counts the memory of answers that are made and not sent yet. A client may read as slowly as it likes,
// and an answer stays in memory until the client has read it. So the answers of all connections together have a limit,
// and those of one caller a quarter of it. Any thread may call the member functions.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <string>

namespace sinew::web {

class AnswerMemory {
 public:
  // Answers of at most this many bytes are neither counted nor refused.
  static constexpr int64_t kSmall = 64 << 10;

  explicit AnswerMemory(int64_t most) : counts_(std::make_shared<Counts>(most)) {}

  // Returns whether the answer to a costly request of the caller may have room. If not, the request need not begin.
  bool has_room(const std::string& caller) const;
  // Counts an answer until the returned object and all its copies are destroyed, which may be after this object.
  // Returns null if there is no room for it, unless `always` is set. The limit of a caller does not apply to the only
  // answer of that caller, and no limit applies to the only answer of all.
  std::shared_ptr<const void> hold(const std::string& caller, int64_t bytes, bool always = false);
  int64_t held() const;

 private:
  struct Counts {
    explicit Counts(int64_t most_given) : most(most_given) {}
    const int64_t most;
    std::mutex mutex;
    int64_t all = 0;
    std::map<std::string, int64_t> of_caller;  // the bytes of each caller that holds any
    int64_t of(const std::string& caller) const;
    bool fits(const std::string& caller, int64_t bytes) const;
  };
  std::shared_ptr<Counts> counts_;
};

}  // namespace sinew::web
