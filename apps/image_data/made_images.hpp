/// Images that the program makes: drawings that a net learns to distinguish in a second, and noise to measure with.
/// They are data sets, not random numbers of a run: the same on every machine and in every run.
#pragma once

#include <cstdint>

#include "image_data/image_set.hpp"

namespace caftan::image_data {

inline constexpr std::int64_t kShapeClasses = 10;
inline constexpr std::int64_t kNoiseClasses = 30;

/// Returns `count` drawings, 28x28, grey, ten classes in turn: disc, ring, square, frame, triangle, plus, X, horizontal
/// bars, vertical bars, chessboard; each at a place, of a size, of a brightness and under noise of its own.
/// @param part  0 = for training, 1 = for tests
ImageSet draw_shapes(std::int64_t count, std::uint64_t part);

/// Returns `count` images, 3x64x64, of random pixels, with random labels of 30 classes: the inputs of PyTorch's
/// tutorial of a batch-updating parameter server. @param part  as draw_shapes
ImageSet make_noise(std::int64_t count, std::uint64_t part);

}  // namespace caftan::image_data
