#include "data/foreign_file.h"

#include <algorithm>
#include <array>

#include "base/error.h"
#include "data/files.h"
#include "data/image_files.h"
#include "data/table_files.h"
#include "data/tar.h"

namespace sinew::data {
namespace {

using namespace std::string_view_literals;

// In a cure, $ stands for the path in quotes.
struct ForeignKind {
  std::string_view what, cure;
};
constexpr ForeignKind kParquet = {"a Parquet file", "rename it so that its name ends in .parquet"};
constexpr ForeignKind kArrow = {"an Arrow (Feather) file", "rename it so that its name ends in .feather"};
constexpr ForeignKind kExcel = {"an Excel workbook",
                                "save it as CSV in the spreadsheet program, or with "
                                "pandas.read_excel($).to_csv('table.csv', index=False)"};
constexpr ForeignKind kPickle = {"a Python pickle",
                                 "save the data in another format, for example with "
                                 "pandas.read_pickle($).to_csv('table.csv', index=False)"};
constexpr ForeignKind kHdf = {"an HDF5 file", "save its arrays with numpy.savez"};
constexpr ForeignKind kPdf = {"a PDF document", "give a table (csv, tsv, jsonl), a text or images"};
constexpr ForeignKind kArchive = {"an archive", "unpack it and give the path of the folder"};
constexpr ForeignKind kPackedTar = {"a compressed tar", kUnpackTar};
constexpr ForeignKind kVideo = {"a video", "extract its frames as images, for example with: ffmpeg -i $ %05d.png"};
constexpr ForeignKind kAudio = {"an audio file", "compute spectrograms of it, and save these as npy, npz or images"};
constexpr ForeignKind kHeic = {"an image of a kind that Sinew does not decode",
                               "convert it to JPEG or PNG, for example with ImageMagick: mogrify -format jpg $"};
constexpr ForeignKind kImage = {
    "one image",
    "give a folder with a sub-folder of images for each class, or a list with the path and the "
    "label of each image"};
constexpr ForeignKind kSqlite = {"a SQLite database",
                                 "write the table as CSV, for example with: sqlite3 -header -csv $ "
                                 "'select * from NAME' > table.csv"};
constexpr ForeignKind kXz = {"a file that is compressed with xz", "unpack it: xz -d $"};
constexpr ForeignKind kBzip2 = {"a file that is compressed with bzip2", "unpack it: bunzip2 $"};
constexpr ForeignKind kUtf32 = {"a text in UTF-32", "convert it: iconv -f utf-32 -t utf-8 $ > table.csv"};
constexpr ForeignKind kLibsvm = {"a LIBSVM file",
                                 "sklearn.datasets.load_svmlight_file($) reads it; save its arrays as x and y with "
                                 "numpy.savez"};
constexpr ForeignKind kArff = {"an ARFF file",
                               "convert it, for example with "
                               "pandas.DataFrame(scipy.io.arff.loadarff($)[0]).to_csv('table.csv', index=False)"};
constexpr ForeignKind kJsonArray = {"a JSON array",
                                    "write one object on each line, for example with: jq -c '.[]' $ > table.jsonl"};
constexpr ForeignKind kJsonObject = {"a JSON object",
                                     "convert it, for example with "
                                     "pandas.read_json($).to_csv('table.csv', index=False)"};
constexpr ForeignKind kJsonLines = {"a file of JSON lines",
                                    "rename it so that its name ends in .jsonl, or set data.format: jsonl"};
constexpr ForeignKind kPage = {"a web page (HTML)",
                               "download the data itself: such a page often asks to sign in, or shows the data"};
constexpr ForeignKind kPointer = {"a pointer of Git LFS and not the data", "fetch the data: git lfs pull"};
constexpr ForeignKind kModel = {"a model file",
                                "give the data as DATA, and the model where a command asks for a MODEL"};

struct ForeignName {
  std::string_view extension;
  const ForeignKind* kind;
};
constexpr auto kForeignNames = std::to_array<ForeignName>(
    {{"xlsx", &kExcel},  {"xls", &kExcel},     {"pkl", &kPickle},  {"pickle", &kPickle},     {"h5", &kHdf},
     {"hdf5", &kHdf},    {"pdf", &kPdf},       {"zip", &kArchive}, {"tgz", &kPackedTar},     {"7z", &kArchive},
     {"rar", &kArchive}, {"mp4", &kVideo},     {"avi", &kVideo},   {"mov", &kVideo},         {"mkv", &kVideo},
     {"webm", &kVideo},  {"m4v", &kVideo},     {"mpg", &kVideo},   {"mpeg", &kVideo},        {"wmv", &kVideo},
     {"wav", &kAudio},   {"mp3", &kAudio},     {"flac", &kAudio},  {"ogg", &kAudio},         {"m4a", &kAudio},
     {"aac", &kAudio},   {"opus", &kAudio},    {"heic", &kHeic},   {"heif", &kHeic},         {"avif", &kHeic},
     {"jxl", &kHeic},    {"svg", &kHeic},      {"psd", &kHeic},    {"pt", &kModel},          {"pt2", &kModel},
     {"pth", &kModel},   {"ckpt", &kModel},    {"onnx", &kModel},  {"safetensors", &kModel}, {"xz", &kXz},
     {"bz2", &kBzip2},   {"libsvm", &kLibsvm}, {"svm", &kLibsvm},  {"svmlight", &kLibsvm},   {"arff", &kArff}});

// Signatures that no text begins with. Workbooks, archives and npz are all ZIP files, so only their names tell them
// apart.
struct Signature {
  std::string_view bytes;
  const ForeignKind* kind;
};
constexpr auto kSignatures = std::to_array<Signature>({{"PAR1\x15"sv, &kParquet},
                                                       {"ARROW1\0\0"sv, &kArrow},
                                                       {"\xD0\xCF\x11\xE0"sv, &kExcel},
                                                       {"\x80\x02"sv, &kPickle},
                                                       {"\x80\x03"sv, &kPickle},
                                                       {"\x80\x04"sv, &kPickle},
                                                       {"\x80\x05"sv, &kPickle},
                                                       {"\x89HDF\r\n"sv, &kHdf},
                                                       {"%PDF-"sv, &kPdf},
                                                       {"\x89PNG"sv, &kImage},
                                                       {"\xFF\xD8\xFF"sv, &kImage},
                                                       {"GIF87a"sv, &kImage},
                                                       {"GIF89a"sv, &kImage},
                                                       {"II*\0"sv, &kImage},
                                                       {"MM\0*"sv, &kImage},
                                                       {"SQLite format 3"sv, &kSqlite},
                                                       {"\xFD"
                                                        "7zXZ"sv,
                                                        &kXz},
                                                       {"BZh91AY&SY"sv, &kBzip2},
                                                       {"\xFF\xFE\0\0"sv, &kUtf32},
                                                       {"\0\0\xFE\xFF"sv, &kUtf32}});

std::string_view without_space(std::string_view text) {
  if (text.starts_with("\xEF\xBB\xBF")) text.remove_prefix(3);
  text.remove_prefix(std::min(text.find_first_not_of(" \t\r\n"), text.size()));
  return text;
}

const ForeignKind* kind_of_table(std::string_view head, bool json_name) {
  if (head.starts_with("PK\x03\x04"))
    return head.find("[Content_Types].xml") != std::string_view::npos ? &kExcel : &kArchive;
  head = without_space(head);
  const std::string start = lower_case(std::string(head.substr(0, 14)));
  if (start.starts_with("<!doctype html") || start.starts_with("<html")) return &kPage;
  if (start.starts_with("@relation")) return &kArff;
  if (head.starts_with("version https://git-lfs")) return &kPointer;
  if (head.starts_with('[') && without_space(head.substr(1)).starts_with('{')) return &kJsonArray;
  if (json_name || !head.starts_with('{') || !without_space(head.substr(1)).starts_with('"')) return nullptr;
  return is_json_lines(head) ? &kJsonLines : &kJsonObject;
}

ForeignFile described(const ForeignKind& kind, const std::string& path) {
  std::string cure;
  for (const char c : kind.cure) cure += c == '$' ? "'" + path + "'" : std::string(1, c);
  return {std::string(kind.what), cure};
}

[[noreturn]] void refuse(const ForeignFile& foreign, const std::string& path) {
  const bool image = foreign.what == kImage.what;
  throw Error("DATA_WRONG_FORMAT",
              path + ": is " + foreign.what + (image ? ", not a data set" : ", which Sinew does not read as data"),
              foreign.cure);
}

}  // namespace

std::optional<ForeignFile> foreign_file(const std::string& path, std::string_view head) {
  const std::string extension = file_extension(path);
  const auto named = std::find_if(kForeignNames.begin(), kForeignNames.end(),
                                  [&](const ForeignName& name) { return name.extension == extension; });
  const auto by_bytes = std::find_if(kSignatures.begin(), kSignatures.end(),
                                     [&](const Signature& start) { return head.starts_with(start.bytes); });
  // The extension of table.csv.gz is csv, so that of x.tar.gz is tar. Sinew reads a tar only as it is.
  if (extension == "tar" && !lower_case(path).ends_with(".tar")) return described(kPackedTar, path);
  const bool image = is_image_name(path);
  if (named == kForeignNames.end() && by_bytes == kSignatures.end() && !image) return std::nullopt;
  const ForeignKind& kind = by_bytes != kSignatures.end() ? *by_bytes->kind : image ? kImage : *named->kind;
  return described(kind, path);
}

void refuse_foreign_file(const std::string& path, std::string_view head) {
  if (const auto foreign = foreign_file(path, head)) refuse(*foreign, path);
}

bool is_json_lines(std::string_view head) {
  head = without_space(head);
  std::string_view line = head.substr(0, head.find('\n'));
  line = line.substr(0, line.find_last_not_of(" \t\r") + 1);
  const std::string_view next = without_space(head.substr(std::min(head.size(), line.size() + 1)));
  const bool alone = next.empty();
  return line.starts_with('{') && line.ends_with('}') &&
         (alone ? line.find_first_of("[{", 1) == std::string_view::npos : next.starts_with('{'));
}

void refuse_foreign_table(const std::string& path, std::string_view head) {
  const ForeignKind* const kind = kind_of_table(head, table_format_of(path) == "jsonl");
  if (kind != nullptr) refuse(described(*kind, path), path);
}

}  // namespace sinew::data
