/// `Replica`: one worker's part in a replicated module, whatever its class.
#pragma once

#include <atomic>
#include <memory>
#include <string>
#include <vector>

#include "caftan/autograd/internal/leaf_exchange.hpp"
#include "caftan/nn/internal/bucket_plan.hpp"
#include "caftan/nn/replicated.hpp"

namespace caftan::nn {

/// Threads: any.
class Replica final : public autograd::LeafExchange, public std::enable_shared_from_this<Replica> {
 public:
  /// Errors: bad_arguments, unsupported: as Replicated::try_make, as far as they are known without the others.
  static Result<std::shared_ptr<Replica>> make(const CallSite& site, std::shared_ptr<collectives::Collectives> group,
                                               std::vector<NamedTensor> parameters, std::vector<NamedTensor> buffers,
                                               const ReplicatedOptions& options);

  /// Gives all replicas rank 0's values, and compares hashes. Waits. Errors: invalid_config, those of the group.
  Result<void> start();

  // LeafExchange
  const std::vector<at::Tensor>& leaves() const noexcept override { return leaves_; }
  Result<std::unique_ptr<autograd::LeafPass>> begin() override;
  /// The pass, or a `join`, that began last is over.
  void end() noexcept { is_busy_.store(false, std::memory_order_release); }

  Result<void> enter_context();
  std::uint64_t hash() const;
  Result<void> check_equal();
  Result<void> join();

  const std::string& name_of(std::size_t leaf) const noexcept { return names_[leaf]; }
  const BucketPlan& plan() const noexcept { return plan_; }
  const ReplicatedOptions& options() const noexcept { return options_; }
  collectives::Collectives& group() const noexcept { return *group_; }
  /// Returns a vector with 1 at this rank if `has_data`, zeros else.
  collectives::Tensors presence(bool has_data) const;

 private:
  Replica(const CallSite& site, std::shared_ptr<collectives::Collectives> group, std::vector<NamedTensor> parameters,
          std::vector<NamedTensor> buffers, const ReplicatedOptions& options);

  Result<void> take_values_of(int root);
  Result<void> take_buffers();
  Result<bool> shadow_pass(std::vector<std::int64_t>& last);
  const std::string& self() const { return group_->members()[static_cast<std::size_t>(group_->rank())]; }

  const CallSite site_;
  const std::shared_ptr<collectives::Collectives> group_;
  const std::vector<NamedTensor> parameters_;
  const std::vector<NamedTensor> buffers_;
  const ReplicatedOptions options_;
  std::vector<at::Tensor> leaves_;  ///< parameters that need gradients
  std::vector<std::string> names_;  ///< of them
  BucketPlan plan_;
  std::atomic<bool> is_busy_{false};
};

}  // namespace caftan::nn
