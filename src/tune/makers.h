// Declares the makers of all samplers and pruners, for the lists in samplers.cpp and pruners.cpp. The header comment of
// each file named below says what the algorithm does and which paper it follows.
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

std::unique_ptr<Pruner> make_asha(const PrunerOptions& options);         // pruner_rungs.cpp
std::unique_ptr<Pruner> make_hyperband(const PrunerOptions& options);    // pruner_rungs.cpp
std::unique_ptr<Pruner> make_median(const PrunerOptions& options);       // pruner_median.cpp
std::unique_ptr<Pruner> make_curve(const PrunerOptions& options);        // pruner_curve.cpp
std::unique_ptr<Pruner> make_auto_pruner(const PrunerOptions& options);  // pruner_curve.cpp

}  // namespace sinew::tune
