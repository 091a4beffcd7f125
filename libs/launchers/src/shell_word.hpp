/// Words for a shell.
#pragma once

#include <string>

namespace caftan::launchers {

/// Returns a word of a shell that stands for the text as it is.
std::string shell_word(const std::string& text);

}  // namespace caftan::launchers
