/// The models of the environments that MuJoCo steps, as the text of their files; made by CMake.
#pragma once

namespace caftan::rl::mujoco {

extern const char* const kCartPoleModel;
extern const char* const kReacherModel;

}  // namespace caftan::rl::mujoco
