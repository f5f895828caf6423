// `sinew tune` of a job file: trials as processes of their own, and the studies they make.
#pragma once

#include "cli/commands.h"

namespace sinew::cli {

int tune_job(const Arguments& arguments);      // JOB [key=value ...] [--study DIR]
int resume_study(const Arguments& arguments);  // STUDY [trials=N]
int extend_study(const Arguments& arguments);  // STUDY --trials N
int report_study(const Arguments& arguments);  // STUDY

}  // namespace sinew::cli
