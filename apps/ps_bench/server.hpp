/// The role type "ps_bench.server": takes gradients bucket by bucket, and replies to all trainers of a round when it is
/// complete. What a round comes to is decided in bucket_rule.hpp; here are the calls and the clock.
#pragma once

#include <cstdint>
#include <map>
#include <vector>

#include "caftan/base/clock.hpp"
#include "caftan/base/result.hpp"
#include "caftan/rpc/future.hpp"
#include "ps_bench/bucket_rule.hpp"
#include "ps_bench/messages.hpp"

namespace caftan {
class RoleContext;
}

namespace caftan::ps_bench {

class Server {
 public:
  explicit Server(RoleContext& context) : context_(context) {}

  /// Begins anew: drops what was measured, and rounds that are open.
  /// @param server  its number
  /// Errors: bad_arguments (no such number).
  Result<void> open(Plan plan, std::uint32_t server);

  /// Takes gradients. Returns one tensor for each parameter of the bucket, when its round is complete: the mean of the
  /// gradients, or with the rule immediate the parameter after a step.
  /// Errors: bad_arguments (not opened, a bucket of another server, those of BucketRule::take), those of
  ///   BucketRule::finish.
  Future<std::vector<at::Tensor>> update(Contribution contribution);

  /// Returns what was measured since `open`: from the first to the last gradient of a round, until the replies were
  /// handed over, and the computation alone.
  ServerReport report() const;

 private:
  /// One bucket and the trainers that wait for its round.
  struct Open {
    BucketRule rule;
    std::vector<Promise<std::vector<at::Tensor>>> waiting{};
    base::TimePoint first{};  ///< when the round's first gradient came
  };

  void end_round(Open& bucket);
  void record(const char* metric, base::TimePoint from, base::TimePoint to);

  RoleContext& context_;
  Rule rule_ = Rule::average_batch;
  std::map<std::uint32_t, Open> buckets_{};  ///< by their number
  Times times_{};
  base::SteadyClock clock_{};
};

}  // namespace caftan::ps_bench
