// In builds with ThreadSanitizer only. Debian's CAF is not instrumented: the sanitizer sees neither that a message
// which was put into a mailbox is read after that, nor that the thread that gives back the last reference to an actor
// comes after all others, and takes both for races. The dynamic linker prefers the functions below, which do what CAF
// 0.17.6 does and say so to the sanitizer. With them no report of CAF has to be suppressed; of libtorch one is.
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
  return real(this, message);
}

}  // namespace caf

/// The last holder of a tensor gives back its gradient accumulator's count, the others have done so with atomic
/// operations of our code or of libtorch's. Those of libtorch, which is not instrumented, the sanitizer does not see.
extern "C" const char* __tsan_default_suppressions() { return "race:torch::autograd::AutogradMeta::~AutogradMeta"; }
