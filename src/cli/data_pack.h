// `sinew data pack` copies the images of a job into tars with an index.
#pragma once

#include <string>

namespace sinew::cli {

struct PackOptions {
  std::string shard_size = "256MB";
  bool decode = false;
};
int pack_data(const std::string& job_file, const std::string& folder, const PackOptions& given);

}  // namespace sinew::cli
