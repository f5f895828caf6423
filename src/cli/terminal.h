// Finds out what the terminal behind an output of this program can do, by one set of rules for all commands.
#pragma once

namespace sinew::cli {

struct Terminal {
  bool moves_cursor = false;  // lines can be replaced; false: no terminal, or TERM is unset or "dumb"
  bool color = false;         // the terminal moves its cursor, and NO_COLOR is unset or empty
  // 0: no terminal, or its size is unknown. The environment variable COLUMNS comes before what the terminal reports.
  int columns = 0, rows = 0;
};

// Reads the environment and the terminal's size now, because the user may resize it.
Terminal terminal_of(int descriptor);

}  // namespace sinew::cli
