// Fuzzes the table readers. The first byte chooses the format. A reader must throw Error or give a table whose columns
// have equal lengths.
#include "base/check.h"
#include "base/error.h"
#include "base/utf8.h"
#include "data/table.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace sinew;
  using namespace sinew::data;
  if (size == 0) return 0;
  const std::string_view text(reinterpret_cast<const char*>(data) + 1, size - 1);
  const char* format = data[0] % 3 == 0 ? "csv" : data[0] % 3 == 1 ? "tsv" : "jsonl";
  try {
    const Table table = read_table(text, "fuzz", format, (data[0] & 0x80) != 0, [&](const std::string& name) {
      return name.size() % 4 == 3 ? ColumnType::categorical : ColumnType::inferred;
    });
    for (const Column& column : table.columns) {
      SINEW_CHECK(column.categorical ? column.codes.size() == table.lines.size()
                                     : column.numbers.size() == table.lines.size());
      for (const int32_t code : column.codes)
        SINEW_CHECK(code >= -1 && code < static_cast<int32_t>(column.categories.size()));
      for (const std::string& word : column.categories) SINEW_CHECK(first_invalid_utf8(word) == std::string_view::npos);
    }
  } catch (const Error&) {
  }
  return 0;
}
