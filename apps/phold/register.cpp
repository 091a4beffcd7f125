#include "phold/register.hpp"

#include "caftan/caftan.hpp"
#include "phold/phold.hpp"

namespace caftan::phold {

void register_phold(Program& program) { sim::add<Phold>(program, "phold"); }

}  // namespace caftan::phold
