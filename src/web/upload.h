// Inside web/: the sink for the body of a route that takes a file. It stores the bytes as they arrive. They belong to
// no record until the route's handler attaches them.
#pragma once

#include <optional>

#include "registry/registry.h"
#include "web/context.h"

namespace sinew::web {

// Counts `more` bytes of a file, which now has `bytes`, as an upload of the caller. Throws Refused if they exceed a
// limit of the caller's token. `file` names a file that the server copies for the caller; it is empty for a body.
void count_upload(const Context& context, int64_t bytes, int64_t more, const std::string& file = "");
// Adds the change that stores the count of the caller's token, if it has a daily limit.
void store_upload_count(const Context& context, store::Batch& batch);

// Opens a temporary file at the first byte, and removes it if the client leaves. Refuses the upload as soon as it
// exceeds a limit of the caller's token.
class Upload final : public http::Sink {
 public:
  explicit Upload(const Context& context) : context_(context) {}
  std::optional<http::Response> take(std::string_view piece) override;
  // Returns the stored content, which is empty if no byte arrived. Garbage collection keeps it while this object lives.
  registry::BlobInfo finish();

 private:
  void open();

  const Context context_;
  int64_t bytes_ = 0;
  std::optional<registry::Artifacts::Pin> pin_;
  std::optional<registry::Artifacts::Pin::Stream> stream_;
};

}  // namespace sinew::web
