// A TorchScript archive from outside: the directory of the zip that torch.jit.save writes. Its code is compressed and
// its tree of modules a pickle; both are for libtorch. What they hold is told by the checksums the directory has.
#include <algorithm>

#include "program/archive.h"
#include "program/program.h"

namespace sinew::program {
namespace {

constexpr char kSave[] = "save the model with torch.jit.save(torch.jit.script(model), 'model.pt')";

// What is computed: the code, its constants, and the tree of modules. Not the weights, not where the lines came from.
bool computes(const std::string& name) {
  if (name.ends_with(".debug_pkl")) return false;
  return name.starts_with("code/") || name == "constants.pkl" || name.starts_with("constants/") || name == "data.pkl";
}

}  // namespace

ScriptFile read_script_file(const std::string& path) {
  const FileRange range(system_disk(), path);
  const std::vector<Member> members = read_directory(range, /*packed_too=*/true);
  if (members.empty()) throw Error(path + ": an archive without members", kSave);
  ScriptFile file;
  file.root = members.front().name.substr(0, members.front().name.find('/'));
  std::map<std::string, const Member*> by_name;
  for (const Member& member : members) {
    if (!member.name.starts_with(file.root + "/"))
      throw Error(path + ": member " + shown(member.name) + " is not in the folder of the others", kSave);
    by_name.emplace(member.name.substr(file.root.size() + 1), &member);
  }
  if (by_name.contains("archive_format"))
    throw Error(path + " is a .pt2 of torch.export, not TorchScript", "model: {name: program, file: " + path + "}");
  if (!by_name.contains("constants.pkl"))
    throw Error(path + " is a zip archive, but not TorchScript: it has no constants.pkl" +
                    (by_name.contains("data.pkl") ? " (torch.save wrote it)" : ""),
                kSave);
  std::string computed;
  for (const auto& [name, member] : by_name) {
    if (name.starts_with("data/")) {
      ++file.tensors;
      file.tensor_bytes += member->size;
    }
    if (name.starts_with("code/") && name.ends_with(".py")) file.code_files.push_back(name.substr(5));
    if (computes(name))
      computed += name + ' ' + std::to_string(member->size) + ' ' + std::to_string(member->crc) + '\n';
  }
  file.code = digest_of(std::string_view(computed));
  return file;
}

}  // namespace sinew::program
