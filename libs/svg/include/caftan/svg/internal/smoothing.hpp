/// The smoothing of TensorBoard's scalar charts.
#pragma once

#include <span>
#include <vector>

namespace caftan::svg {

/// Returns the exponential moving average of the values, corrected for its start: the first value stays as it is.
/// Values that are not finite stay as they are and do not count. If all values are equal, they stay as they are.
/// @param weight  >= 0, < 1: of the earlier values; 0 = the values themselves
/// Source: TensorBoard, resmoothDataset of vz_line_chart2.
std::vector<double> smoothed(std::span<const double> values, double weight);

}  // namespace caftan::svg
