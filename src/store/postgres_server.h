// For tests and benchmarks inside store/: a temporary folder, and a private PostgreSQL server of the test program.
#pragma once

#include <pwd.h>
#include <sys/stat.h>
#include <unistd.h>

#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <memory>
#include <string>
#include <vector>

#include "base/process.h"
#include "store/postgres_link.h"

namespace sinew::store {

// Thrown if a test cannot be set up, or finds something wrong in a child process.
struct TestError : Error {
  explicit TestError(const std::string& what, const std::string& hint = "") : Error("TEST_FAILED", what, hint) {}
};

class Folder {
 public:
  Folder() {
    std::string name = (std::filesystem::temp_directory_path() / "sinew-store-XXXXXX").string();
    path_ = ::mkdtemp(name.data());
  }
  ~Folder() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  std::string operator/(const std::string& name) const { return path_ + "/" + name; }
  const std::string& path() const { return path_; }

 private:
  std::string path_;
};

// A PostgreSQL server that only this test program uses, through a socket in a temporary folder. PostgreSQL refuses to
// run as root. So if the test program runs as root, it starts the server as the user postgres or nobody.
class PostgresServer {
 public:
  static PostgresServer& one() {
    static PostgresServer server;
    return server;
  }
  // Without `fsync` the server does not wait for the disk. This is enough for tests: they kill processes, but do not
  // crash the machine.
  explicit PostgresServer(bool fsync = false) : fsync_(fsync) {
    folder_ = std::make_unique<Folder>();
    if (::geteuid() == 0) {
      const passwd* user = ::getpwnam("postgres");
      if (user == nullptr) user = ::getpwnam("nobody");
      as_user_ = {"/usr/bin/setpriv", "--reuid=" + std::to_string(user->pw_uid),
                  "--regid=" + std::to_string(user->pw_gid), "--clear-groups", "--pdeathsig=QUIT"};
      if (::chown(folder_->path().c_str(), user->pw_uid, user->pw_gid) != 0) throw TestError("chown");
    }
    run_to_end("initdb",
               {"-D", *folder_ / "data", "-A", "trust", "-U", "sinew", "-E", "UTF8", "--locale=C.UTF-8", "--no-sync"});
    start();
  }
  ~PostgresServer() { stop(SIGQUIT); }

  void start() {
    server_ = std::make_unique<Process>(ProcessOptions{
        command("postgres",
                {"-D", *folder_ / "data", "-k", folder_->path(), "-c", "listen_addresses=", "-c",
                 fsync_ ? "fsync=on" : "fsync=off", "-c", "shared_buffers=32MB", "-c", "max_connections=150"}),
        {},
        *folder_ / "server.log",
        0});
    for (int i = 0; i < 600; ++i) {
      if (server_->wait(0.05)) break;
      try {
        return execute("SELECT 1");
      } catch (const ConnectionLost&) {
        continue;  // the server is still starting
      }
    }
    std::ifstream log(*folder_ / "server.log");
    throw TestError("PostgreSQL did not start: " + std::string(std::istreambuf_iterator<char>(log), {}));
  }
  void stop(int signal) {
    if (server_ == nullptr) return;
    server_->send(signal);
    if (!server_->wait(30)) server_->send_group(SIGKILL);
    server_.reset();
  }
  std::string url(const std::string& schema) const {
    return "postgresql://sinew@/postgres?host=" + folder_->path() + "&options=-csearch_path%3D" + schema;
  }
  const std::string& folder() const { return folder_->path(); }
  std::string socket() const { return *folder_ / ".s.PGSQL.5432"; }
  // Executes statements as an administrator, on a separate connection.
  void execute(const std::string& sql) const {
    PostgresLink(url("public"), 30).script("SET client_min_messages = warning; " + sql);
  }

 private:
  static std::string program(const std::string& name) {
    const char* given = std::getenv("SINEW_POSTGRES_BIN");
    if (given != nullptr) return std::string(given) + "/" + name;
    for (int version = 30; version >= 14; --version) {
      const std::string path = "/usr/lib/postgresql/" + std::to_string(version) + "/bin/" + name;
      if (::access(path.c_str(), X_OK) == 0) return path;
    }
    throw TestError("no " + name + " below /usr/lib/postgresql", "install postgresql, or set SINEW_POSTGRES_BIN");
  }
  std::vector<std::string> command(const std::string& name, const std::vector<std::string>& arguments) const {
    std::vector<std::string> words = as_user_;
    words.push_back(program(name));
    words.insert(words.end(), arguments.begin(), arguments.end());
    return words;
  }
  void run_to_end(const std::string& name, const std::vector<std::string>& arguments) const {
    Process process({command(name, arguments), {}, *folder_ / (name + ".log"), 0});
    if (process.wait(120) == ProcessEnd{}) return;
    std::ifstream log(*folder_ / (name + ".log"));
    throw TestError(name + " failed: " + std::string(std::istreambuf_iterator<char>(log), {}));
  }

  const bool fsync_;
  std::unique_ptr<Folder> folder_;
  std::vector<std::string> as_user_;
  std::unique_ptr<Process> server_;
};

}  // namespace sinew::store
