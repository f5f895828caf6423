// Fuzzes read_job with any bytes as a job file and as an override. It must not crash, and must
// read what to_yaml writes of an accepted job as the same job.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "base/check.h"
#include "spec/spec.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace sinew::spec;
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const Environment environment = {{"HOME", "/home/$me: {\"x\""}, {"EMPTY", ""}, {"BAD", "a\nb"}};
  // The second call takes the first line as an override of the rest.
  const size_t end = std::min(text.find('\n'), text.size());
  const std::string first(text.substr(0, end));
  for (const Reading& reading :
       {read_job(text, "job.yaml", {}, environment), read_job(text.substr(end), "job.yaml", {first}, environment)}) {
    for (const Problem& problem : reading.problems) {
      SINEW_CHECK(!problem.what.empty() && !problem.hint.empty(), to_string(problem));
      SINEW_CHECK(to_string(problem).find('\n') == std::string::npos, to_string(problem));
    }
    if (!reading.problems.empty()) continue;
    const std::string written = to_yaml(reading.job, {{"optimizer.lr", first}});
    const Reading again = read_job(written, "again.yaml", {}, environment);
    SINEW_CHECK(again.problems.empty(), written, to_string(again.problems[0]));
    SINEW_CHECK(again.job == reading.job, written);
  }
  parse_duration(text);
  parse_bytes(text);
  parse_objective(text);
  return 0;
}
