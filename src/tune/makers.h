// The makers of the samplers and stoppers, for the two visible lists (samplers.cpp, stoppers.cpp). One line a sampler;
// what it does and whom it follows stands at the top of its file.
#pragma once

#include "tune/tune.h"

namespace sinew::tune {

std::unique_ptr<Sampler> make_random();        // sampler_random.cpp
std::unique_ptr<Sampler> make_grid();          // sampler_grid.cpp
std::unique_ptr<Sampler> make_sobol();         // sampler_sobol.cpp
std::unique_ptr<Sampler> make_tpe();           // sampler_tpe.cpp
std::unique_ptr<Sampler> make_cmaes();         // sampler_cmaes.cpp
std::unique_ptr<Sampler> make_nearby();        // sampler_nearby.cpp
std::unique_ptr<Sampler> make_bohb();          // sampler_bohb.cpp
std::unique_ptr<Sampler> make_auto();          // sampler_auto.cpp
std::unique_ptr<Sampler> make_gp();            // gp_sampler.cpp
std::unique_ptr<Sampler> make_trust_region();  // trust_region_sampler.cpp
std::unique_ptr<Sampler> make_pbt();           // sampler_pbt.cpp

std::unique_ptr<Stopper> make_asha(const StopperOptions& options);          // stopper_rungs.cpp
std::unique_ptr<Stopper> make_hyperband(const StopperOptions& options);     // stopper_rungs.cpp
std::unique_ptr<Stopper> make_median(const StopperOptions& options);        // stopper_median.cpp
std::unique_ptr<Stopper> make_curve(const StopperOptions& options);         // stopper_curve.cpp
std::unique_ptr<Stopper> make_auto_stopper(const StopperOptions& options);  // stopper_curve.cpp

}  // namespace sinew::tune
