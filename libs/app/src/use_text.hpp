/// Words for numbers of replicas.
#pragma once

#include <string>

namespace caftan::app {

/// Returns "a counter", "an actor".
std::string with_article(const std::string& type);

/// Returns "exactly 1", "at least 2", "at most 3" or "2..4".
std::string count_text(int min, int max);

}  // namespace caftan::app
