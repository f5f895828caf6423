// A .pt2 file as a whole: which members it must have, and what each says.
#include "program/archive.h"
#include "program/files.h"
#include "program/signature.h"
#include "program/weights.h"

namespace sinew::program {
namespace {

constexpr char kExport[] = "export the model with torch.export.export and torch.export.save of torch 2.13";

class Reader {
 public:
  Reader(Disk& disk, const std::string& path) : path_(path), archive_(disk, path) {}

  Program read() {
    Program program;
    program.path = path_;
    program.root = root_ = find_root();
    check_format();
    const std::string graph = text(kModel);
    program.digest = digest_of(graph);
    const Document model = parse_model(graph, place(kModel));
    read_model(model, program);
    program.weights = stored("data/weights/", "model_weights_config.json", model.younger);
    program.constants = stored("data/constants/", "model_constants_config.json", model.younger);
    check_stored(program);
    return program;
  }

 private:
  static constexpr char kModel[] = "models/model.json";

  std::string place(const std::string& name) const { return path_ + ": " + name; }

  // The folder all members are in; torch names it after the file it first wrote.
  std::string find_root() const {
    if (archive_.members().empty()) throw Error(path_ + ": an archive without members", kExport);
    const std::string& first = archive_.members().front().name;
    const std::string root = first.substr(0, first.find('/'));
    for (const Member& member : archive_.members()) {
      if (!member.name.starts_with(root + '/'))
        throw Error(
            path_ + ": member " + shown(member.name) + " is not in the folder " + shown(root) + " of the others",
            kExport);
    }
    return root;
  }

  void check_format() {
    if (archive_.find(root_ + "/archive_format") == nullptr) {
      const bool old = archive_.find(root_ + "/serialized_exported_program.json") != nullptr;
      throw Error(path_ + ": a zip archive, but not a .pt2: it has no archive_format" +
                      (old ? " (torch before 2.8 wrote such ones)" : ""),
                  kExport);
    }
    if (const std::string format = text("archive_format"); format != "pt2")
      throw Error(place("archive_format") + ": is " + shown(format) + ", not 'pt2'", kExport);
    if (const std::string version = text("archive_version"); version != "0")
      throw Error(place("archive_version") + ": is " + shown(version) + "; Sinew reads '0'", kExport);
    if (archive_.find(root_ + "/byteorder") == nullptr) return;
    if (const std::string order = text("byteorder"); order != "little") {
      throw Error(place("byteorder") + ": is " + shown(order) + "; Sinew reads 'little'",
                  "save the program on a machine with little-endian numbers (x86, ARM)");
    }
  }

  std::string text(const std::string& name) {
    const Member* member = archive_.find(root_ + '/' + name);
    if (member == nullptr) refuse_missing(name);
    std::string text = archive_.text(*member, left_);
    left_ -= text.size();
    return text;
  }

  [[noreturn]] void refuse_missing(const std::string& name) const {
    std::string models;
    for (const Member& member : archive_.members()) {
      if (member.name.starts_with(root_ + "/models/") && models.size() < 200)
        models += (models.empty() ? "" : ", ") + shown(member.name.substr(root_.size() + 1));
      if (member.name == root_ + "/data/weights/model.pt" || member.name == root_ + "/data/constants/model.pt")
        throw Error(path_ + ": its tensors are a pickle (" + member.name + "), as torch before 2.9 wrote them",
                    kExport);
    }
    throw Error(path_ + ": has no " + name + (name == kModel && !models.empty() ? ", only " + models : ""),
                name == kModel && !models.empty() ? "save one program, with torch.export.save" : kExport);
  }

  std::map<std::string, Stored> stored(const std::string& folder, const std::string& config, bool younger) {
    Document document = parse_json(text(folder + config), place(folder + config));
    document.younger = younger;
    return read_stored(document, archive_, root_ + '/' + folder);
  }

  const std::string& path_;
  const Archive archive_;
  std::string root_;
  uint64_t left_ = kMostJsonBytes;  // of JSON, in all members together
};

}  // namespace

Program read_program(Disk& disk, const std::string& path) {
  return Reader(disk, path).read();
}

Program read_program(const std::string& path) {
  return read_program(system_disk(), path);
}

}  // namespace sinew::program
