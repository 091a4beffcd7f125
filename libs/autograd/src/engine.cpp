#include "caftan/autograd/internal/engine.hpp"

#include <ATen/ThreadLocalState.h>
#include <c10/core/GradMode.h>
#include <c10/core/InferenceMode.h>
#include <torch/csrc/autograd/anomaly_mode.h>

#include <atomic>
#include <optional>
#include <unordered_map>
#include <utility>

#include "caftan/base/mutex.hpp"
#include "caftan/tensor/internal/torch_errors.hpp"
#include "exchanged_leaves.hpp"
#include "graph_run.hpp"
#include "pass_graph.hpp"
#include "recv_function.hpp"
#include "roots.hpp"
#include "running_pass.hpp"
#include "staged_gradients.hpp"

namespace caftan::autograd {
namespace {

Error walk_first() {
  return Error(Errc::backward_failed, "a pass was run or fed before all that was marked had been walked (DA-4)");
}

}  // namespace

class Engine::State final : private GraphOutputs {
 public:
  explicit State(const EngineOptions& options) : options_(options) { thread_state_.set_grad_mode(false); }

  Result<void> add_roots(std::span<const at::Tensor> roots, std::span<const at::Tensor> gradients);
  void add_spans(std::vector<CodeSpan> spans) { spans_ = std::move(spans); }
  void set_exchanges(std::vector<std::shared_ptr<LeafExchange>> exchanges) {
    leaves_.exchanged.set(std::move(exchanges));
  }
  void when_returned(std::function<void()> ready) { leaves_.exchanged.when_ready(std::move(ready)); }
  Result<void> mark(std::shared_ptr<const SendFunction> send);
  WalkSlice walk(std::size_t nodes);
  Result<void> feed(const AutogradMessageId& message, std::vector<at::Tensor> gradients);
  Result<RunSlice> run(std::size_t nodes, GradientSink& sink);
  GradientBook take_staged();

  void abort() noexcept {
    stop_.store(true, std::memory_order_release);
    leaves_.exchanged.wake();
  }
  const std::string& failed_node() const noexcept { return failed_node_; }
  std::uint64_t bytes() const noexcept { return bytes_.load(std::memory_order_relaxed); }

 private:
  struct Marked {
    std::shared_ptr<const SendFunction> send;
    std::uint32_t source = kNone;  ///< its node, once walked
    bool fed = false;
  };
  struct Fed {
    std::uint32_t source;
    std::vector<at::Tensor> gradients;
    std::uint64_t bytes;
  };
  /// One call of `run` on this thread, where checkpointed segments find the pass.
  class Slice final : public RunningPass {
   public:
    explicit Slice(State& state) : RunningPass(state.options_.context), state_(state) {}
    void book(const at::Tensor& leaf, at::Tensor&& gradient) override {
      state_.stage(leaf, std::move(gradient), state_.run_->running_rank(), true);
    }

   private:
    State& state_;
  };

  void on_leaf(const at::Tensor& leaf, at::Tensor&& gradient, std::uint32_t rank) override {
    stage(leaf, std::move(gradient), rank, false);
  }
  void stage(const at::Tensor& leaf, at::Tensor&& gradient, std::uint32_t rank, bool is_part);
  void on_received(const RecvFunction& function, torch::autograd::variable_list&& gradients) override;

  Result<void> start();
  Result<RunSlice> run_nodes(std::size_t nodes);
  void take_fed();
  Result<void> end_slice(RunSlice& slice);
  Error node_failed(Error error);

  const EngineOptions options_;
  at::ThreadLocalState thread_state_;
  std::atomic<bool> stop_{false};
  std::atomic<bool> has_fed_{false};
  std::atomic<std::uint64_t> bytes_{0};

  base::Mutex mutex_;
  std::unordered_map<AutogradMessageId, Marked> marked_ CAFTAN_GUARDED_BY(mutex_);
  std::vector<Marked*> unwalked_ CAFTAN_GUARDED_BY(mutex_);
  std::vector<Fed> fed_ CAFTAN_GUARDED_BY(mutex_);
  bool closed_ CAFTAN_GUARDED_BY(mutex_) = false;

