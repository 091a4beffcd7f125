/// The CSV of a run's files (RFC 4180): numbers that read back bit for bit in every locale, fields in quotes where they
/// need it, and a reader that reports line numbers.
#pragma once

#include <cstddef>
#include <cstdint>
#include <istream>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "caftan/base/result.hpp"

namespace caftan::app {

/// Returns the shortest text that reads back as the same number; for a number that is not finite "nan", "inf" or
/// "-inf".
std::string csv_number(double value);
/// Returns the number of a whole field; nothing if it is none.
std::optional<double> number_of(std::string_view field);
std::optional<std::int64_t> integer_of(std::string_view field);
/// Returns the text as a field, in quotes if it has commas, quotes or line breaks.
std::string csv_field(std::string_view text);

/// Reads a stream record by record; the stream must outlive it. Threads: one.
class CsvReader {
 public:
  /// Bytes of a field; a longer one comes from a quote that is not closed.
  static constexpr std::size_t kMostField = 64 * 1024;

  explicit CsvReader(std::istream& from) noexcept : from_(&from) {}
  /// Replaces `fields` by the fields of the next record. Returns false at the end. Errors: malformed_payload (a quote
  /// that is not closed, a field beyond kMostField).
  Result<bool> next(std::vector<std::string>& fields);
  /// Returns the line, from 1, in which the record of the last `next` begins.
  std::size_t line() const noexcept { return line_; }

 private:
  std::istream* from_;
  std::size_t line_ = 0;
  std::size_t next_line_ = 1;
};

}  // namespace caftan::app
