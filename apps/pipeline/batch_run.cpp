#include "pipeline/batch_run.hpp"

#include <ATen/ops/cross_entropy_loss.h>

#include <chrono>

#include "caftan/base/mutex.hpp"
#include "caftan/caftan.hpp"

namespace caftan::pipeline {
namespace {

enum class What { forward, backward_at, backward, taken };

struct Event {
  What what = What::forward;
  std::size_t stage = 0;
  std::size_t piece = 0;
  Result<RRef<at::Tensor>> outcome = RRef<at::Tensor>();  ///< a reference only of a forward
};

}  // namespace

class BatchEvents {
 public:
  /// @param caller  the worker whose executor waits
  explicit BatchEvents(std::weak_ptr<rpc::Caller> caller) : caller_(std::move(caller)) {}

  void push(Event event) {
    std::optional<Promise<void>> waiter;
    {
      const base::LockGuard lock(mutex_);
      events_.push_back(std::move(event));
      waiter.swap(waiter_);
    }
    if (waiter) waiter->set({});
  }

  /// Returns what has ended, in the order in which it came; waits until there is something.
  /// Errors: cancelled (`stop` was requested).
  Result<std::vector<Event>> wait(const std::stop_token& stop) {
    for (;;) {
      Promise<void> promise(caller_);
      Future<void> something = promise.future();
      {
        const base::LockGuard lock(mutex_);
        if (!events_.empty()) return std::exchange(events_, {});
        waiter_.emplace(std::move(promise));
      }
      while (!something.wait_for(std::chrono::milliseconds(100))) {
        if (stop.stop_requested()) return Error(Errc::cancelled, "stopped in the middle of a batch");
      }
    }
  }

