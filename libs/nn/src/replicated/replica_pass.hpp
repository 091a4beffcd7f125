/// `ReplicaPass`: one backward pass at a replica: fills buckets, sends each as soon as it is full and the one before is
/// on its way, and hands the means out.
#pragma once

#include <memory>
#include <optional>
#include <vector>

#include "caftan/base/mutex.hpp"
#include "replicated/replica.hpp"

namespace caftan::nn {

class ReplicaPass final : public autograd::LeafPass {
 public:
  explicit ReplicaPass(std::shared_ptr<Replica> replica);

  Result<void> on_gradient(std::size_t leaf, const at::Tensor& gradient) override;
  void finish(Returned returned) override;
  void abandon(const Error& reason) noexcept override;

 private:
  struct Filling {
    at::Tensor flat;               ///< of a dense bucket: zeros where no gradient came
    collectives::Tensors entries;  ///< of a sparse one: indices and values, none without a gradient
    std::size_t missing = 0;       ///< leaves without a gradient
  };
  /// What came back, filled by continuations on any thread; they may run after the end of the pass.
  struct Inbox {
    explicit Inbox(std::shared_ptr<Replica> of) : replica(std::move(of)) {}
    void put(std::size_t place, Result<std::vector<collectives::Tensors>> lists);
    void give();

    const std::shared_ptr<Replica> replica;
    base::Mutex mutex;
    std::vector<std::vector<collectives::Tensors>> lists CAFTAN_GUARDED_BY(mutex);
    std::optional<Error> error CAFTAN_GUARDED_BY(mutex);
    std::size_t missing CAFTAN_GUARDED_BY(mutex) = 0;
    Returned returned CAFTAN_GUARDED_BY(mutex);
    bool is_given CAFTAN_GUARDED_BY(mutex) = false;
  };

  void send_full();
  void send(std::size_t bucket);
  Result<void> check_all_used() const;

  const std::shared_ptr<Replica> replica_;
  const std::shared_ptr<Inbox> inbox_;
  std::vector<Filling> filling_;
  std::vector<bool> has_gradient_;  ///< per leaf
  std::size_t next_ = 0;            ///< bucket that is sent next
};

}  // namespace caftan::nn
