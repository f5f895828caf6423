#include "data/foreign_file.h"

#include <algorithm>
#include <array>

#include "base/error.h"
#include "data/files.h"
#include "data/image_files.h"

namespace sinew::data {
namespace {

using namespace std::string_view_literals;

// In a cure, $ stands for the path in quotes.
struct ForeignKind {
  std::string_view what, cure;
};
constexpr ForeignKind kParquet = {"a Parquet file",
                                  "convert it, for example with: duckdb -c \"copy (from $) to 'table.csv'\", or with "
                                  "pandas.read_parquet($).to_csv('table.csv', index=False)"};
constexpr ForeignKind kArrow = {"an Arrow (Feather) file",
                                "convert it, for example with pandas.read_feather($).to_csv('table.csv', index=False)"};
constexpr ForeignKind kExcel = {"an Excel workbook",
                                "save it as CSV in the spreadsheet program, or with "
                                "pandas.read_excel($).to_csv('table.csv', index=False)"};
constexpr ForeignKind kPickle = {"a Python pickle",
                                 "save the data in another format, for example with "
                                 "pandas.read_pickle($).to_csv('table.csv', index=False)"};
constexpr ForeignKind kHdf = {"an HDF5 file", "save its arrays with numpy.savez"};
constexpr ForeignKind kPdf = {"a PDF document", "give a table (csv, tsv, jsonl), a text or images"};
constexpr ForeignKind kArchive = {"an archive", "unpack it and give the path of the folder"};
constexpr ForeignKind kVideo = {"a video", "extract its frames as images, for example with: ffmpeg -i $ %05d.png"};
constexpr ForeignKind kAudio = {"an audio file", "compute spectrograms of it, and save these as npy, npz or images"};
constexpr ForeignKind kHeic = {"an image of a kind that Sinew does not decode",
                               "convert it to JPEG or PNG, for example with ImageMagick: mogrify -format jpg $"};
constexpr ForeignKind kImage = {
    "one image",
    "give a folder with a sub-folder of images for each class, or a list with the path and the "
    "label of each image"};
constexpr ForeignKind kModel = {"a model file",
                                "give the data as DATA, and the model where a command asks for a MODEL"};

struct ForeignName {
  std::string_view extension;
  const ForeignKind* kind;
};
constexpr auto kForeignNames = std::to_array<ForeignName>(
    {{"parquet", &kParquet}, {"feather", &kArrow}, {"arrow", &kArrow}, {"xlsx", &kExcel},       {"xls", &kExcel},
     {"pkl", &kPickle},      {"pickle", &kPickle}, {"h5", &kHdf},      {"hdf5", &kHdf},         {"pdf", &kPdf},
     {"zip", &kArchive},     {"tar", &kArchive},   {"tgz", &kArchive}, {"7z", &kArchive},       {"rar", &kArchive},
     {"mp4", &kVideo},     {"avi", &kVideo},   {"mov", &kVideo},        {"mkv", &kVideo},
     {"webm", &kVideo},      {"m4v", &kVideo},     {"mpg", &kVideo},   {"mpeg", &kVideo},       {"wmv", &kVideo},
     {"wav", &kAudio},       {"mp3", &kAudio},     {"flac", &kAudio},  {"ogg", &kAudio},        {"m4a", &kAudio},
     {"aac", &kAudio},       {"opus", &kAudio},    {"heic", &kHeic},   {"heif", &kHeic},        {"avif", &kHeic},
     {"jxl", &kHeic},        {"svg", &kHeic},      {"psd", &kHeic},    {"pt", &kModel},         {"pt2", &kModel},
     {"pth", &kModel},       {"ckpt", &kModel},    {"onnx", &kModel},  {"safetensors", &kModel}});

// Signatures that no text begins with. Workbooks, archives and npz are all ZIP files, so only their names tell them
// apart.
struct Signature {
  std::string_view bytes;
  const ForeignKind* kind;
};
constexpr auto kSignatures = std::to_array<Signature>({{"PAR1"sv, &kParquet},
                                                       {"ARROW1"sv, &kArrow},
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
                                                       {"MM\0*"sv, &kImage}});

}  // namespace

std::optional<ForeignFile> foreign_file(const std::string& path, std::string_view head) {
  const std::string extension = file_extension(path);
  const auto named = std::find_if(kForeignNames.begin(), kForeignNames.end(),
                                  [&](const ForeignName& name) { return name.extension == extension; });
  const auto by_bytes = std::find_if(kSignatures.begin(), kSignatures.end(),
                                     [&](const Signature& start) { return head.starts_with(start.bytes); });
  const bool image = is_image_name(path);
  if (named == kForeignNames.end() && by_bytes == kSignatures.end() && !image) return std::nullopt;
  const ForeignKind& kind = by_bytes != kSignatures.end() ? *by_bytes->kind : image ? kImage : *named->kind;
  std::string cure;
  for (const char c : kind.cure) cure += c == '$' ? "'" + path + "'" : std::string(1, c);
  return ForeignFile{std::string(kind.what), cure};
}

void refuse_foreign_file(const std::string& path, std::string_view head) {
  const std::optional<ForeignFile> foreign = foreign_file(path, head);
  if (!foreign) return;
  const bool image = foreign->what == kImage.what;
  throw Error("DATA_WRONG_FORMAT",
              path + ": is " + foreign->what + (image ? ", not a data set" : ", which Sinew does not read as data"),
              foreign->cure);
}

}  // namespace sinew::data
