#include "caftan/app/internal/csv.hpp"

#include <array>
#include <charconv>
#include <cmath>
#include <system_error>
#include <utility>

namespace caftan::app {
namespace {

template <class Number>
std::optional<Number> parsed(std::string_view field) {
  Number value{};
  const char* const end = field.data() + field.size();
  const auto result = std::from_chars(field.data(), end, value);
  if (result.ec != std::errc() || result.ptr != end) return std::nullopt;
  return value;
}

}  // namespace

std::string csv_number(double value) {
  if (std::isnan(value)) return "nan";  // whatever its sign
  std::array<char, 32> buffer{};
  const auto result = std::to_chars(buffer.data(), buffer.data() + buffer.size(), value);
  return {buffer.data(), result.ptr};
}

std::optional<double> number_of(std::string_view field) { return parsed<double>(field); }
std::optional<std::int64_t> integer_of(std::string_view field) { return parsed<std::int64_t>(field); }

std::string csv_field(std::string_view text) {
  if (text.find_first_of(",\"\r\n") == std::string_view::npos) return std::string(text);
  std::string quoted = "\"";
  for (const char c : text) quoted += c == '"' ? std::string("\"\"") : std::string(1, c);
  return quoted + "\"";
}

Result<bool> CsvReader::next(std::vector<std::string>& fields) {
  constexpr int kEnd = std::char_traits<char>::eof();
  std::streambuf& bytes = *from_->rdbuf();
  fields.clear();
  line_ = next_line_;
  if (bytes.sgetc() == kEnd) return false;
  std::string field;
  bool is_quoted = false;
  for (;;) {
    const int c = bytes.sbumpc();
    if (c == kEnd && is_quoted) return Error(Errc::malformed_payload, "a quote is not closed");
    if (field.size() > kMostField) {
      return Error(Errc::malformed_payload, "a field has more than " + std::to_string(kMostField) + " bytes");
    }
    if (c == '\n') ++next_line_;
    if (is_quoted) {
      if (c != '"') {
        field += static_cast<char>(c);
      } else if (bytes.sgetc() == '"') {
        field += static_cast<char>(bytes.sbumpc());
      } else {
        is_quoted = false;
      }
    } else if (c == kEnd || c == '\n') {
      break;
    } else if (c == '"' && field.empty()) {
      is_quoted = true;
    } else if (c == ',') {
      fields.push_back(std::exchange(field, {}));
    } else if (c != '\r') {
      field += static_cast<char>(c);
    }
  }
  fields.push_back(std::move(field));
  return true;
}

}  // namespace caftan::app
