// Inspects a TorchScript archive, the zip file that torch.jit.save writes. The module tree is a pickle, which only
// libtorch can read, so this code identifies the content by the checksums in the central directory. libtorch itself
// compares no checksum: it would load a damaged weight without an error.
#include <algorithm>

#include "program/archive.h"
#include "program/program.h"

namespace sinew::program {
namespace {

constexpr char kSave[] = "save the model with torch.jit.save(torch.jit.script(model), 'model.pt')";

// Returns whether a member defines the computation: the code, its constants, or the module tree. Weights and debug
// information do not.
bool defines_computation(const std::string& name) {
  if (name.ends_with(".debug_pkl")) return false;
  return name.starts_with("code/") || name == "constants.pkl" || name.starts_with("constants/") || name == "data.pkl";
}

}  // namespace

TorchScriptFile read_torchscript_file(const std::string& path) {
  const Archive archive(system_disk(), path, Compression::allowed);
  const std::vector<Member>& members = archive.members();
  if (members.empty()) throw Error("TORCHSCRIPT_BAD_FILE", path + ": an archive without members", kSave);
  TorchScriptFile file;
  file.root = members.front().name.substr(0, members.front().name.find('/'));
  std::map<std::string, const Member*> by_name;
  for (const Member& member : members) {
    if (!member.name.starts_with(file.root + "/")) {
      throw Error("TORCHSCRIPT_BAD_FILE",
                  path + ": member " + in_quotes(member.name) + " is not in the folder of the other members", kSave);
    }
    by_name.emplace(member.name.substr(file.root.size() + 1), &member);
  }
  if (by_name.contains("archive_format")) {
    throw Error("TORCHSCRIPT_BAD_FILE", path + " is a .pt2 of torch.export, not TorchScript",
                "write model: {name: program, file: " + path + "}");
  }
  if (!by_name.contains("constants.pkl")) {
    throw Error("TORCHSCRIPT_BAD_FILE",
                path + " is a zip archive, but not TorchScript: it has no constants.pkl" +
                    (by_name.contains("data.pkl") ? " (torch.save wrote it)" : ""),
                kSave);
  }
  std::string computed;
  for (const auto& [name, member] : by_name) {
    if (name.starts_with("data/")) {
      ++file.tensors;
      file.tensor_bytes += member->size;
    }
    if (name.starts_with("code/") && name.ends_with(".py")) file.code_files.push_back(name.substr(5));
    if (defines_computation(name))
      computed += name + ' ' + std::to_string(member->size) + ' ' + std::to_string(member->crc) + '\n';
  }
  file.code = digest_of(std::string_view(computed));
  return file;
}

void check_torchscript_file(const std::string& path) {
  Archive(system_disk(), path, Compression::allowed).check_contents();
}

}  // namespace sinew::program
