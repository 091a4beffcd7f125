#include "caftan/autograd/context.hpp"

#include "caftan/autograd/internal/context_host.hpp"
#include "caftan/autograd/internal/context_record.hpp"
#include "caftan/autograd/internal/recording_hook.hpp"

namespace caftan::autograd {

namespace {

Result<ContextHost*> host_of(rpc::Caller& caller) {
  if (auto* hook = dynamic_cast<RecordingHook*>(caller.hook())) return &hook->host();
  return Error(Errc::unsupported, caller.name(), "this worker has no distributed autograd");
}

bool is_same(const std::weak_ptr<void>& one, const std::shared_ptr<void>& other) noexcept {
  return !one.owner_before(other) && !other.owner_before(one);
}

}  // namespace

// ---- ContextView

ContextId ContextView::id() const noexcept { return record_->id(); }

Result<Gradients> ContextView::try_gradients() const { return record_->gradients(); }

Future<void> ContextView::backward_async(const std::vector<at::Tensor>& roots, const BackwardOptions& options) const {
  const auto refuse = [](Error error) { return make_ready_future<void>(std::move(error)); };
  if (!record_) return refuse(Error(Errc::bad_arguments, "this handle of an autograd context is empty, or moved away"));
  const auto caller = record_->caller().lock();
  if (!caller) return refuse(Error(Errc::shut_down, "the worker has ended"));
  if (Engine::is_inside_pass_of(id())) {
    return refuse(Error(Errc::reentrant_pass, caller->name(),
                        "backward from inside a node of autograd context " + to_string(id()) +
                            ", whose pass waits for that node: recompute with caftan::autograd::checkpoint, or use "
                            "another context"));
  }
  if (const Ambient* const ambient = Ambient::current();
      ambient && ambient->turn && ambient->turn->is_held() && !ambient->turn->yields()) {
    return refuse(Error(Errc::would_deadlock, caller->name(),
                        "backward from an exclusive method: the pass needs the turn that the method keeps; register it "
                        "as serial"));
  }
  if (options.timeout && *options.timeout <= base::Duration::zero()) {
    return refuse(Error(Errc::bad_arguments, "the timeout of backward is not positive; leave it out for none"));
  }
  // Checked before the roots: once the context is over, an error about the roots would be misleading.
  if (const auto open = record_->check_open(); !open) return refuse(open.error().at(caller->name()));
  auto engine = Engine::begin({id(), options.retain_graph});
  if (!engine) return refuse(engine.error().at(caller->name()));
  const Result<void> rooted = (*engine)->add_roots(roots, options.gradients);
  if (!rooted) return refuse(rooted.error().at(caller->name()));
  PassStart start;
  start.engine = *std::move(engine);
  start.mode = options.mode;
  start.keep = options.retain_graph;
  start.strand = rpc::Strand::held_here();
  if (const Ambient* const ambient = Ambient::current(); ambient && ambient->held) {
    for (const HeldObject& object : *ambient->held) {
      if (!object.is_over()) start.held.push_back({object.id, object.name});
    }
    if (start.held.size() > kMostHeld) {
      return refuse(Error(Errc::would_deadlock, caller->name(), "backward below more than 64 exclusive methods"));
    }
  }
  if (options.timeout) {
    const base::TimePoint now = caller->executor().clock().now();
    if (*options.timeout < base::kNever - now) start.deadline = now + *options.timeout;
  }
  return record_->host().start_pass(record_, std::move(start));
}

Ambient ContextView::bound_ambient() const {
  Ambient ambient = Ambient::capture();
  const bool inside = is_same(ambient.autograd_context, record_);
  if (!inside) ambient.order = {record_->next_binding(), 0};
  ambient.autograd_context = record_;
  return ambient;
}

// ---- Context

Result<Context> Context::try_make(const CallSite& site) {
  const auto caller = site.alive();
  if (!caller) return caller.error();
  const auto host = host_of(**caller);
  if (!host) return host.error();
  Ambient& ambient = Ambient::of_thread();
  if (const auto around = std::static_pointer_cast<ContextRecord>(ambient.autograd_context.lock());
      around && !around->is_over()) {
    return Error(Errc::bad_arguments, (*caller)->name(),
                 "this code runs in autograd context " + to_string(around->id()) +
                     " already: contexts do not nest; end that one first, or use Context::current");
  }
  auto record = (*host)->create();
  if (!record) return record.error();
  Scope scope{&ambient, std::this_thread::get_id(), ambient.autograd_context, ambient.order};
  ambient.autograd_context = *record;
  ambient.order = {};
  (*record)->set_depth(ambient.depth);
  (*record)->begin_span(0);
  return Context(*std::move(record), std::move(scope));
}

Context& Context::operator=(Context&& other) noexcept {
  if (this == &other) return *this;
  end();
  record_ = std::move(other.record_);
  scope_ = std::move(other.scope_);
  return *this;
}

void Context::end() noexcept {
  const auto record = std::move(record_);
  record_ = nullptr;
  if (!record) return;
  if (scope_.thread == std::this_thread::get_id() && Ambient::current() == scope_.ambient &&
      is_same(scope_.ambient->autograd_context, record)) {
    scope_.ambient->autograd_context = scope_.previous;
    scope_.ambient->order = scope_.previous_order;
  }
  record->close();
}

Result<ContextView> Context::try_current(const CallSite& site) {
  const auto caller = site.alive();
  if (!caller) return caller.error();
  const auto host = host_of(**caller);
  if (!host) return host.error();
  const Ambient* const ambient = Ambient::current();
  const std::weak_ptr<void> around = ambient ? ambient->autograd_context : std::weak_ptr<void>();
  if (is_same(around, nullptr)) {
    return Error(
        Errc::unknown_context, (*caller)->name(),
        "this code runs in no autograd context: make one with autograd::Context context(worker), and on threads "
        "of one's own use context.bind");
  }
  auto record = std::static_pointer_cast<ContextRecord>(around.lock());
  if (!record || record->is_over()) {
    return Error(Errc::context_released, (*caller)->name(), "the autograd context that this code runs in has ended");
  }
  if (&record->host() != *host) {
    return Error(Errc::foreign_context, (*caller)->name(),
                 "autograd context " + to_string(record->id()) + " belongs to another worker of this process");
  }
  return ContextView(std::move(record));
}

}  // namespace caftan::autograd
