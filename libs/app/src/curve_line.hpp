#pragma once

#include <string>
#include <string_view>

#include "caftan/app/internal/curve.hpp"

namespace caftan::app {

inline constexpr std::string_view kCurveHeading = "step,name,value\r\n";

inline std::string curve_line(const CurveRow& row) {
  return std::to_string(row.step) + "," + csv_field(row.name) + "," + csv_number(row.value) + "\r\n";
}

}  // namespace caftan::app
