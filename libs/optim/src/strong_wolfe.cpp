#include "strong_wolfe.hpp"

#include <algorithm>
#include <cmath>
#include <utility>

namespace caftan::optim {
namespace {

constexpr double kArmijo = 1e-4;
constexpr double kCurvature = 0.9;
constexpr double kShortest = 1e-9;  // a bracket in which no element moves further is not divided any more
constexpr std::int64_t kMostEvaluations = 26;

double largest(const at::Tensor& tensor) { return tensor.abs().max().item<double>(); }

/// Returns where the cubic through two places with their slopes is lowest, within the limits; the middle of them where
/// it has no minimum.
double lowest_between(const LinePoint& a, const LinePoint& b, double least, double most) {
  const double d1 = (a.slope + b.slope) - (3 * (a.loss - b.loss) / (a.t - b.t));
  const double square = std::pow(d1, 2) - a.slope * b.slope;
  if (!(square >= 0)) return (least + most) / 2;
  const double d2 = std::sqrt(square);
  double t = 0;
  if (a.t <= b.t) {
    t = b.t - ((b.t - a.t) * ((b.slope + d2 - d1) / (b.slope - a.slope + 2 * d2)));
  } else {
    t = a.t - ((a.t - b.t) * ((a.slope + d2 - d1) / (a.slope - b.slope + 2 * d2)));
  }
  return std::min(std::max(t, least), most);
}

}  // namespace

StrongWolfe::StrongWolfe(at::Tensor direction, double t, LinePoint start)
    : direction_(std::move(direction)),
      start_(std::move(start)),
      longest_(largest(direction_)),
      t_(t),
      previous_(start_) {}

bool StrongWolfe::evaluated(double loss, const at::Tensor& gradient) {
  ++evaluations_;
  const LinePoint at{t_, loss, gradient, gradient.dot(direction_).item<double>()};
  return narrowing_ ? narrow(at) : widen(at);
}

bool StrongWolfe::is_high(const LinePoint& at) const { return at.loss > start_.loss + kArmijo * at.t * start_.slope; }

bool StrongWolfe::is_flat(const LinePoint& at) const { return std::abs(at.slope) <= -kCurvature * start_.slope; }

/// Goes on along the line until two places have a good one between them.
bool StrongWolfe::widen(const LinePoint& at) {
  if (evaluations_ == kMostEvaluations) {
    bracket_ = {start_, at};
    order_bracket();
    return false;
  }
  if (is_high(at) || (evaluations_ > 2 && at.loss >= previous_.loss)) return begin_to_narrow(previous_, at);
  if (is_flat(at)) {
    bracket_ = {at, at};
    order_bracket();
    return false;
  }
  if (at.slope >= 0) return begin_to_narrow(previous_, at);
  const double least = at.t + 0.01 * (at.t - previous_.t);
  const double most = at.t * 10;
  t_ = lowest_between(previous_, at, least, most);
  previous_ = at;
  return true;
}

bool StrongWolfe::begin_to_narrow(LinePoint from, LinePoint to) {
  bracket_ = {std::move(from), std::move(to)};
  order_bracket();
  narrowing_ = true;
  return choose_next();
}

/// Chooses a place between the two, at least a tenth of their distance away from both where the last one was not.
bool StrongWolfe::choose_next() {
  const auto [least, most] = std::minmax({bracket_[0].t, bracket_[1].t});
  t_ = lowest_between(bracket_[0], bracket_[1], least, most);
  const double margin = 0.1 * (most - least);
  if (!(std::min(most - t_, t_ - least) < margin)) {
    stuck_ = false;
  } else if (stuck_ || t_ >= most || t_ <= least) {
    t_ = std::abs(t_ - most) < std::abs(t_ - least) ? most - margin : least + margin;
    stuck_ = false;
  } else {
    stuck_ = true;
  }
  return true;
}

bool StrongWolfe::narrow(const LinePoint& at) {
  bool found = false;
  LinePoint& low = bracket_[low_];
  LinePoint& high = bracket_[1 - low_];
  if (is_high(at) || at.loss >= low.loss) {
    high = at;
    order_bracket();
  } else {
    if (is_flat(at)) {
      found = true;
    } else if (at.slope * (high.t - low.t) >= 0) {
      high = low;
    }
    low = at;
  }
  const bool too_short = std::abs(bracket_[1].t - bracket_[0].t) * longest_ < kShortest;
  if (found || too_short || evaluations_ == kMostEvaluations) return false;
  return choose_next();
}

}  // namespace caftan::optim
