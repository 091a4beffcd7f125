/// The actor of one partition of a simulation at its worker, addressed by (simulation, index): takes the frames of the
/// other partitions and the news of lost workers. It runs no code of the model: what it takes goes to the partition's
/// seat.
#pragma once

#include <cstdint>
#include <memory>

#include <caf/behavior.hpp>
#include <caf/stateful_actor.hpp>

#include "caftan/base/error.hpp"
#include "service/named_behavior.hpp"
#include "sim/sim_messages.hpp"

namespace caftan::actors {

/// What the actor asks of the partition. Threads: any, all methods. None blocks.
class SimPartitionPorts {
 public:
  virtual ~SimPartitionPorts() = default;
  /// A frame has come from that life of a worker.
  virtual void take_frame(const WorkerLife& from, wire::Bytes frame) = 0;
  /// That life of a worker is lost.
  virtual void on_lost(const WorkerLife& peer) = 0;
  /// The worker leaves: nothing of the partition goes on.
  virtual void end(const Error& reason) = 0;
};

class SimPartitionState {
 public:
  static constexpr const char* name = "sim_partition_actor";

  explicit SimPartitionState(caf::event_based_actor* self) : self_(self) {}

  void set_ports(std::shared_ptr<SimPartitionPorts> ports) { ports_ = std::move(ports); }
  void on_frame(SimFrame& frame);
  void on_lost(const SimPeerDown& down) { ports_->on_lost(down.peer); }

 private:
  caf::event_based_actor* const self_;
  std::shared_ptr<SimPartitionPorts> ports_;
};

using SimPartitionActor = caf::stateful_actor<SimPartitionState, NamedBehavior>;

/// The behaviour of a SimPartitionActor.
caf::behavior sim_partition_actor(SimPartitionActor* self, std::uint64_t simulation, std::uint32_t index,
                                  std::shared_ptr<SimPartitionPorts> ports);

}  // namespace caftan::actors
