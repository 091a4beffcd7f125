#include "cqn/register.hpp"

#include "caftan/caftan.hpp"
#include "cqn/cqn.hpp"

namespace caftan::cqn {

void register_cqn(Program& program) { sim::add<Cqn>(program, "cqn"); }

}  // namespace caftan::cqn
