#include "caftan/base/executor.hpp"

namespace caftan {

thread_local constinit unsigned UserCode::depth_ = 0;

}  // namespace caftan
