// Reads a whole .pt2 file. Checks which members it has, and reads the content of each.
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
    program.weights = stored("data/weights/", "model_weights_config.json", model.newer_schema);
    program.constants = stored("data/constants/", "model_constants_config.json", model.newer_schema);
    check_stored_tensors(program, archive_.file().size());
    return program;
  }

 private:
  static constexpr char kModel[] = "models/model.json";

  std::string place(const std::string& name) const { return path_ + ": " + name; }

  // Returns the folder that holds all members. torch names this folder after the file to which it first wrote the
  // program.
  std::string find_root() const {
    if (archive_.members().empty()) throw Error("PROGRAM_NOT_PT2", path_ + ": an archive without members", kExport);
    const std::string& first = archive_.members().front().name;
    const std::string root = first.substr(0, first.find('/'));
    for (const Member& member : archive_.members()) {
      if (!member.name.starts_with(root + '/')) {
        throw Error("PROGRAM_NOT_PT2",
                    path_ + ": member " + in_quotes(member.name) + " is not in the folder " + in_quotes(root) +
                        " of the other members",
                    kExport);
      }
    }
    return root;
  }

  void check_format() {
    if (archive_.find(root_ + "/archive_format") == nullptr) {
      const bool old = archive_.find(root_ + "/serialized_exported_program.json") != nullptr;
      if (old) {
        throw Error("PROGRAM_UNSUPPORTED_VERSION",
                    path_ + ": has no archive_format; torch before version 2.8 wrote such files", kExport);
      }
      throw Error("PROGRAM_NOT_PT2", path_ + ": a zip archive, but not a .pt2: it has no archive_format", kExport);
    }
    if (const std::string format = text("archive_format"); format != "pt2") {
      throw Error("PROGRAM_NOT_PT2", place("archive_format") + ": is " + in_quotes(format) + ", not 'pt2'", kExport);
    }
    if (const std::string version = text("archive_version"); version != "0") {
      throw Error("PROGRAM_UNSUPPORTED_VERSION",
                  place("archive_version") + ": is " + in_quotes(version) + "; Sinew reads '0'", kExport);
    }
    if (archive_.find(root_ + "/byteorder") == nullptr) return;
    if (const std::string order = text("byteorder"); order != "little") {
      throw Error("PROGRAM_UNSUPPORTED_VERSION",
                  place("byteorder") + ": is " + in_quotes(order) + "; Sinew reads 'little'",
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
        models += (models.empty() ? "" : ", ") + in_quotes(member.name.substr(root_.size() + 1));
      if (member.name == root_ + "/data/weights/model.pt" || member.name == root_ + "/data/constants/model.pt")
        throw Error(
            "PROGRAM_UNSUPPORTED_VERSION",
            path_ + ": its tensors are a pickle (" + member.name + "); torch before version 2.9 wrote such files",
            kExport);
    }
    const bool other_models = name == kModel && !models.empty();
    throw Error("PROGRAM_NOT_PT2", path_ + ": has no " + name + (other_models ? ", but it has " + models : ""),
                other_models ? "save a single program, with torch.export.save" : kExport);
  }

  std::map<std::string, StoredTensor> stored(const std::string& folder, const std::string& config, bool newer_schema) {
    Document document = parse_json(text(folder + config), place(folder + config));
    document.newer_schema = newer_schema;
    return read_stored_tensors(document, archive_, root_ + '/' + folder);
  }

  const std::string& path_;
  const Archive archive_;
  std::string root_;
  uint64_t left_ = kMaxJsonBytes;  // the bytes of JSON that the reader may still read, over all members
};

}  // namespace

Program read_program(Disk& disk, const std::string& path) {
  return Reader(disk, path).read();
}

Program read_program(const std::string& path) {
  return read_program(system_disk(), path);
}

}  // namespace sinew::program
