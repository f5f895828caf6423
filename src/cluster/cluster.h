// Membership of a run's group: who belongs to it, and which member computes which part of a step.
//
// group/ and distribute/ use the member's side. cli/ and the supervisor use the coordinator, and make single calls to
// it. Every decision is a pure function of the time, the state and the options, and returns its reason as a sentence.
// The coordinator is a thin shell around these functions. It keeps its state only in memory, because the members report
// all of it again to a successor. The death of a coordinator therefore delays the next change of the view, and has no
// other effect.
#pragma once

#include "cluster/client.h"              // a member's client of the coordinator
#include "cluster/cluster_state.h"       // what the coordinator knows, and the decision on the next view
#include "cluster/control_request.h"     // the kinds of requests to a run, with their limits
#include "cluster/coordinator.h"         // the coordinator
#include "cluster/coordinator_client.h"  // single calls to a coordinator, and its status
#include "cluster/coordinator_info.h"    // RUN/coordinator.json
#include "cluster/election.h"            // which member becomes coordinator when none is left
#include "cluster/join_token.h"          // secrets of single members
#include "cluster/run_log.h"             // RUN/coordinator.log
#include "cluster/standby.h"             // a member that may become coordinator
#include "cluster/view.h"                // views, and who computes what under a view
