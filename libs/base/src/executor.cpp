#include "caftan/base/executor.hpp"

namespace caftan::base {

thread_local constinit unsigned UserCode::depth_ = 0;

}  // namespace caftan::base
