// A body that is kept as it comes, for a route that takes a file. Nothing of it is there before its handler says so.
#pragma once

#include <optional>

#include "registry/registry.h"
#include "web/context.h"

namespace sinew::web {

// Opened with its first byte; dropped without a trace when the client leaves.
class Upload final : public http::Sink {
 public:
  explicit Upload(registry::Artifacts& artifacts) : artifacts_(artifacts) {}
  std::optional<http::Response> take(std::string_view piece) override;
  // All there was; of an upload without a byte the empty content. It can not be collected while this lives.
  registry::BlobInfo finish();

 private:
  void open();

  registry::Artifacts& artifacts_;
  std::optional<registry::Artifacts::Pin> pin_;
  std::optional<registry::Artifacts::Pin::Stream> stream_;
};

}  // namespace sinew::web
