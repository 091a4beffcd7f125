/// `StageModule`: what one stage of a pipeline has, an nn::RemoteModule at its worker. It runs its part of the model
/// and leaves the result at the worker that needs it next: the following stage, or behind the last one the master.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "caftan/autograd/gradient_book.hpp"
#include "caftan/base/result.hpp"
#include "caftan/rpc/future.hpp"
#include "caftan/rpc/rref.hpp"
#include "pipeline/model_part.hpp"
#include "pipeline/work.hpp"
#include "pipeline/work_log.hpp"

namespace caftan {
class Registry;
class Worker;
}  // namespace caftan

namespace caftan::pipeline {

/// What a stage is made of.
struct StageSpec {
  ModelSpec model{};
  std::uint64_t first_unit = 0;
  std::uint64_t end_unit = 0;
  bool checkpoints = false;  ///< keeps only its inputs, and runs its forward again in the backward
  std::string next{};        ///< name of the worker that needs its results

  template <class Archive>
  void serialize(Archive& archive, unsigned) {
    archive& model& first_unit& end_unit& checkpoints& next;
  }
};

/// Which micro-batch a forward is for.
struct MicroBatch {
  std::uint32_t number = 0;    ///< in its batch
  std::uint64_t step = 0;      ///< ordinal of the batch
  std::int64_t first_row = 0;  ///< in the batch

  template <class Archive>
  void serialize(Archive& archive, unsigned) {
    archive& number& step& first_row;
  }
};

/// What a stage did in a batch.
struct StageReport {
  std::vector<Work> works{};
  std::uint32_t most_held = 0;   ///< micro-batches held at once
  std::int64_t memory = 0;       ///< bytes that were resident in its process when the stage was made
  std::int64_t peak_memory = 0;  ///< the most since then
  std::int64_t process = 0;      ///< id of the process on its host

  template <class Archive>
  void serialize(Archive& archive, unsigned) {
    archive& works& most_held& memory& peak_memory& process;
  }
};

/// Keeps a tensor where it was sent to: what `remote` makes a reference to.
at::Tensor keep(at::Tensor tensor);

/// Threads: one at a time, but for the hooks of a backward pass, which come in turn with its methods, too.
class StageModule {
 public:
  /// Throws std::invalid_argument (an impossible specification).
  explicit StageModule(const StageSpec& spec);

  /// Runs the stage's units, recorded by autograd in the caller's context.
  /// @param input  at this worker
  /// @return a reference to the result, which is at the worker `next` or on its way there
  /// Errors: bad_arguments (sizes that do not fit the first unit), those of the input's creation and of calls.
  Result<RRef<at::Tensor>> forward(Worker& worker, RRef<at::Tensor> input, MicroBatch micro_batch);

  /// Returns a future that is ready once the backward of a micro-batch has ended here.
  Future<void> backward_ended(std::uint32_t micro_batch);

  /// Takes the gradients of the caller's context, that of a micro-batch whose backward has ended, and adds them to
  /// those of the micro-batches before it. Errors: those of Context::current.
  Result<void> take_gradients(Worker& worker, std::uint32_t micro_batch);
  /// Returns a scalar whose backward gives each parameter the gradients that were taken, once: so they come into the
  /// caller's context, for a step by their sum. Errors: bad_arguments (none were taken).
  Result<at::Tensor> give_gradients();

  /// Returns what was done since the last report.
  StageReport report();

  std::vector<nn::NamedTensor> named_parameters() const { return part_.named_parameters(); }
  std::vector<nn::NamedTensor> named_buffers() const { return part_.named_buffers(); }
  void train(bool on) { part_.train(on); }
  bool is_training() const { return part_.is_training(); }

 private:
  at::Tensor run(const at::Tensor& input, const MicroBatch& micro_batch) const;
  at::Tensor run_checkpointed(const at::Tensor& input, const Draw& draw) const;

  StageSpec spec_;
  ModelPart part_;
  std::shared_ptr<WorkLog> log_;  // hooks of tensors, which may live longer than the module, have it, too
  autograd::GradientBook sum_{};
  std::int64_t memory_ = 0;
};

/// Registers what the workers of stages and the master's worker need: the class of stages, and `keep`.
void register_stages(Registry& registry);

}  // namespace caftan::pipeline
