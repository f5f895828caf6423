// Prints to stderr while another process may draw the live line of a run on the same terminal.
#include <sys/stat.h>
#include <unistd.h>

#include <cstdio>
#include <string>
#include <string_view>

#include "report/report.h"
#include "report/text_format.h"

namespace sinew::report {
namespace {

bool same_device(int one, int other) {
  struct stat first {
  }, second{};
  return ::fstat(one, &first) == 0 && ::fstat(other, &second) == 0 && first.st_rdev == second.st_rdev;
}

}  // namespace

std::string text_beside_run(std::string_view text, const Terminal& errors, bool live) {
  return (live ? "\r\x1b[K" : "") + wrap(text, usable_columns(errors)) + "\n";
}

// The process that draws the line draws it again at its next progress.
void print_beside_run(std::string_view text) {
  const Terminal errors = terminal_of(STDERR_FILENO);
  const bool live =
      errors.moves_cursor && terminal_of(STDOUT_FILENO).moves_cursor && same_device(STDOUT_FILENO, STDERR_FILENO);
  const std::string all = text_beside_run(text, errors, live);
  std::fwrite(all.data(), 1, all.size(), stderr);
}

}  // namespace sinew::report
