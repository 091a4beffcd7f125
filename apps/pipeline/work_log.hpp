/// `WorkLog`: what one stage has done, and futures of the ends of its backwards. A backward is no call: a hook of the
/// stage's result reports its begin, hooks of the stage's parameters its end, which is there when each has its
/// gradient.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <utility>
#include <vector>

#include "caftan/base/clock.hpp"
#include "caftan/base/mutex.hpp"
#include "caftan/rpc/future.hpp"
#include "pipeline/work.hpp"

namespace caftan::pipeline {

/// Threads: any, all methods.
class WorkLog {
 public:
  /// @param parameters  of the stage, at least 1: a backward ends when so many gradients have come
  /// @param clock  null: the steady clock
  explicit WorkLog(std::size_t parameters, std::shared_ptr<const base::Clock> clock = nullptr)
      : parameters_(parameters), clock_(clock ? std::move(clock) : std::make_shared<const base::SteadyClock>()) {}

  /// Returns when something begins, for `end_forward`.
  double now() const noexcept { return seconds(clock_->now()); }
  void end_forward(std::uint32_t micro_batch, double begin);
  /// The gradient of the stage's result is here.
  void begin_backward(std::uint32_t micro_batch);
  /// A parameter has got its gradient.
  void add_gradient();
  /// The backward of a micro-batch has ended here, or at all stages: completes the future of `backward_ended`, if there
  /// is one. Twice is once.
  void end_pass(std::uint32_t micro_batch);

  /// Returns a future that is ready once the backward of a micro-batch has ended at this stage.
  Future<void> backward_ended(std::uint32_t micro_batch);

  /// Returns what was done since the last time, and forgets it.
  std::vector<Work> take();
  /// Returns how many micro-batches were held at once, at most, since the last time.
  std::uint32_t take_most_held();

 private:
  const std::size_t parameters_;
  const std::shared_ptr<const base::Clock> clock_;
  base::Mutex mutex_;
  std::vector<Work> works_ CAFTAN_GUARDED_BY(mutex_);
  std::map<std::uint32_t, Promise<void>> waiting_ CAFTAN_GUARDED_BY(mutex_);
  Work backward_ CAFTAN_GUARDED_BY(mutex_);  // the one under way
  std::size_t left_ CAFTAN_GUARDED_BY(mutex_) =
      0;  // gradients that backward_ still needs; 0 = no backward is under way
  std::uint32_t held_ CAFTAN_GUARDED_BY(mutex_) = 0;
  std::uint32_t most_held_ CAFTAN_GUARDED_BY(mutex_) = 0;
};

}  // namespace caftan::pipeline
