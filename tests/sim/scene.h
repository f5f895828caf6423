// A Scene has everything that the processes of a story share: the world, the network, the calls to the coordinator, the
// disk, the job and the judge.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "base/faulty_disk.h"
#include "judge.h"
#include "loop/loop.h"
#include "network.h"
#include "office.h"
#include "world.h"

namespace sinew::sim {

struct Scene {
  explicit Scene(uint64_t seed);
  Scene(const Scene&) = delete;
  Scene& operator=(const Scene&) = delete;

  World world;
  Network network;
  Post post;
  RunFiles files;
  std::vector<std::shared_ptr<Office>> offices;  // all coordinators of the story, dead or alive
  // The simulated disk, with all files of the run. Checkpoints must survive a crash of the machine. No such promise is
  // tested for the Reporter's files: Story::machine_dies makes them durable (FaultyDisk::settle) before the crash. But
  // when another worker becomes the leader, no step may be missing from them or written twice.
  FaultyDisk disk;
  const std::string run_directory = "runs/story";
  const TrainingJob job;
  Judge judge;
  loop::Plan plan;
  double shard_seconds = 0.03;
  size_t frozen_parts = 1;  // number of parts of a member's memory; each step compares one part

  // Does what cluster::run_coordinator does with the files of the run directory before it listens.
  cluster::CoordinatorOptions begin_coordinator(int64_t workers);
  // Makes the coordinator with these options and this pid listen now. Returns null if another one has begun meanwhile.
  std::shared_ptr<Office> listen(int64_t pid, const cluster::CoordinatorOptions& options);
};

}  // namespace sinew::sim
