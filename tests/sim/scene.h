// The surroundings of the workers of a story.
#pragma once

#include <string>

#include "base/faulty_disk.h"
#include "judge.h"
#include "loop/loop.h"
#include "network.h"
#include "office.h"
#include "world.h"

namespace sinew::sim {

struct Scene {
  explicit Scene(uint64_t seed);
  ~Scene();
  Scene(const Scene&) = delete;
  Scene& operator=(const Scene&) = delete;

  World world;
  Network network;
  Post post;
  // The checkpoints and all that must survive. What a Reporter writes is on this machine's disk, below a directory of
  // this name: it need not survive, but no step may be lost or written twice when another worker takes the lead.
  FaultyDisk disk;
  const std::string run_directory;
  const TrainingJob job;
  Judge judge;
  loop::Plan plan;
  double shard_seconds = 0.03;
};

}  // namespace sinew::sim
