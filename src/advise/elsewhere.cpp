// Estimates what a training takes on a machine that is not here. The model of a step is
//   overhead + max(operations / (peak * efficiency), bytes / (bandwidth * efficiency)) + waiting for samples.
// Operations, bytes and calls of operators were counted here. On a processor the efficiency is that of this machine; on
// an accelerator, which this program does not train on, it is a usual one.
#include <algorithm>
#include <cmath>
#include <tuple>

#include "advise/advise.h"
#include "base/check.h"
#include "base/number_text.h"
#include "base/size_text.h"

namespace sinew::advise {
namespace {

constexpr double kGiga = 1e9, kTera = 1e12, kGiB = 1024.0 * 1024 * 1024;
// The table has the computed peak of a processor; a good matrix product reaches this part of it, and a copy this part
// of the bandwidth. The abilities of this machine were measured in the same way.
constexpr double kProductOfPeak = 0.8, kCopyOfBandwidth = 0.75;
// Of what its data sheet says, a training reaches these parts on an accelerator.
constexpr double kAcceleratorOfPeak = 0.35, kAcceleratorOfBandwidth = 0.7, kSeveralAccelerators = 0.8;
constexpr double kLaunchSeconds = 10e-6;       // of an operator on a GPU
constexpr double kCompiledStepSeconds = 3e-4;  // of a step that XLA has compiled, on a TPU
constexpr double kMostOverhead = 0.9;          // of a step here; the rest is computing in any case
constexpr double kProcessorError = 0.3, kAcceleratorFactor = 2;
constexpr double kStartAndEndError = 0.5, kErrorOfOther = 1;
constexpr double kAcceleratorContext = 0.5 * kGiB;  // of the driver and its libraries

struct StepTime {
  double seconds = 0;
  const char* limit = "compute";
};

StepTime slowest(double overhead, double compute, double memory, double data, double load) {
  const double work = std::max(compute, memory);
  StepTime step{overhead + work + data, compute >= memory ? "compute" : "memory"};
  if (overhead > work) step.limit = "calls";
  if (data > overhead + work) step.limit = "data";
  if (load > step.seconds) step = {load, "data"};  // samples cannot be read faster
  return step;
}

// A machine that has a figure for bf16 computes it in hardware, so auto chooses it there.
std::string precision_on(const PlannedJob& job, const MachineType& machine) {
  if (!job.precision_is_auto) return job.precision;
  return machine.peak_tflops.contains("bf16") ? "bf16" : "fp32";
}

double lanes_of(const PlannedJob& job, double cores) {
  return std::max(1.0, std::min(cores, static_cast<double>(job.shards)));
}

// This machine is a point of the model: with its own abilities, the result is its own step.
StepTime on_processor(const Plan& plan, const MachineType& machine) {
  const PlannedJob& job = plan.job;
  const MeasuredRun& here = plan.measured;
  const double cores_here = std::max(here.cores, static_cast<double>(here.lanes));
  const auto lanes_here = static_cast<double>(here.lanes);
  const double lanes = lanes_of(job, machine.cores);
  const double busy = std::max(0.0, here.step_seconds - here.wait_seconds);
  const double overhead = std::min(kMostOverhead * busy, here.step_calls * here.call_seconds / lanes_here);
  const double peak =
      machine.peak_tflops.at(precision_on(job, machine)) * kTera * kProductOfPeak * lanes / machine.cores;
  const double bandwidth = machine.memory_bandwidth_gbs * kGiga * kCopyOfBandwidth;
  const double needs = std::max(here.step_flops / here.peak_flops, here.step_bytes / here.bandwidth);
  const double slowdown = needs > 0 ? (busy - overhead) / needs : 0;  // 1 / efficiency
  return slowest(overhead * lanes_here / lanes, here.step_flops / peak * slowdown,
                 here.step_bytes / bandwidth * slowdown, here.wait_seconds * cores_here / machine.cores,
                 here.load_seconds / machine.cores);
}

// One that splits each batch among its accelerators.
StepTime on_accelerators(const Plan& plan, const MachineType& machine) {
  const MeasuredRun& here = plan.measured;
  const double used = std::min(machine.accelerators, static_cast<double>(std::max<int64_t>(1, plan.job.batch_size)));
  const double together = used * (used > 1 ? kSeveralAccelerators : 1);
  const double overhead = machine.kind == MachineType::Kind::tpu
                              ? kCompiledStepSeconds
                              : here.step_calls / static_cast<double>(plan.job.shards) * kLaunchSeconds;
  const double peak = machine.peak_tflops.at(precision_on(plan.job, machine)) * kTera * kAcceleratorOfPeak * together;
  const double bandwidth = machine.memory_bandwidth_gbs * kGiga * kAcceleratorOfBandwidth * together;
  return slowest(overhead, here.step_flops / peak, here.step_bytes / bandwidth, 0, here.load_seconds / machine.cores);
}

std::string shortage(double needed, double given, const char* of) {
  if (needed <= given) return "";
  return "needs " + size_text(std::llround(needed)) + of + ", has " + size_text(std::llround(given));
}

// The memory that all lanes share stays; each lane has its own activations and gradients.
double memory_with(const Plan& plan, double lanes) {
  const MeasuredRun& here = plan.measured;
  const auto shared =
      static_cast<double>(here.program_memory + here.data_memory + here.parameter_memory + here.optimizer_memory);
  const double of_lanes = std::max(0.0, plan.memory.high - shared);
  return plan.memory.high - of_lanes + of_lanes * lanes / static_cast<double>(std::max<int64_t>(1, here.lanes));
}

std::string why_not(const Plan& plan, const MachineType& machine) {
  const MeasuredRun& measured = plan.measured;
  const std::string precision = precision_on(plan.job, machine);
  if (!machine.peak_tflops.contains(precision)) return "no figure for " + precision;
  if (machine.kind == MachineType::Kind::cpu)
    return shortage(memory_with(plan, lanes_of(plan.job, machine.cores)), machine.memory_gib * kGiB, " of memory");
  const auto host = static_cast<double>(measured.program_memory + measured.data_memory);
  const std::string of_host = shortage(host, machine.memory_gib * kGiB, " of memory");
  if (!of_host.empty()) return of_host;
  return shortage(plan.memory.high - host + kAcceleratorContext, machine.accelerator_memory_gib * kGiB,
                  " on the accelerator");
}

Estimate estimate_of(double value, const MachineType& machine, double error) {
  if (machine.kind == MachineType::Kind::cpu) {
    const double all = std::hypot(error, kProcessorError);
    return {value, value * (1 - all), value * (1 + all)};
  }
  return {value, value / kAcceleratorFactor * (1 - error), value * kAcceleratorFactor * (1 + error)};
}

Elsewhere on(const Plan& plan, const MachineType& machine) {
  const PlannedJob& job = plan.job;
  const MeasuredRun& here = plan.measured;
  Elsewhere there{.machine = machine, .why_not = why_not(plan, machine)};
  if (!machine.peak_tflops.contains(precision_on(job, machine))) return there;
  const StepTime step =
      machine.kind == MachineType::Kind::cpu ? on_processor(plan, machine) : on_accelerators(plan, machine);
  there.limit = step.limit;
  there.step_seconds = estimate_of(step.seconds, machine, std::min(0.5, here.step_error));
  // evaluations and the test take as much longer or shorter as steps do
  const Estimate ratio = there.step_seconds * (1 / here.step_seconds);
  const double startup = here.startup_seconds, end = here.end_seconds + here.save_seconds;
  const double rest = std::max(0.0, plan.end.expected - end);  // the test, and the threshold
  const Estimate fixed{startup + end, (startup + end) * (1 - kStartAndEndError),
                       (startup + end) * (1 + kStartAndEndError)};
  const double steps_here = plan.steps.expected / here.step_seconds;
  if (job.steps) {
    there.steps = {steps_here, steps_here, steps_here};
    there.seconds = fixed + ratio * (plan.steps.expected + plan.evaluations.expected + rest);
  } else {
    const auto fit = [&](double faster) { return std::floor(steps_here / faster); };
    there.steps = {fit(ratio.expected), fit(ratio.high), fit(ratio.low)};
    there.seconds = Estimate{job.max_seconds, job.max_seconds, job.max_seconds} + fixed * 0.5 + ratio * rest;
  }
  there.seconds.low = std::max(0.0, there.seconds.low - kErrorOfOther);
  there.seconds.high += kErrorOfOther;
  if (job.budget_seconds > 0) {
    for (double* one : {&there.seconds.expected, &there.seconds.low, &there.seconds.high})
      *one = std::min(*one, job.budget_seconds);
  }
  return there;
}

}  // namespace

std::vector<Elsewhere> elsewhere(const Plan& plan, const MachineTable& table) {
  SINEW_CHECK(plan.measured.peak_flops > 0 && plan.measured.bandwidth > 0, plan.measured.peak_flops);
  std::vector<Elsewhere> all;
  for (const MachineType& machine : table.machines) all.push_back(on(plan, machine));
  const auto order = [](const Elsewhere& one) {
    const auto price = one.machine.usual_price();
    return std::tuple(!one.why_not.empty(), !price, price.value_or(1) * one.seconds.expected);
  };
  std::ranges::stable_sort(all, {}, order);
  return all;
}

std::vector<std::string> assumptions(const Plan& plan) {
  const MeasuredRun& here = plan.measured;
  const auto percent = [](double part) { return rounded_text(100 * part, 2) + " %"; };
  return {
      "one machine trains alone; its start, its downloads and the interruptions of a spot machine are left out",
      "a step takes its overhead + max(operations / peak, bytes / bandwidth) / efficiency + waiting for samples; "
      "here it has " +
          rounded_text(here.step_flops / kGiga, 3) + " GFLOP and moves " + rounded_text(here.step_bytes / kGiga, 3) +
          " GB in " + rounded_text(here.step_calls, 3) + " operators",
      "this machine was measured at " + rounded_text(here.peak_flops / kGiga, 3) + " GFLOP/s and " +
          rounded_text(here.bandwidth / kGiga, 3) +
          " GB/s; another processor has the same efficiency, within +-30 %, and as many lanes as its cores and the " +
          std::to_string(plan.job.shards) + " shards allow",
      "an accelerator reaches " + percent(kAcceleratorOfPeak) + " of its peak or " + percent(kAcceleratorOfBandwidth) +
          " of its bandwidth, within a factor of 2, and several of them " + percent(kSeveralAccelerators) +
          " of that together; this program trains on processors, so those rows are for one that uses accelerators",
  };
}

}  // namespace sinew::advise
