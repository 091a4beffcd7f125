#include "windows.hpp"

#include <algorithm>
#include <string>

namespace caftan::rnn_lm {

Result<void> check_room(std::int64_t size, std::int64_t rows, std::int64_t length) {
  if (size >= 2 && (size - 1) / rows >= length) return {};
  return Error(Errc::invalid_config, "a text of " + std::to_string(size) + " characters is too short for " +
                                         std::to_string(rows) + " windows of " + std::to_string(length) +
                                         " side by side: it needs " + std::to_string(rows * length + 1) +
                                         "; take a longer text, or a smaller batch or bptt");
}

Result<Windows> Windows::make(const at::Tensor& characters, std::int64_t rows, std::int64_t length) {
  if (auto room = check_room(characters.numel(), rows, length); !room) return room.error();
  const std::int64_t row_length = (characters.numel() - 1) / rows;
  const auto in_rows = [&](std::int64_t start) {
    return characters.narrow(0, start, rows * row_length).view({rows, row_length}).t().contiguous();
  };
  return Windows(in_rows(0), in_rows(1), length);
}

Windows::Windows(at::Tensor inputs, at::Tensor targets, std::int64_t length)
    : inputs_(std::move(inputs)),
      targets_(std::move(targets)),
      rows_(inputs_.size(1)),
      row_length_(inputs_.size(0)),
      length_(length) {}

Window Windows::cut(std::int64_t start, std::int64_t length) const {
  return {
      .inputs = inputs_.narrow(0, start, length), .targets = targets_.narrow(0, start, length), .starts = start == 0};
}

Window Windows::next() {
  if (position_ + length_ > row_length_) position_ = 0;
  const Window window = cut(position_, length_);
  position_ += length_;
  return window;
}

std::vector<Window> Windows::all() const {
  std::vector<Window> windows;
  for (std::int64_t start = 0; start < row_length_; start += length_) {
    windows.push_back(cut(start, std::min(length_, row_length_ - start)));
  }
  return windows;
}

bool Windows::has_position(std::int64_t position) const noexcept {
  return position >= 0 && position <= row_length_ && position % length_ == 0;
}

}  // namespace caftan::rnn_lm
