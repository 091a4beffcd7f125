/// All that is wrong with a settings file: errors and warnings with their places, rendered in the order of the file as
/// `file:line:column: error: text`.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "caftan/base/error.hpp"

namespace caftan {

/// Where something stands: in the file, on the command line, or (default) in the file as a whole.
struct SettingsPlace {
  int line = 0;             ///< from 1; 0 = the whole file
  int column = 0;           ///< from 1, in characters
  int length = 1;           ///< characters to underline
  int override_index = -1;  ///< >= 0: the number of the override in which the place is; then it has no line
};

/// All that is wrong with one file. Threads: one at a time.
class Diagnostics {
 public:
  /// Whether an entry keeps the file from being used.
  enum class Severity { error, warning };
  /// One error or warning with its place.
  struct Entry {
    Severity severity = Severity::error;
    SettingsPlace place;
    std::string text;
    std::string hint;  ///< shown beside the underline only
  };
  /// The most errors, and the most warnings, that `render` shows. Further errors are counted.
  static constexpr std::size_t kShown = 20;

  /// @param file  the name to show
  explicit Diagnostics(std::string file = "") : file_(std::move(file)) {}

  const std::string& file() const noexcept { return file_; }
  /// Gives the text whose lines snippets quote.
  void set_source(std::string text) { source_ = std::move(text); }
  /// Gives the overrides of the command line, which snippets quote by their number.
  void set_overrides(std::vector<std::string> overrides) { overrides_ = std::move(overrides); }

  /// Adds an error.
  void error(const SettingsPlace& place, std::string text, std::string hint = "");
  /// Adds a warning.
  void warning(const SettingsPlace& place, std::string text, std::string hint = "");

  /// Returns whether there is no error; warnings do not count.
  bool ok() const noexcept { return errors_ == 0; }
  std::size_t errors() const noexcept { return errors_; }
  /// Returns all entries: first those of the whole file, then by line and column, then the command line's.
  const std::vector<Entry>& entries() const noexcept { return entries_; }

  /// Returns one line per entry and, after errors, the line that counts them. Empty if there is nothing to say.
  /// @param snippets  also quote the line and underline the place: for terminals
  std::string render(bool snippets) const;
  /// Returns invalid_config with the first error's line and how many follow. Precondition: !ok().
  Error to_error() const;

 private:
  void add(Entry entry);
  std::string headline(const Entry& entry) const;
  std::string snippet(const Entry& entry) const;

  std::string file_;
  std::string source_;
  std::vector<std::string> overrides_;
  std::vector<Entry> entries_;
  std::size_t errors_ = 0;
};

/// Returns the candidate nearest to `name` (Damerau-Levenshtein): at most a third of its characters differ, and never
/// more than 3. Without one, the first that begins with `name`, of 4 characters at least; else "".
std::string nearest(std::string_view name, const std::vector<std::string>& candidates);
/// Returns `; did you mean 'x'?` or "".
std::string did_you_mean(std::string_view name, const std::vector<std::string>& candidates);

}  // namespace caftan
