// Inside store/: libpq, loaded when the first PostgreSQL store is opened. It brings a dozen libraries of its own, and a
// program that never meets a server should not pay 10 ms for them each time it starts.
#pragma once

#include <postgresql/libpq-fe.h>

namespace sinew::store {

// The functions used here, by their names without PQ.
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
// Throws Error when it is not installed. Any thread.
const Libpq& libpq();

}  // namespace sinew::store
