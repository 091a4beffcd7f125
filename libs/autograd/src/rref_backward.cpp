#include "caftan/autograd/rref_backward.hpp"

#include <chrono>
#include <utility>

#include "caftan/autograd/internal/context_record.hpp"
#include "caftan/rpc/hosted_object.hpp"
#include "caftan/rpc/registry.hpp"

namespace caftan::autograd {
namespace {

/// BackwardOptions as they travel.
struct PassOrder {
  Mode mode = Mode::smart;
  bool keep = false;
  std::int64_t timeout_ns = 0;  // 0 = none
  template <class Archive>
  void serialize(Archive& archive, unsigned) {
    archive& mode& keep& timeout_ns;
  }
};

Future<void> refuse(Error error) { return make_ready_future<void>(std::move(error)); }

Future<void> start_here(const ContextView& context, const RRef<at::Tensor>& root, const BackwardOptions& options) {
  auto object = rpc::wait_for_local(root.handle(), {});
  if (!object) return refuse(object.error());
  auto* const tensor = (*object)->as<at::Tensor>();
  if (!tensor) return refuse(Error(Errc::wrong_type, "the root of a backward pass is no tensor"));
  Promise<void> promise(context.record()->caller());
  Future<void> done = promise.future();
  // The pass runs in turn with the object whose parts the tensor's graph reads.
  (*object)->strand().run([context, options, keep = *object, tensor, promise = std::move(promise)]() mutable {
    auto end = context.backward_async({*tensor}, options)
                   .then([promise = std::move(promise)](const Result<void>& outcome) mutable { promise.set(outcome); });
    end.forget();
  });
  return done;
}

Future<void> start_for_caller(const CallInfo& info, const RRef<at::Tensor>& root, const PassOrder& order) {
  auto record = std::static_pointer_cast<ContextRecord>(info.autograd_context.lock());
  if (!record) return refuse(Error(Errc::unknown_context, "a backward pass outside of any autograd context"));
  BackwardOptions options;
  options.mode = order.mode;
  options.retain_graph = order.keep;
  if (order.timeout_ns > 0) options.timeout = std::chrono::nanoseconds(order.timeout_ns);
  return start_here(ContextView(std::move(record)), root, options);
}

constexpr RemoteFunction<Future<void>(const CallInfo&, const RRef<at::Tensor>&, const PassOrder&)> kBackward{
    "caftan.autograd.backward"};

}  // namespace

Future<void> backward_async(const ContextView& context, const RRef<at::Tensor>& root, const BackwardOptions& options) {
  if (!root) return refuse(Error(Errc::bad_arguments, "the root of a backward pass is an empty RRef"));
  if (!options.gradients.empty()) {
    return refuse(Error(Errc::bad_arguments, "a root that is an RRef is a scalar: it takes no gradient"));
  }
  if (root.is_owner()) return start_here(context, root, options);
  if (options.timeout && *options.timeout <= base::Duration::zero()) {
    return refuse(Error(Errc::bad_arguments, "the timeout of backward is not positive; leave it out for none"));
  }
  PassOrder order{options.mode, options.retain_graph, 0};
  if (options.timeout) order.timeout_ns = std::chrono::nanoseconds(*options.timeout).count();
  // This request has no time-out: only that of the pass, if it has one, ends it.
  const CallSite site(context.record()->caller(), {.timeout = base::Duration::zero()});
  return context.bind([&] { return site.rpc_async(kBackward, root.owner(), root, order); })();
}

void add_rref_backward(Registry& registry) { registry.add(kBackward, &start_for_caller); }

}  // namespace caftan::autograd
