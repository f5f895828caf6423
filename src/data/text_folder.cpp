#include "data/text_folder.h"

#include <algorithm>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <set>

#include "base/disk.h"
#include "base/error.h"
#include "base/json_text.h"
#include "base/printable.h"
#include "base/utf8.h"

namespace sinew::data {
namespace {

namespace fs = std::filesystem;

// The folder of texts without a label beside the folders of classes, in data sets such as aclImdb.
constexpr const char* kUnlabelled = "unsup";

bool is_text_name(const std::string& name) {
  return !name.starts_with('.') && file_extension(name) == "txt";
}

}  // namespace

std::vector<std::string> text_files(const std::string& path) {
  std::error_code code;
  if (!fs::is_directory(path, code)) return {path};
  std::vector<std::string> own, inner;
  for (const Disk::Entry& entry : system_disk().list(path)) {
    const std::string below = (fs::path(path) / entry.name).string();
    if (!entry.directory) {
      if (is_text_name(entry.name)) own.push_back(below);
      continue;
    }
    if (entry.name.starts_with('.')) continue;
    for (const Disk::Entry& file : system_disk().list(below)) {
      if (!file.directory && is_text_name(file.name)) inner.push_back((fs::path(below) / file.name).string());
    }
  }
  const auto unlabelled = [&](const std::string& file) {
    return fs::path(file).parent_path().filename() == kUnlabelled;
  };
  if (!std::ranges::all_of(inner, unlabelled)) std::erase_if(inner, unlabelled);
  std::vector<std::string>& found = inner.empty() ? own : inner;
  if (found.empty())
    throw Error("DATA_MISSING_FILES", path + ": the folder has no .txt file",
                "a text_folder looks like FOLDER/good/1.txt, FOLDER/bad/2.txt");
  std::ranges::sort(found);
  return found;
}

bool has_text_classes(const std::string& folder) {
  std::error_code code;
  if (!fs::is_directory(folder, code)) return false;
  for (const Disk::Entry& entry : system_disk().list(folder)) {
    if (!entry.directory || entry.name.starts_with('.')) continue;
    for (const Disk::Entry& file : system_disk().list((fs::path(folder) / entry.name).string())) {
      if (!file.directory && is_text_name(file.name)) return true;
    }
  }
  return false;
}

std::string said_of_texts(const std::string& path, const std::vector<std::string>& files) {
  std::error_code code;
  if (!fs::is_directory(path, code)) return "";
  const std::set<std::string> read(files.begin(), files.end());
  std::set<std::string> folders;
  for (const std::string& file : files) folders.insert(fs::path(file).parent_path().string());
  int64_t others = 0;
  std::string first;
  const auto leave_out = [&](const std::string& folder, bool inner) {
    for (const Disk::Entry& entry : system_disk().list(folder)) {
      const std::string below = (fs::path(folder) / entry.name).string();
      if (entry.name.starts_with('.') || read.contains(below) || (!inner && folders.contains(below))) continue;
      if (others++ == 0) first = entry.name;
    }
  };
  leave_out(path, false);
  for (const std::string& folder : folders) {
    if (folder != path) leave_out(folder, true);
  }
  std::string said = path + ": " + with_commas(static_cast<int64_t>(files.size())) + " texts in " +
                     with_commas(static_cast<int64_t>(folders.size())) + (folders.size() == 1 ? " folder" : " folders");
  if (others > 0)
    said += "; " + with_commas(others) + (others == 1 ? " other entry is" : " other entries are") + " left out: '" +
            printable_start(first) + (others == 1 ? "'" : "', ...");
  return said;
}

std::string label_of_text(const std::string& path) {
  std::string label = fs::absolute(path).lexically_normal().parent_path().filename().string();
  if (first_invalid_utf8(label) != std::string_view::npos)
    throw Error("DATA_NOT_UTF8",
                printable_start(path, 200) + ": the class '" + printable_start(label) + "' is not UTF-8",
                "rename the folder, for example with convmv");
  return label;
}

TableText text_as_row(const std::string& path, std::vector<std::byte> bytes, const TableRequest& request) {
  const CharsetJudgement charset = judge_charset(bytes, true, request.options.encoding);
  const std::vector<std::byte> text = to_utf8(std::move(bytes), charset.charset, path);
  if (const size_t zero = text_of(text).find('\0'); zero != std::string_view::npos)
    throw Error("DATA_WRONG_FORMAT",
                path + ':' + line_and_column(text_of(text), zero) + ": holds a zero byte, so it is not a text",
                "remove the file, or write it as a text");
  const nlohmann::json row = {{"text", text_of(text)}, {"label", label_of_text(path)}};
  const std::string line = dump_json(row);
  const auto* begin = reinterpret_cast<const std::byte*>(line.data());
  return {.path = path, .bytes = {begin, begin + line.size()}, .dialect = {}, .said = ""};
}

}  // namespace sinew::data
