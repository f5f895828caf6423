// Confines a worker to what training needs, before it runs the code of a model.
//
// A TorchScript archive and a shared library are programs. `sinew-worker` calls confine() while it still has a single
// thread and has loaded no model. From then on, the process and all its threads
//  - write only below their run directory (Landlock), and read what the user can read;
//  - have no network, or only the links of their run (Links);
//  - start no program and no process, trace or signal no other process, and lock no file that others use (seccomp);
//  - use no more memory than they were given.
// confine() gives all of this or throws: there is no weaker mode. The worker cannot undo it.
//
// Links: a confined process cannot call connect, bind or listen itself. The kernel passes these calls to a broker.
// confine() forks the broker, which stays outside of the sandbox. The broker copies the address, checks it, and makes
// the call on its own duplicate of the socket. So what it has checked is what happens, whatever other threads of the
// worker do. The broker also takes the lock of the run for its worker (flock), because a member that is elected needs
// it.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

namespace sinew::sandbox {

// What this kernel offers.
struct Protection {
  bool seccomp = false;  // filters of system calls, with notifications
  int landlock = 0;      // version of Landlock's interface; 0: there is no Landlock
  // Version 2 of Landlock can allow that a file is moved from one folder to another, as each write of a run needs.
  bool complete() const { return seccomp && landlock >= 2; }
};
Protection protection_of_this_kernel();
// Throws Error (SANDBOX_UNAVAILABLE), which names what is missing. Pure.
void check_complete(const Protection& protection);

// The processes that a worker may reach over TCP.
struct Links {
  std::string run_directory;       // on this machine: the coordinator and the workers of this run
  std::vector<std::string> hosts;  // addresses of other machines, whose ports are all allowed
  std::string listen;              // the address at which the worker may listen, on a port that the kernel chooses
};

struct Confinement {
  // The directory in which the process may write. In its folders checkpoints/ and .writers/, it may also make and
  // remove folders and make links. If this is empty, the process can write nothing.
  std::string run_directory;
  std::unique_ptr<const Links> links;  // null: no network at all
  uint64_t memory_bytes = 0;           // limit of this process; 0: none
};

// Confines this process. Throws Error if it cannot.
void confine(const Confinement& confinement);

// A sentence for the user: what protects, and what is allowed. Pure.
std::string to_sentence(const Protection& protection, const std::string& writable, bool links,
                        const std::vector<std::string>& hosts, uint64_t memory_bytes);

// The run directory of confined workers has this empty folder. A confined worker can change every file of its run, also
// resolved.yaml, but it can neither remove nor rename this folder. So a program that reads the directory later knows
// that the code of a model may have written it.
inline constexpr const char* kMark = "trained-in-sandbox";
// Returns whether `path` is in the directory of such a run (or is this directory), or in the artifacts of a registry:
// code from these places is not trusted.
bool is_untrusted(const std::string& path);

// A file outside of the sandbox that a confined process writes. Make it before confine(): a process that is forked here
// receives the content through a pipe and writes the file. If this process ends without commit(), the file stays as it
// was.
class OutsideFile {
 public:
  // The user named an output, which may be a device or a pipe (write_output). A result of Sinew's own has a name in a
  // run directory, where the code of a model may have put a link to a device, or a pipe: these are replaced.
  enum class Kind { output, result };
  OutsideFile(const std::string& path, Kind kind);
  ~OutsideFile();
  OutsideFile(const OutsideFile&) = delete;
  OutsideFile& operator=(const OutsideFile&) = delete;
  void write(const std::string& text);
  void commit();  // returns once the whole file is durable; throws Error if it could not be written

 private:
  int content_ = -1, answer_ = -1;
  std::string path_;
};

}  // namespace sinew::sandbox
