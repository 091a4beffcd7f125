#include "autograd/graph_job.hpp"

#include <span>

#include <caf/send.hpp>

#include "caftan/rpc/strand.hpp"

namespace caftan::actors {

using autograd::Engine;

namespace {

constexpr std::size_t kNodesPerSlice = 1024;  // after this many nodes other jobs get their turn
constexpr std::size_t kNodesInPlace = 128;    // walking this many nodes takes no longer than a job and its event

}  // namespace

/// Makes messages of the gradients that leave.
class GraphJob::Sink final : public autograd::GradientSink {
 public:
  void on_gradients(const autograd::RecordedMessage& message, std::vector<at::Tensor>&& gradients) override {
    auto encoded = tensor::encode_tensors(gradients);
    if (!encoded) {
      if (outcome) outcome = encoded.error();
      return;
    }
    produced.push_back({message.message, std::make_shared<tensor::EncodedTensors>(std::move(*encoded))});
  }

  std::vector<context_event::Ran::Produced> produced;
  Result<void> outcome;
};

GraphJob::Counted::Counted(ContextPorts& ports, const ContextId& context) : ports_(ports), context_(context) {
  ports_.job_begins(context_);
}
GraphJob::Counted::~Counted() { ports_.job_ends(context_); }

GraphJob::GraphJob(ContextPorts& ports, caf::actor context, std::shared_ptr<autograd::ContextRecord> record,
                   autograd::PassNumber pass, std::shared_ptr<Engine> engine, std::shared_ptr<rpc::Strand> strand,
                   std::vector<autograd::HeldByWaiter> held)
    : counted_(ports, record->id()),
      executor_(ports.executor()),
      context_(std::move(context)),
      record_(std::move(record)),
      pass_(pass),
      engine_(std::move(engine)),
      strand_(std::move(strand)),
      held_(std::move(held)) {}

void GraphJob::post(void (GraphJob::*job)()) {
  executor_.post([self = shared_from_this(), job] { ((*self).*job)(); });
}

void GraphJob::stop() noexcept {
  stopped_.store(true, std::memory_order_release);
  engine_->abort();
}

std::optional<context_event::Walked> GraphJob::walk(Functions marks, bool in_place) {
  marks_ = std::move(marks);
  if (!in_place || marks_.size() > kNodesInPlace) {
    post(&GraphJob::walk_on);
    return std::nullopt;
  }
  context_event::Walked walked = walk_slice(kNodesInPlace);
  if (!walked.done) post(&GraphJob::walk_on);
  return walked;
}

context_event::Walked GraphJob::walk_slice(std::size_t nodes) {
  context_event::Walked walked{pass_, {}, true, {}};
  for (auto& function : std::exchange(marks_, {})) {
    marked_.push_back(function->message().message);
    walked.outcome = engine_->mark(std::move(function));
    if (!walked.outcome) return walked;
  }
  if (stopped_.load(std::memory_order_acquire)) {
    walked.outcome = Error(Errc::cancelled, "the walk was stopped");
    return walked;
  }
  const auto slice = engine_->walk(nodes);
  walked.done = slice.done;
  walked.found.reserve(slice.found.size());
  for (const auto& recv : slice.found) walked.found.push_back({recv.context, recv.message});
  return walked;
}

void GraphJob::walk_on() {
  context_event::Walked walked = walk_slice(kNodesPerSlice);
  const bool done = walked.done;
  if (done || !walked.found.empty()) caf::anon_send(context_, ContextEvent{std::move(walked)});
  if (!done) post(&GraphJob::walk_on);
}

void GraphJob::run(Functions sources, std::vector<Feed> feeds) {
  marks_ = std::move(sources);
  for (const auto& function : marks_) marked_.push_back(function->message().message);
  feeds_ = std::move(feeds);
  post(&GraphJob::run_slice);
}

void GraphJob::run_slice() {
  const auto strands = record_->strands_of(marked_, strand_);
  if (strands.empty()) return run_nodes();
  if (Result<void> free = check_not_held(strands); !free) {
    context_event::Ran ran;
    ran.pass = pass_;
    ran.done = true;
    ran.outcome = std::move(free);
    caf::anon_send(context_, ContextEvent{std::move(ran)});
    return;
  }
  // The strands are in one order everywhere, so no two slices wait for each other (DA-23). The job keeps them.
  strands[0]->run([self = shared_from_this(), strands] {
    const auto others = std::span(strands).subspan(1);
    const auto kept = rpc::Strand::run_with_all(others, [&self] { self->run_nodes(); });
    // An exclusive method keeps the turn of `kept` while it waits, perhaps for a turn that this job holds: the job
    // gives its turns back and begins the slice again when the method has ended.
    if (kept) kept->run([self, kept] { self->post(&GraphJob::run_slice); });
  });
}

Result<void> GraphJob::check_not_held(const std::vector<std::shared_ptr<rpc::Strand>>& strands) const {
  for (const auto& held : held_) {
    for (const auto& strand : strands) {
      if (strand->object() != held.object) continue;
      return Error(Errc::would_deadlock,
                   "the pass goes through what " + held.name +
                       " recorded, whose turn is kept by an exclusive method that waits for the pass: register that "
                       "method as serial, or let it return before backward");
    }
  }
  return {};
}

void GraphJob::run_nodes() {
  Sink sink;
  context_event::Ran ran;
  ran.pass = pass_;
  const auto report = [&](bool done, Result<void> outcome) {
    ran.produced = std::move(sink.produced);
    ran.done = done;
    ran.outcome = std::move(outcome);
    caf::anon_send(context_, ContextEvent{std::move(ran)});
  };
  bool whole = begun_;
  for (auto& function : std::exchange(marks_, {})) {
    if (const auto marked = engine_->mark(std::move(function)); !marked) return report(true, marked.error());
  }
  while (!whole) {
    const auto slice = engine_->walk(kNodesPerSlice);
    for (const auto& recv : slice.found) {
      if (recv.context == record_->id()) continue;
      return report(true, Error(Errc::foreign_context, "the graph has message " + to_string(recv.message) +
                                                           " of context " + to_string(recv.context)));
    }
    whole = slice.done;
  }
  if (!std::exchange(begun_, true)) {
    engine_->add_spans(record_->spans());
    engine_->set_exchanges(record_->exchanges());
  }
  for (Feed& feed : std::exchange(feeds_, {})) {
    const auto fed = engine_->feed(feed.message, std::move(feed.gradients));
    if (!fed) return report(true, Error(Errc::invalid_gradient, fed.error().text()));
  }
  const auto slice = engine_->run(kNodesPerSlice, sink);
  if (!slice) return report(true, slice.error());
  if (!sink.outcome) return report(true, sink.outcome);
  if (slice->drained) {
    autograd::GradientBook book = engine_->take_staged();
    ran.result = {true, book.bytes()};
    record_->stage(pass_, std::move(book));
  } else {
    ran.result.staged_bytes = engine_->bytes();
  }
  if (slice->awaits_leaves) {
    // All nodes have run; no turn is kept while the exchange goes on.
    if (!sink.produced.empty()) report(false, {});
    return engine_->when_returned([self = shared_from_this()] { self->post(&GraphJob::run_slice); });
  }
  if (slice->idle) return report(true, {});
  if (!sink.produced.empty()) report(false, {});
  post(&GraphJob::run_slice);
}

}  // namespace caftan::actors
