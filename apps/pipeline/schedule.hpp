/// `Schedule`: what the stages of a pipeline do next with the micro-batches of one batch. Plain rules: what has ended
/// goes in, what may begin comes out.
///   PI-1  The forward of a micro-batch begins at a stage once it has ended at the stage before, and that of the
///         micro-batch before has ended at this stage: each stage takes micro-batches in their order.
///   PI-2  With 1f1b a stage holds no more micro-batches than there are stages from it to the last: it holds one from
///         the begin of its forward to the end of its backward there. So the last stage goes back and forth.
///   PI-3  The backward of a micro-batch begins once its forward has ended at the last stage: with 1f1b then, with
///         all_forward_then_backward once the forward of all has. It begins once, for all stages.
///   PI-4  A batch ends when the backward of each micro-batch has ended at every stage.
#pragma once

#include <cstddef>
#include <vector>

#include "pipeline/config.hpp"

namespace caftan::pipeline {

/// Something that may begin.
struct Begin {
  enum class Kind { forward, backward };

  Kind kind = Kind::forward;
  std::size_t stage = 0;  ///< of a forward; a backward goes through all stages
  std::size_t micro_batch = 0;
  bool operator==(const Begin&) const = default;
};

/// Threads: one at a time.
class Schedule {
 public:
  /// @param stages, micro_batches  at least 1 each
  Schedule(ScheduleName name, std::size_t stages, std::size_t micro_batches);

  /// Returns what may begin and was not returned before: backwards first, then forwards of the last stages first.
  std::vector<Begin> take();

  void end_forward(std::size_t stage, std::size_t micro_batch);
  /// A stage has done its part of a backward. Twice is once.
  void end_backward_at(std::size_t stage, std::size_t micro_batch);
  /// The backward of a micro-batch has ended at every stage.
  void end_backward(std::size_t micro_batch);

  /// Returns whether the batch has ended (PI-4).
  bool is_done() const noexcept;
  std::size_t stages() const noexcept { return stages_.size(); }
  std::size_t micro_batches() const noexcept { return micro_batches_.size(); }

 private:
  struct Stage {
    std::size_t begun = 0;     ///< forwards, which begin in order
    std::size_t forwards = 0;  ///< that have ended
    std::size_t held = 0;      ///< micro-batches between the begin of their forward and the end of their backward
  };
  struct MicroBatch {
    bool has_begun_back = false;
    bool has_ended = false;
    std::vector<bool> left{};  ///< by stage: its backward has ended there
  };
  bool may_begin_forward(std::size_t stage) const;

  ScheduleName name_;
  std::vector<Stage> stages_;
  std::vector<MicroBatch> micro_batches_;
};

}  // namespace caftan::pipeline
