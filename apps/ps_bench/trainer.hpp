/// The role type "ps_bench.trainer": has samples and a model, computes gradients when the master asks for that,
/// and lets its servers make of the gradients what their rule says.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "caftan/base/clock.hpp"
#include "caftan/base/result.hpp"
#include "caftan/rpc/rref.hpp"
#include "ps_bench/messages.hpp"

namespace caftan {
class RoleContext;
}

namespace caftan::ps_bench {

class Server;

class Trainer {
 public:
  explicit Trainer(RoleContext& context) : context_(context) {}

  /// Errors: bad_arguments (no such number, no batch).
  Result<void> open(TrainerOrder order);

  /// Goes through the batches so many times, with a new model. Each gradient goes out as soon as the backward pass has
  /// it; a step follows when all replies are there.
  /// @param servers  all of them, in their order
  /// Errors: bad_arguments (not opened, another number of servers), cancelled (the run stops), those of calls to the
  ///   servers.
  Result<TrainerReport> train(std::vector<RRef<Server>> servers, std::int64_t epochs);

 private:
  RoleContext& context_;
  std::optional<TrainerOrder> order_{};
};

}  // namespace caftan::ps_bench