 private:
  const std::weak_ptr<rpc::Caller> caller_;
  base::Mutex mutex_;
  std::vector<Event> events_ CAFTAN_GUARDED_BY(mutex_);
  std::optional<Promise<void>> waiter_ CAFTAN_GUARDED_BY(mutex_);
};

namespace {

/// Lets the end of a call become an event.
void report(Future<void> future, const std::shared_ptr<BatchEvents>& events, What what, std::size_t stage,
            std::size_t piece) {
  std::move(future)
      .then([events, what, stage, piece](Result<void> ended) {
        Event event{.what = what, .stage = stage, .piece = piece};
        if (!ended) event.outcome = ended.error();
        events->push(std::move(event));
      })
      .forget();
}

}  // namespace

BatchRun::BatchRun(const CallSite& site, const std::vector<RemoteStage>& stages, ScheduleName schedule, Batch batch)
    : site_(site.with({.timeout = base::Duration(0)})),  // a call lasts as long as its stage computes
      stages_(stages),
      batch_(std::move(batch)),
      schedule_(schedule, stages.size(), batch_.pieces.size()),
      pieces_(batch_.pieces.size()),
      events_(std::make_shared<BatchEvents>(site.alive().value_or(nullptr))) {}

BatchRun::~BatchRun() = default;

Result<double> BatchRun::run(optim::DistributedOptimizer& optimizer, const std::stop_token& stop) {
  const base::SteadyClock clock;
  const base::TimePoint started = clock.now();
  if (auto computed = compute(stop); !computed) return computed.error();
  window_ = std::chrono::duration<double>(clock.now() - started).count();
  if (auto stepped = step(optimizer); !stepped) return stepped.error();
  double loss = 0;
  for (const Piece& piece : pieces_) loss += piece.loss;
  return loss;
}

/// Takes all micro-batches forth and back.
Result<void> BatchRun::compute(const std::stop_token& stop) {
  while (!schedule_.is_done() || taken_ < pieces_.size()) {
    for (const Begin& what : schedule_.take()) {
      if (auto begun = begin(what); !begun) return begun;
    }
    auto events = events_->wait(stop);
    if (!events) return events.error();
    for (Event& event : *events) {
      if (!event.outcome) return event.outcome.error();
      switch (event.what) {
        case What::forward:
          pieces_[event.piece].data = *std::move(event.outcome);
          schedule_.end_forward(event.stage, event.piece);
          break;
        case What::backward_at:
          schedule_.end_backward_at(event.stage, event.piece);
          break;
        case What::backward:
          end_backward(event.piece);
          break;
        case What::taken:
          if (++pieces_[event.piece].answered < stages_.size()) break;
          pieces_[event.piece].context.reset();
          ++taken_;
          take_gradients();
          break;
      }
    }
  }
  return {};
}

Result<void> BatchRun::begin(const Begin& what) {
  return what.kind == Begin::Kind::forward ? begin_forward(what.stage, what.micro_batch)
                                           : begin_backward(what.micro_batch);
}

Result<void> BatchRun::begin_forward(std::size_t stage, std::size_t number) {
  Piece& piece = pieces_[number];
  const Rows& rows = batch_.pieces[number];
  if (stage == 0) {
    // Contexts do not nest: each is made, and has its calls, apart from the code that runs the batch.
    piece.ambient = std::make_unique<Ambient>(Ambient::capture());
    const AmbientSwap apart(piece.ambient.get());
    auto context = autograd::Context::try_make(site_);
    if (!context) return context.error();
    piece.context.emplace(*std::move(context));
    auto sent = site_.try_remote<&keep>(stages_.front().owner_name(), batch_.images.slice(0, rows.first, rows.end));
    if (!sent) return sent.error();
    piece.data = *std::move(sent);
  }
  const RemoteStage patient = stages_[stage].with({.timeout = base::Duration(0)});
  const MicroBatch order{.number = static_cast<std::uint32_t>(number), .step = batch_.step, .first_row = rows.first};
  Future<RRef<at::Tensor>> result;
  {
    const AmbientSwap inside(piece.ambient.get());
    result = patient.rpc_async<&StageModule::forward>(piece.data, order);
  }
  std::move(result)
      .then([events = events_, stage, number](Result<RRef<at::Tensor>> ended) {
        events->push({.what = What::forward, .stage = stage, .piece = number, .outcome = std::move(ended)});
      })
      .forget();
  report(patient.rpc_async<&StageModule::backward_ended>(order.number), events_, What::backward_at, stage, number);
  return {};
}

Result<void> BatchRun::begin_backward(std::size_t number) {
  Piece& piece = pieces_[number];
  const Rows& rows = batch_.pieces[number];
  const at::Tensor labels = batch_.labels.slice(0, rows.first, rows.end);
  const double share = static_cast<double>(rows.size()) / static_cast<double>(batch_.labels.size(0));
  const auto logits = piece.data.try_to_here();  // the last stage has sent them here, in the context of the piece
  if (!logits) return logits.error();
  const at::Tensor loss = at::cross_entropy_loss(*logits, labels).mul(share);
  piece.data = {};
  piece.loss = loss.item<double>();
  report(piece.context->backward_async({loss}), events_, What::backward, 0, number);
  return {};
}

void BatchRun::end_backward(std::size_t number) {
  schedule_.end_backward(number);
  pieces_[number].has_ended = true;
  take_gradients();
}

/// Lets each stage take its gradients of the next micro-batch, once it has taken those of the one before: sums depend
/// on their order, and calls may overtake each other. The context can end then.
void BatchRun::take_gradients() {
  const std::size_t number = taken_;
  if (asked_ != taken_ || number == pieces_.size() || !pieces_[number].has_ended) return;
  ++asked_;
  const AmbientSwap inside(pieces_[number].ambient.get());
  for (std::size_t stage = 0; stage < stages_.size(); ++stage) {
    const RemoteStage patient = stages_[stage].with({.timeout = base::Duration(0)});
    report(patient.rpc_async<&StageModule::take_gradients>(static_cast<std::uint32_t>(number)), events_, What::taken,
           stage, number);
  }
}

/// Makes one step by the sums of all micro-batches.
Result<void> BatchRun::step(optim::DistributedOptimizer& optimizer) {
  const auto context = autograd::Context::try_make(site_);
  if (!context) return context.error();
  std::vector<Future<at::Tensor>> asked;
  for (const RemoteStage& stage : stages_) asked.push_back(stage.rpc_async<&StageModule::give_gradients>());
  std::vector<at::Tensor> roots;
  for (auto& one : asked) {
    auto root = std::move(one).result();
    if (!root) return root.error();
    roots.push_back(*std::move(root));
  }
  if (auto given = context->try_backward(roots); !given) return given;
  if (auto stepped = optimizer.try_step(*context); !stepped) return stepped.error();
  return {};
}

}  // namespace caftan::pipeline
