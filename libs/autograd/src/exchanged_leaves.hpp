/// `ExchangedLeaves`: the exchanges of one pass at this worker: which leaf belongs to which, and what came back.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <unordered_map>
#include <vector>

#include "caftan/autograd/internal/leaf_exchange.hpp"
#include "caftan/base/mutex.hpp"
#include "staged_gradients.hpp"

namespace caftan::autograd {

class ExchangedLeaves {
 public:
  ExchangedLeaves() = default;
  /// Lets the passes that have not finished know that the pass failed.
  ~ExchangedLeaves();
  ExchangedLeaves(const ExchangedLeaves&) = delete;
  ExchangedLeaves& operator=(const ExchangedLeaves&) = delete;

  /// Names the exchanges of the pass. Threads: that of the run, before `begin`.
  void set(std::vector<std::shared_ptr<LeafExchange>> exchanges) { exchanges_ = std::move(exchanges); }
  /// Errors: those of LeafExchange::begin. Threads: that of the run, as all below without a remark.
  Result<void> begin();
  bool empty() const noexcept { return passes_.empty(); }

  /// Takes the gradient of a leaf that is exchanged. Returns whether it is.
  /// @param is_part  a checkpointed segment gives it: the sum of a leaf's parts is exchanged when all nodes have run
  /// Errors (thrown): those of LeafPass::on_gradient, as RpcException.
  bool take(const at::Tensor& leaf, at::Tensor& gradient, std::uint32_t rank, bool is_part);

  /// All nodes have run. Once all gradients are back, adds them to `staged` and returns true; also later calls.
  /// Errors: those of the exchanges.
  Result<bool> finish(StagedGradients& staged);
  /// Calls `ready` once `finish` has something new to say: inside this call, or on any thread.
  void when_ready(std::function<void()> ready);
  /// Calls what `when_ready` has got, or gets later, at once. Threads: any.
  void wake() noexcept;
  /// The pass fails for this reason. Threads: as finish.
  void abandon(const Error& reason) noexcept;

 private:
  struct Place {
    std::size_t pass;
    std::size_t leaf;
  };
  /// What the exchanges return, on any thread; they may do so after the end of the pass.
  struct Inbox {
    base::Mutex mutex;
    std::vector<std::optional<Result<std::vector<at::Tensor>>>> returned CAFTAN_GUARDED_BY(mutex);
    std::size_t missing CAFTAN_GUARDED_BY(mutex) = 0;
    std::function<void()> ready CAFTAN_GUARDED_BY(mutex);
    bool is_awake CAFTAN_GUARDED_BY(mutex) = false;
  };
  static void put(const std::shared_ptr<Inbox>& inbox, std::size_t pass, Result<std::vector<at::Tensor>> gradients);
  Result<void> ask();

  std::vector<std::shared_ptr<LeafExchange>> exchanges_;
  std::vector<std::unique_ptr<LeafPass>> passes_;
  std::unordered_map<const c10::TensorImpl*, Place> places_;
  StagedGradients parts_{true};
  const std::shared_ptr<Inbox> inbox_ = std::make_shared<Inbox>();
  bool asked_ = false;
  bool is_over_ = false;
};

}  // namespace caftan::autograd
