// In place of mujoco.cpp where the machine that builds has no MuJoCo.
#include "caftan/rl/mujoco.hpp"

namespace caftan::rl {
namespace {

Error no_mujoco() {
  return {Errc::invalid_config,
          "this build has no MuJoCo: install libmujoco-dev (as root: apt-get install libmujoco-dev) and build Caftan "
          "again"};
}

}  // namespace

Result<std::unique_ptr<Environment>> make_mujoco_cart_pole() { return no_mujoco(); }

Result<std::unique_ptr<Environment>> make_mujoco_reacher() { return no_mujoco(); }

}  // namespace caftan::rl
