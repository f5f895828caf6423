#include "train/environment.h"

#include <elf.h>
#include <gnu/libc-version.h>
#include <link.h>

#include <array>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>
#include <string_view>

#include "base/hex.h"
#include "model/model.h"
#include "train/resolve.h"

namespace sinew::train {
namespace {

constexpr size_t kIdBytes = 8;  // used bytes of a build id's 20; enough to tell builds apart

// The libraries, by how their file names begin.
constexpr std::array<std::pair<std::string_view, const char*>, 16> kLibraries = {
    {{"libc.so", "libc"},
     {"libm.so", "libm"},
     {"libmvec.so", "libmvec"},
     {"libstdc++.so", "libstdc++"},
     {"libgomp", "libgomp"},
     {"libtorch_cpu.so", "libtorch_cpu"},
     {"libc10.so", "libc10"},
     {"libmkl_core", "libmkl"},
     {"libturbojpeg", "libturbojpeg"},
     {"libpng", "libpng"},
     {"libwebp.so", "libwebp"},
     {"libwebp-", "libwebp"},  // in a wheel
     {"libtiff", "libtiff"},
     {"libjpeg", "libjpeg"},  // of libtiff
     {"libgif", "libgif"},
     {"libz.so", "libz"}}};

std::string cpu_model() {
  std::ifstream info("/proc/cpuinfo");
  for (std::string line; std::getline(info, line);) {
    if (line.starts_with("model name")) return line.substr(line.find(':') + 2);
  }
  return "unknown";
}

// Returns the build id in one segment of notes, or "" if it has none.
std::string build_id_in(const char* notes, size_t size) {
  while (size >= sizeof(ElfW(Nhdr))) {
    ElfW(Nhdr) note;
    std::memcpy(&note, notes, sizeof note);
    const size_t name = (note.n_namesz + 3UL) / 4 * 4, content = (note.n_descsz + 3UL) / 4 * 4;
    if (size - sizeof note < name || size - sizeof note - name < content) return "";
    const char* bytes = notes + sizeof note + name;
    if (note.n_type == NT_GNU_BUILD_ID && note.n_namesz == 4 && std::memcmp(notes + sizeof note, "GNU", 4) == 0) {
      const auto* id = reinterpret_cast<const unsigned char*>(bytes);
      return hex_of({id, std::min<size_t>(note.n_descsz, kIdBytes)});
    }
    notes += sizeof note + name + content;
    size -= sizeof note + name + content;
  }
  return "";
}

int add_build_id(dl_phdr_info* object, size_t, void* into) {
  auto& ids = *static_cast<std::map<std::string, std::string>*>(into);
  const std::string_view path = object->dlpi_name == nullptr ? "" : object->dlpi_name;
  const std::string_view file = path.substr(path.rfind('/') + 1);
  std::string name = ids.empty() ? "program" : "";  // the program comes first, without a name
  for (const auto& [beginning, known] : kLibraries) {
    if (!file.empty() && file.starts_with(beginning)) name = known;
  }
  if (name.empty()) return 0;
  std::string& id = ids[name] = "unknown";
  for (ElfW(Half) i = 0; i < object->dlpi_phnum; ++i) {
    const ElfW(Phdr)& segment = object->dlpi_phdr[i];
    if (segment.p_type != PT_NOTE) continue;
    // NOLINTNEXTLINE(performance-no-int-to-ptr): the loader gives addresses as numbers
    const auto* notes = reinterpret_cast<const char*>(object->dlpi_addr + segment.p_vaddr);
    if (std::string found = build_id_in(notes, segment.p_memsz); !found.empty()) id = std::move(found);
  }
  return 0;
}

nlohmann::json numerics() {
  std::ostringstream versions;
  versions << TORCH_VERSION_MAJOR << '.' << TORCH_VERSION_MINOR << '.' << TORCH_VERSION_PATCH;
  const auto variable = [](const char* name) {
    const char* value = std::getenv(name);
    return std::string(value == nullptr ? "" : value);
  };
  nlohmann::json facts = {{"sinew", "0.1.0"},
                          {"libtorch", versions.str()},
                          {"libc", gnu_get_libc_version()},
                          {"cpu", cpu_model()},
                          {"cpu_capability", at::get_cpu_capability()},
                          {"mkl_cbwr", variable("MKL_CBWR")},
                          {"mkl_enable_instructions", variable("MKL_ENABLE_INSTRUCTIONS")}};
  for (const auto& [name, id] : build_ids()) facts["build_" + name] = id;
  return facts;
}

}  // namespace

std::map<std::string, std::string> build_ids() {
  std::map<std::string, std::string> ids;
  ::dl_iterate_phdr(add_build_id, &ids);
  return ids;
}

std::string numerics_json() {
  return numerics().dump();
}

std::string environment_json(const Machine& machine) {
  nlohmann::json environment = numerics();
  environment["cores"] = machine.cores;
  return environment.dump(1) + "\n";
}

}  // namespace sinew::train
