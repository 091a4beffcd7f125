#include "launch/process_title.hpp"

#include <sys/prctl.h>

#include <algorithm>
#include <cstring>

namespace caftan::actors {

ProcessTitle::ProcessTitle(int argc, char** argv) : begin_(argc > 1 ? argv[1] : nullptr) {
  // The system puts the words one behind the other; words that a program has put in their place stand elsewhere.
  for (int i = 1; i < argc && argv[i] == begin_ + size_; ++i) size_ += std::strlen(argv[i]) + 1;
}

void ProcessTitle::set(const std::string& title, const std::string& name) const {
  ::prctl(PR_SET_NAME, name.c_str());
  if (size_ == 0) return;
  std::memset(begin_, 0, size_);
  std::memcpy(begin_, title.data(), std::min(title.size(), size_ - 1));
}

}  // namespace caftan::actors
