/// Names in the texts of errors.
#pragma once

#include <string>
#include <string_view>

namespace caftan::net {

inline std::string in_quotes(std::string_view text) { return "\"" + std::string(text) + "\""; }

}  // namespace caftan::net
