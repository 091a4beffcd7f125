/// Environments whose bodies MuJoCo moves, with models of our own: `MujocoCartPole` and `MujocoReacher` of each
/// `Environments`. They are there in a build on a machine with Debian's libmujoco-dev.
#pragma once

#include <memory>

#include "caftan/base/result.hpp"
#include "caftan/rl/environment.hpp"

namespace caftan::rl {

/// Makes a pole on a cart that a force moves; an episode ends when the pole leans more than 0.2 rad or the cart is more
/// than 1 m away, and each step before gives 1. A step is 0.02 s.
///   observation [4]: place of the cart (m), lean of the pole to the right (rad), the speeds of both
///   action [1]: force on the cart, -1 .. 1 is -10 .. 10 N
/// Errors: invalid_config (a build without MuJoCo; the text says what to install).
Result<std::unique_ptr<Environment>> make_mujoco_cart_pole();

/// Makes an arm of two links, each 0.1 m long, whose hand shall be at a target; a step gives minus their distance (m)
/// and minus a tenth of the action's square. No episode ends by itself. A step is 0.04 s.
///   observation [10]: cosines and sines of both joints, place of the target (m), speeds of both joints (rad/s), from
///                     the target to the hand (m)
///   action [2]: torques of shoulder and elbow, -1 .. 1 is -0.2 .. 0.2 Nm
/// Errors: as make_mujoco_cart_pole.
Result<std::unique_ptr<Environment>> make_mujoco_reacher();

}  // namespace caftan::rl
