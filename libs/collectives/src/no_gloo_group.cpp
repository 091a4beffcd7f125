#include "gloo_group.hpp"

namespace caftan::collectives {

bool has_gloo() noexcept { return false; }

Result<std::shared_ptr<Collectives>> make_gloo_group(const std::shared_ptr<Group>&, std::shared_ptr<Collectives>,
                                                     base::Duration) {
  return Error(Errc::unsupported, "this build has no backend gloo");
}

}  // namespace caftan::collectives
