// In builds with ThreadSanitizer only. Debian's CAF is not instrumented. The sanitizer does not see three orders that
// CAF keeps, and takes each for a race: a message is read after it was put into the mailbox; an actor handles a message
// after it has handled the one before, on whichever thread; the last reference to an actor is given back after all
// others. The dynamic linker prefers the functions below, which do what CAF 0.17.6 does and say so to the sanitizer.
// With them no report of CAF has to be suppressed; of libtorch two are.
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

void scheduled_actor::enqueue(mailbox_element_ptr message, execution_unit* unit) {
  using Enqueue = void (*)(scheduled_actor*, mailbox_element_ptr, execution_unit*);
  static const auto real =
      reinterpret_cast<Enqueue>(::dlsym(RTLD_NEXT,
                                        "_ZN3caf15scheduled_actor7enqueueESt10unique_ptrINS_15mailbox_elementENS_"
                                        "6detail8disposerEEPNS_14execution_unitE"));
  ::__tsan_release(message.get());
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

/// Suppressed: libtorch frees a gradient accumulator, or the counter of its holders, after the last holder has let it
/// go. Our code and libtorch count the holders down with atomic operations, but the sanitizer does not see those of
/// libtorch.
extern "C" const char* __tsan_default_suppressions() {
  return "race:torch::autograd::AutogradMeta::~AutogradMeta\nrace:torch::autograd::impl::grad_accumulator";
}
