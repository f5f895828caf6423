#include "child.h"

#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <cstdlib>
#include <nlohmann/json.hpp>

#include "base/error.h"

namespace sinew::bench {

using nlohmann::json;

Child::Child(const std::string& command) {
  int to[2], from[2];
  if (pipe(to) != 0 || pipe(from) != 0)
    throw Error("BENCH_NO_CHILD", "cannot make a pipe to the other optimiser", "close other programs");
  std::signal(SIGPIPE, SIG_IGN);
  pid_ = fork();
  if (pid_ == 0) {
    dup2(to[0], 0);
    dup2(from[1], 1);
    for (const int end : {to[0], to[1], from[0], from[1]}) close(end);
    execl("/bin/sh", "sh", "-c", command.c_str(), nullptr);
    _exit(127);
  }
  close(to[0]);
  close(from[1]);
  to_ = fdopen(to[1], "w");
  from_ = fdopen(from[0], "r");
}

Child::~Child() {
  std::fclose(to_);  // the child ends at the end of its input
  std::fclose(from_);
  waitpid(pid_, nullptr, 0);
}

std::string Child::say(const std::string& line) {
  std::fprintf(to_, "%s\n", line.c_str());
  std::fflush(to_);
  char* text = nullptr;
  size_t room = 0;
  const ssize_t size = getline(&text, &room, from_);
  const std::string answer = size > 0 ? std::string(text, static_cast<size_t>(size)) : "";
  std::free(text);
  if (answer.empty())
    throw Error("BENCH_CHILD_ENDED", "the other optimiser ended at the request " + line.substr(0, 200),
                "run it by hand");
  return answer;
}

void Child::begin(const std::string& sampler, const std::string& space, uint64_t seed, int trials) {
  say(json{{"cmd", "init"},
           {"sampler", sampler},
           {"seed", seed},
           {"budget", trials},
           {"space", json::parse(space)},
           {"directions", {"minimize"}}}
          .dump());
}

Child::Asked Child::ask(const tune::Space& space) {
  const json answer = json::parse(say(R"({"cmd":"ask"})"));
  return {answer.at("id"), tune::read_point(space, answer.at("params").dump())};
}

void Child::tell(int64_t id, double value) {
  say(json{{"cmd", "tell"}, {"id", id}, {"value", value}}.dump());
}

}  // namespace sinew::bench
