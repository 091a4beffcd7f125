// In builds with ThreadSanitizer only. Debian's CAF is not instrumented, so the sanitizer does not see that whoever
// gives back the last reference to an actor comes after all others, and takes the end of each actor for a race.
// These are CAF 0.17.6's own definitions of the two functions, compiled with the sanitizer; the dynamic linker prefers
// them. With them no report of CAF has to be suppressed.
#include <caf/actor_control_block.hpp>

namespace caf {

void intrusive_ptr_release_weak(actor_control_block* x) {
  if (x->weak_refs.fetch_sub(1, std::memory_order_acq_rel) == 1) x->block_dtor(x);
}

void intrusive_ptr_release(actor_control_block* x) {
  if (x->strong_refs.fetch_sub(1, std::memory_order_acq_rel) != 1) return;
  x->data_dtor(x->get());
  intrusive_ptr_release_weak(x);
}

}  // namespace caf
