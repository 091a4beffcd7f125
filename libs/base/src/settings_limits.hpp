/// The texts about what a field accepts, for messages, help and reference.
#pragma once

#include <string>

#include "caftan/base/settings.hpp"

namespace caftan {

/// Returns "0..1", "0..<1", "> 0", "1.."; "" if there is no range worth showing.
std::string range_text(const SettingField& field);
/// Returns the range as a condition for a message: "0..1", "> 0", ">= 1".
/// @param implied  also name ends that only come from the C++ type
std::string condition_text(const SettingField& field, bool implied);
/// Returns "two_calls | fused"; @param notes  with the meaning of each in brackets
std::string choices_text(const SettingField& field, bool notes);
/// Returns a value as TOML writes it. Precondition: it is not empty.
std::string value_text(const SettingField& field, const SettingValue& value);
/// Returns the field's value as prose writes it: no quotes; "none" if it is empty.
std::string plain_text(const SettingField& field);

}  // namespace caftan
