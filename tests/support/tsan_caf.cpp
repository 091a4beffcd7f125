// In builds with ThreadSanitizer only. Debian's CAF is not instrumented. The sanitizer does not see four orders that
// CAF keeps, and takes each for a race: a message is read after it was put into the mailbox; an actor that ends frees
// the messages in its mailbox after they were put there; an actor handles a message after it has handled the one
// before, on whichever thread; the last reference to an actor is given back after all others. The dynamic linker
// prefers the functions below, which do what CAF 0.17.6 does and say so to the sanitizer. With them no report of CAF
// has to be suppressed; of libtorch some are.
#include <dlfcn.h>
#include <sanitizer/tsan_interface.h>

#include <caf/actor_control_block.hpp>
#include <caf/scheduled_actor.hpp>

namespace caf {

void intrusive_ptr_release_weak(actor_control_block* x) {
  if (x->weak_refs.fetch_sub(1, std::memory_order_acq_rel) == 1) x->block_dtor(x);
}

void intrusive_ptr_release(actor_control_block* x) {
  if (x->strong_refs.fetch_sub(1, std::memory_order_acq_rel) != 1) return;
  x->data_dtor(x->get());
  intrusive_ptr_release_weak(x);
}

namespace {

/// An address that stands for an actor's mailbox, another one than the actor's own.
void* mailbox_of(scheduled_actor* actor) { return reinterpret_cast<char*>(actor) + 1; }

}  // namespace

void scheduled_actor::enqueue(mailbox_element_ptr message, execution_unit* unit) {
  using Enqueue = void (*)(scheduled_actor*, mailbox_element_ptr, execution_unit*);
  static const auto real =
      reinterpret_cast<Enqueue>(::dlsym(RTLD_NEXT,
                                        "_ZN3caf15scheduled_actor7enqueueESt10unique_ptrINS_15mailbox_elementENS_"
                                        "6detail8disposerEEPNS_14execution_unitE"));
  ::__tsan_release(message.get());
  ::__tsan_release(mailbox_of(this));
  real(this, std::move(message), unit);
}

scheduled_actor::message_category scheduled_actor::categorize(mailbox_element& message) {
  using Categorize = message_category (*)(scheduled_actor*, mailbox_element&);
  static const auto real =
      reinterpret_cast<Categorize>(::dlsym(RTLD_NEXT, "_ZN3caf15scheduled_actor10categorizeERNS_15mailbox_elementE"));
  ::__tsan_acquire(&message);
  ::__tsan_acquire(this);
  const message_category category = real(this, message);
  ::__tsan_release(this);
  return category;
}

bool scheduled_actor::cleanup(error&& reason, execution_unit* unit) {
  using Cleanup = bool (*)(scheduled_actor*, error&&, execution_unit*);
  static const auto real = reinterpret_cast<Cleanup>(
      ::dlsym(RTLD_NEXT, "_ZN3caf15scheduled_actor7cleanupEONS_5errorEPNS_14execution_unitE"));
  ::__tsan_acquire(mailbox_of(this));
  return real(this, std::move(reason), unit);
}

invoke_message_result scheduled_actor::consume(mailbox_element& message) {
  using Consume = invoke_message_result (*)(scheduled_actor*, mailbox_element&);
  static const auto real =
      reinterpret_cast<Consume>(::dlsym(RTLD_NEXT, "_ZN3caf15scheduled_actor7consumeERNS_15mailbox_elementE"));
  ::__tsan_acquire(this);
  const invoke_message_result result = real(this, message);
  ::__tsan_release(this);
  return result;
}

}  // namespace caf

/// Suppressed: libtorch frees what several threads have held after the last of them has let go of it, and makes its
/// default generator once, at its first use. It does so with atomic operations and guards, which the sanitizer does not
/// see where libtorch's own code runs them. What these lines hide of ours, a tensor that is freed while another thread
/// uses it, the address sanitizer reports.
extern "C" const char* __tsan_default_suppressions() {
  return "race:torch::autograd::AutogradMeta::~AutogradMeta\n"  // the accumulator of a gradient
         "race:torch::autograd::impl::grad_accumulator\n"       // likewise
         "race:torch::autograd::DifferentiableViewMeta\n"       // likewise
         "race:torch::autograd::SavedVariable::reset_data\n"    // what a pass needed
         "race:c10::TensorImpl::~TensorImpl\n"                  // a storage, held by what is being sent
         "race:c10d::\n"                                        // an operation of Gloo and its future
         "race:c10::ivalue::Future\n"                           // likewise
         "race:at::detail::createCPUGenerator";
}