  /// The members from here on are used without the lock, by one thread at a time: add_roots, walk, run, take_staged.
  Roots roots_;
  std::uint32_t root_ = kNone;
  std::vector<CodeSpan> spans_;
  PassGraph graph_;
  bool expanded_ = false;
  std::optional<GraphRun> run_;
  struct Leaves {
    std::optional<StagedGradients> staged;
    ExchangedLeaves exchanged;
  };
  Leaves leaves_;
  GradientSink* sink_ = nullptr;
  std::optional<Error> failure_;
  std::string failed_node_;
};

Result<void> Engine::State::add_roots(std::span<const at::Tensor> roots, std::span<const at::Tensor> gradients) {
  const at::NoGradGuard no_grad;
  Result<Roots> made = tensor::catch_torch(Errc::bad_arguments, [&] { return make_roots(roots, gradients); });
  if (!made) return made.error();
  roots_ = *std::move(made);
  root_ = graph_.add_root(roots_.edges);
  return {};
}

Result<void> Engine::State::mark(std::shared_ptr<const SendFunction> send) {
  const base::LockGuard lock(mutex_);
  if (closed_) return Error(Errc::backward_failed, "a message was marked while the pass runs already (DA-4)");
  const auto [found, is_new] = marked_.try_emplace(send->message().message);
  if (!is_new) return {};
  found->second.send = std::move(send);
  unwalked_.push_back(&found->second);
  return {};
}

Engine::WalkSlice Engine::State::walk(std::size_t nodes) {
  {
    const base::LockGuard lock(mutex_);
    for (Marked* marked : std::exchange(unwalked_, {})) marked->source = graph_.add_send(*marked->send);
  }
  expanded_ = graph_.expand(nodes);
  WalkSlice slice;
  for (const RecvFunction* node : std::exchange(graph_.found, {})) slice.found.push_back(node->message());
  const base::LockGuard lock(mutex_);
  slice.done = expanded_ && unwalked_.empty();
  return slice;
}

Result<void> Engine::State::feed(const AutogradMessageId& message, std::vector<at::Tensor> gradients) {
  const base::LockGuard lock(mutex_);
  const auto found = marked_.find(message);
  if (found == marked_.end()) {
    return Error(Errc::malformed_payload, "gradients for message " + to_string(message) + ", which is not marked");
  }
  if (found->second.source == kNone) return walk_first();
  const std::shared_ptr<const SendFunction> send = found->second.send;
  if (found->second.fed) {
    return Error(Errc::malformed_payload, "gradients for message " + to_string(message) + " a second time");
  }
  Result<void> fits = send->check(gradients);
  if (!fits) return fits;
  found->second.fed = true;
  std::uint64_t bytes = 0;
  for (const at::Tensor& gradient : gradients) bytes += gradient_bytes(gradient);
  bytes_.fetch_add(bytes, std::memory_order_relaxed);
  fed_.push_back({found->second.source, std::move(gradients), bytes});
  has_fed_.store(true, std::memory_order_release);
  return {};
}

/// Counts dependencies. Only the nodes that are known by now take part in the run.
Result<void> Engine::State::start() {
  {
    const base::LockGuard lock(mutex_);
    if (!unwalked_.empty() || (!expanded_ && !graph_.nodes.empty())) return walk_first();
    closed_ = true;
  }
  graph_.close(SpanIndex(std::move(spans_)));
  run_.emplace(graph_, options_.keep_graph);
  leaves_.staged.emplace(graph_.ranked());
  if (root_ != kNone) run_->provide(root_, std::move(roots_.gradients));
  return leaves_.exchanged.begin();
}

Result<Engine::RunSlice> Engine::State::run(std::size_t nodes, GradientSink& sink) {
  if (failure_) return *failure_;
  if (!run_) {
    Result<void> started = start();
    if (!started) {
      if (run_) failure_ = started.error();
      return started.error();
    }
  }
  const c10::AutoGradMode no_graph(false);
  const Slice slice(*this);
  sink_ = &sink;
  Result<RunSlice> ran = run_nodes(nodes);
  if (ran) {
    if (Result<void> ended = end_slice(*ran); !ended) ran = ended.error();
  }
  if (!ran) {
    failure_ = ran.error();
    leaves_.exchanged.abandon(*failure_);
  }
  return ran;
}

/// Says what the slice has come to. Once all nodes have run, the pass waits for the leaves that are exchanged.
Result<void> Engine::State::end_slice(RunSlice& slice) {
  slice.drained = run_->drained();
  if (slice.drained && !leaves_.exchanged.empty()) {
    const Result<bool> returned =
        tensor::catch_torch(Errc::backward_failed, [&] { return leaves_.exchanged.finish(*leaves_.staged); });
    if (!returned) return returned.error();
    slice.awaits_leaves = !*returned;
    slice.drained = *returned;
  }
  slice.idle = slice.idle || slice.drained;
  return {};
}

/// Runs nodes; what nodes and hooks throw becomes an Error here. From the first node on that runs code which is not
/// this library's, the thread has the state of the thread that began the pass; setting it costs more than a small node.
Result<Engine::RunSlice> Engine::State::run_nodes(std::size_t nodes) {
  RunSlice slice;
  std::optional<at::ThreadLocalStateGuard> of_pass;
  try {
    for (; slice.nodes < nodes; ++slice.nodes) {
      if (stop_.load(std::memory_order_acquire)) return Error(Errc::cancelled, "the pass was stopped");
      if (has_fed_.load(std::memory_order_acquire)) take_fed();
      if (!of_pass && run_->next_runs_code()) of_pass.emplace(thread_state_);
      if (!run_->step(*this)) {
        slice.idle = true;
        break;
      }
    }
  } catch (const RpcException& error) {
    return node_failed(error.error());
  } catch (...) {
    return node_failed(tensor::torch_failure(Errc::backward_failed));
  }
  return slice;
}

Error Engine::State::node_failed(Error error) {
  torch::autograd::Node* const node = run_->running();
  if (!node) return error;
  failed_node_ = node->name();
  if (torch::autograd::AnomalyMode::is_enabled()) node->metadata()->print_stack(failed_node_);
  std::shared_ptr<const Error> cause;
  if (error.code() != Errc::backward_failed) cause = std::make_shared<const Error>(error);
  std::string text = "node " + failed_node_ + ": " + error.text();
  // libtorch has no exception type for this error, and its text does not say that an optimizer step may be the cause.
  if (text.find("modified by an inplace operation") != std::string::npos) {
    text += " A graph from before an optimizer's step is stale: run the forward again.";
  }
  // libtorch's text names the option as Python writes it.
  if (text.find("retain_graph=True") != std::string::npos) {
    text += " In C++: context.backward({loss}, {.retain_graph = true}).";
  }
  return Error(Errc::backward_failed, std::string(), std::move(text), std::move(cause));
}

void Engine::State::take_fed() {
  std::vector<Fed> fed;
  {
    const base::LockGuard lock(mutex_);
    fed.swap(fed_);
    has_fed_.store(false, std::memory_order_relaxed);
  }
  for (Fed& one : fed) {
    bytes_.fetch_sub(one.bytes, std::memory_order_relaxed);
    run_->provide(one.source, std::move(one.gradients));
  }
}

void Engine::State::stage(const at::Tensor& leaf, at::Tensor&& gradient, std::uint32_t rank, bool is_part) {
  if (leaves_.exchanged.take(leaf, gradient, rank, is_part)) return;
  bytes_.fetch_add(gradient_bytes(gradient), std::memory_order_relaxed);
  leaves_.staged->add(leaf, std::move(gradient), rank);
}

void Engine::State::on_received(const RecvFunction& function, torch::autograd::variable_list&& gradients) {
  sink_->on_gradients(function.message(), std::move(gradients));
}

GradientBook Engine::State::take_staged() {
  if (!leaves_.staged) return {};
  const c10::AutoGradMode no_graph(false);
  bytes_.store(0, std::memory_order_relaxed);
  return leaves_.staged->take();
}

Result<std::unique_ptr<Engine>> Engine::begin(const EngineOptions& options) {
  if (c10::InferenceMode::is_enabled()) {
    return Error(Errc::bad_arguments, "backward inside InferenceMode: its gradients could not be used; leave the mode");
  }
  return std::unique_ptr<Engine>(new Engine(std::make_unique<State>(options)));
}

Engine::Engine(std::unique_ptr<State> state) : state_(std::move(state)) {}
Engine::~Engine() = default;

Result<void> Engine::add_roots(std::span<const at::Tensor> roots, std::span<const at::Tensor> gradients) {
  return state_->add_roots(roots, gradients);
}
void Engine::add_spans(std::vector<CodeSpan> spans) { state_->add_spans(std::move(spans)); }
void Engine::set_exchanges(std::vector<std::shared_ptr<LeafExchange>> exchanges) {
  state_->set_exchanges(std::move(exchanges));
}
void Engine::when_returned(std::function<void()> ready) { state_->when_returned(std::move(ready)); }
Result<void> Engine::mark(std::shared_ptr<const SendFunction> send) { return state_->mark(std::move(send)); }
Engine::WalkSlice Engine::walk(std::size_t nodes) { return state_->walk(nodes); }
Result<void> Engine::feed(const AutogradMessageId& message, std::vector<at::Tensor> gradients) {
  return state_->feed(message, std::move(gradients));
}
Result<Engine::RunSlice> Engine::run(std::size_t nodes, GradientSink& sink) { return state_->run(nodes, sink); }
void Engine::abort() noexcept { state_->abort(); }
const std::string& Engine::failed_node() const noexcept { return state_->failed_node(); }
std::uint64_t Engine::bytes() const noexcept { return state_->bytes(); }
GradientBook Engine::take_staged() { return state_->take_staged(); }

bool Engine::is_inside_pass_of(const ContextId& context) noexcept {
  const RunningPass* pass = RunningPass::current();
  while (pass && pass->context() != context) pass = pass->outer();
  return pass != nullptr;
}

}  // namespace caftan::autograd
