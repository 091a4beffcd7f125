/// A text cut into rows that lie side by side, and the windows over them for truncated backpropagation through time.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <vector>

#include "caftan/base/result.hpp"

namespace caftan::rnn_lm {

struct Window {
  at::Tensor inputs;    ///< [T, B], int64
  at::Tensor targets;   ///< [T, B], int64: the character after each input
  bool starts = false;  ///< the rows begin here: there is no state from the window before
};

/// Returns whether a text of `size` characters has a whole window of `rows` side by side, `length` long.
/// Errors: invalid_config (it has not; says how long it must be).
Result<void> check_room(std::int64_t size, std::int64_t rows, std::int64_t length);

/// The rows follow each other in the text: row b holds the characters [b * L, (b + 1) * L), and the last target of a
/// row is the first character of the next. What does not fill a row is left out. Source: batchify and get_batch of
/// PyTorch's word language model. Threads: one at a time.
class Windows {
 public:
  /// @param characters  [N], int64
  /// @param rows        B, >= 1
  /// @param length      T, characters of a window, >= 1
  /// Errors: invalid_config (the text is too short for a single window).
  static Result<Windows> make(const at::Tensor& characters, std::int64_t rows, std::int64_t length);

  /// Returns the next whole window, starting over at the end of the rows.
  Window next();

  /// Returns all windows of the rows in their order. The last window is shorter if the rows do not divide into whole
  /// windows.
  std::vector<Window> all() const;

  std::int64_t rows() const noexcept { return rows_; }
  /// Returns how many whole windows there are.
  std::int64_t count() const noexcept { return row_length_ / length_; }
  /// Returns how far into the rows `next` is, in characters; between 0 and L.
  std::int64_t position() const noexcept { return position_; }
  /// Continues at `position`. Precondition: a position() of windows of the same sizes.
  void seek(std::int64_t position) noexcept { position_ = position; }
  /// Returns whether `next` may have stopped at `position`: a whole number of windows into the rows.
  bool has_position(std::int64_t position) const noexcept;

 private:
  Windows(at::Tensor inputs, at::Tensor targets, std::int64_t length);
  Window cut(std::int64_t start, std::int64_t length) const;

  at::Tensor inputs_;   ///< [L, B]
  at::Tensor targets_;  ///< [L, B]
  std::int64_t rows_;
  std::int64_t row_length_;
  std::int64_t length_;
  std::int64_t position_ = 0;
};

}  // namespace caftan::rnn_lm
