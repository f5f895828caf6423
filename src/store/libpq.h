// Inside store/: libpq, loaded with dlopen when the program opens its first PostgreSQL store. libpq depends on a dozen
// other libraries. Loading them takes 10 ms, which a program without a PostgreSQL store should not pay.
#pragma once

#include <postgresql/libpq-fe.h>

namespace sinew::store {

// The functions that this room uses, named without the prefix PQ.
// NOLINTBEGIN(readability-identifier-naming): the library's names
struct Libpq {
  decltype(&PQconnectdbParams) connectdbParams;
  decltype(&PQstatus) status;
  decltype(&PQerrorMessage) errorMessage;
  decltype(&PQfinish) finish;
  decltype(&PQpipelineStatus) pipelineStatus;
  decltype(&PQenterPipelineMode) enterPipelineMode;
  decltype(&PQexitPipelineMode) exitPipelineMode;
  decltype(&PQpipelineSync) pipelineSync;
  decltype(&PQsetnonblocking) setnonblocking;
  decltype(&PQsendQuery) sendQuery;
  decltype(&PQsendPrepare) sendPrepare;
  decltype(&PQsendQueryPrepared) sendQueryPrepared;
  decltype(&PQflush) flush;
  decltype(&PQsocket) socket;
  decltype(&PQisBusy) isBusy;
  decltype(&PQconsumeInput) consumeInput;
  decltype(&PQgetResult) getResult;
  decltype(&PQclear) clear;
  decltype(&PQresultStatus) resultStatus;
  decltype(&PQresultErrorField) resultErrorField;
  decltype(&PQresultErrorMessage) resultErrorMessage;
  decltype(&PQntuples) ntuples;
  decltype(&PQgetlength) getlength;
  decltype(&PQgetvalue) getvalue;
};
// NOLINTEND(readability-identifier-naming)
// Loads the library on the first call. Throws Error (STORE_NO_CLIENT_LIBRARY) when it is missing or too old. Any
// thread.
const Libpq& libpq();

}  // namespace sinew::store
