#include "store/libpq.h"

#include <dlfcn.h>

#include "base/error.h"

namespace sinew::store {
namespace {

class Library {
 public:
  Library() : handle_(::dlopen("libpq.so.5", RTLD_NOW | RTLD_LOCAL)) {
    if (handle_ == nullptr)
      throw Error("STORE_NO_CLIENT_LIBRARY", "PostgreSQL's client library, libpq.so.5, is not installed",
                  "install it (on Debian: apt install libpq5)");
  }
  template <typename Function>
  void find(const char* name, Function& function) const {
    function = reinterpret_cast<Function>(::dlsym(handle_, name));
    if (function == nullptr)
      throw Error("STORE_NO_CLIENT_LIBRARY",
                  std::string("PostgreSQL's client library is too old: it has no function ") + name,
                  "install libpq 14 or newer");
  }

 private:
  void* handle_;  // never closed
};

Libpq load() {
  const Library library;
  Libpq functions{};
  library.find("PQconnectdbParams", functions.connectdbParams);
  library.find("PQstatus", functions.status);
  library.find("PQerrorMessage", functions.errorMessage);
  library.find("PQfinish", functions.finish);
  library.find("PQpipelineStatus", functions.pipelineStatus);
  library.find("PQenterPipelineMode", functions.enterPipelineMode);
  library.find("PQexitPipelineMode", functions.exitPipelineMode);
  library.find("PQpipelineSync", functions.pipelineSync);
  library.find("PQsetnonblocking", functions.setnonblocking);
  library.find("PQsendQuery", functions.sendQuery);
  library.find("PQsendPrepare", functions.sendPrepare);
  library.find("PQsendQueryPrepared", functions.sendQueryPrepared);
  library.find("PQflush", functions.flush);
  library.find("PQsocket", functions.socket);
  library.find("PQisBusy", functions.isBusy);
  library.find("PQconsumeInput", functions.consumeInput);
  library.find("PQgetResult", functions.getResult);
  library.find("PQclear", functions.clear);
  library.find("PQresultStatus", functions.resultStatus);
  library.find("PQresultErrorField", functions.resultErrorField);
  library.find("PQresultErrorMessage", functions.resultErrorMessage);
  library.find("PQntuples", functions.ntuples);
  library.find("PQgetlength", functions.getlength);
  library.find("PQgetvalue", functions.getvalue);
  return functions;
}

}  // namespace

const Libpq& libpq() {
  static const Libpq functions = load();
  return functions;
}

}  // namespace sinew::store
