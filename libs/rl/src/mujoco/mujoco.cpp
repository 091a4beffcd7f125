#include "caftan/rl/mujoco.hpp"

#include <mujoco/mujoco.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <string>
#include <utility>
#include <vector>

#include "caftan/rl/random.hpp"
#include "mujoco/models.hpp"

namespace caftan::rl {
namespace {

/// A model and the state of its bodies.
struct Simulation {
  std::unique_ptr<mjModel, void (*)(mjModel*)> model{nullptr, &mj_deleteModel};
  std::unique_ptr<mjData, void (*)(mjData*)> data{nullptr, &mj_deleteData};
};

/// Errors: invalid_config (MuJoCo refuses the model), limit_exceeded (no memory).
Result<Simulation> simulate(const char* text) {
  // MuJoCo reads files only: this one is in memory. The struct is too large for a stack.
  const auto files = std::make_unique<mjVFS>();
  mj_defaultVFS(files.get());
  const auto size = static_cast<int>(std::strlen(text));
  if (mj_makeEmptyFileVFS(files.get(), "model.xml", size) != 0) {
    return Error(Errc::limit_exceeded, "MuJoCo: no memory for the text of a model");
  }
  std::memcpy(files->filedata[0], text, static_cast<std::size_t>(size));
  std::array<char, 512> why{};
  Simulation made;
  made.model.reset(mj_loadXML("model.xml", files.get(), why.data(), static_cast<int>(why.size())));
  mj_deleteVFS(files.get());
  if (!made.model) return Error(Errc::invalid_config, "MuJoCo refuses a model: " + std::string(why.data()));
  made.data.reset(mj_makeData(made.model.get()));
  if (!made.data) return Error(Errc::limit_exceeded, "MuJoCo: no memory for the state of a model");
  return made;
}

/// What the environments of MuJoCo share: episodes, actions and steps. The rest is a task's.
class MujocoEnvironment : public Environment {
 public:
  MujocoEnvironment(Simulation simulation, EnvironmentSpec spec, int substeps)
      : spec_(std::move(spec)),
        simulation_(std::move(simulation)),
        substeps_(substeps),
        observation_(spec_.observation_size) {}

  const EnvironmentSpec& spec() const noexcept override { return spec_; }

  FirstObservation reset(std::uint64_t seed) override {
    random_ = Pcg64(seed);
    return reset();
  }

  FirstObservation reset() override {
    mj_resetData(simulation_.model.get(), simulation_.data.get());
    draw_start(random_);
    mj_kinematics(simulation_.model.get(), simulation_.data.get());
    ended_ = false;
    observe(observation_);
    return std::span<const float>(observation_);
  }

  Result<Transition> step_continuous(std::span<const float> action) override {
    if (ended_) return step_after_end(spec_);
    if (auto fits = check_action(spec_, action); !fits) return fits.error();
    double effort = 0;  // of what is done, not of what was asked for
    for (std::size_t part = 0; part < action.size(); ++part) {
      const double clipped = std::clamp(static_cast<double>(action[part]), -1.0, 1.0);
      simulation_.data->ctrl[part] = clipped;
      effort += clipped * clipped;
    }
    for (int step = 0; step < substeps_; ++step) mj_step(simulation_.model.get(), simulation_.data.get());
    if (simulation_.data->warning[mjWARN_BADQACC].number > 0 || simulation_.data->warning[mjWARN_BADQPOS].number > 0) {
      return user_error("environment.not_finite", spec_.id + ": MuJoCo has found a state that is not finite");
    }
    mj_kinematics(simulation_.model.get(), simulation_.data.get());  // places that fit the state behind the step
    observe(observation_);
    ended_ = has_failed();
    return Transition{.observation = observation_, .reward = reward(effort), .terminated = ended_};
  }

 protected:
  mjData& state() const noexcept { return *simulation_.data; }

 private:
  virtual void draw_start(Pcg64& random) = 0;
  virtual void observe(std::span<float> out) const = 0;
  virtual double reward(double effort) const = 0;
  virtual bool has_failed() const = 0;

  EnvironmentSpec spec_;
  Simulation simulation_;
  int substeps_;
  Pcg64 random_{0};
  bool ended_ = true;
  std::vector<float> observation_;
};

class MujocoCartPole final : public MujocoEnvironment {
 public:
  explicit MujocoCartPole(Simulation simulation)
      : MujocoEnvironment(
            std::move(simulation),
            {.id = "MujocoCartPole", .observation_size = 4, .solved_at = 475.0, .action_low = {-1}, .action_high = {1}},
            2) {}

 private:
  void draw_start(Pcg64& random) override {
    for (std::size_t joint = 0; joint < 2; ++joint) state().qpos[joint] = random.uniform(-0.05, 0.05);
    for (std::size_t joint = 0; joint < 2; ++joint) state().qvel[joint] = random.uniform(-0.05, 0.05);
  }
  void observe(std::span<float> out) const override {
    for (std::size_t joint = 0; joint < 2; ++joint) {
      out[joint] = static_cast<float>(state().qpos[joint]);
      out[2 + joint] = static_cast<float>(state().qvel[joint]);
    }
  }
  double reward(double) const override { return 1.0; }
  bool has_failed() const override { return std::abs(state().qpos[0]) > 1 || std::abs(state().qpos[1]) > 0.2; }
};

class MujocoReacher final : public MujocoEnvironment {
 public:
  explicit MujocoReacher(Simulation simulation)
      : MujocoEnvironment(std::move(simulation),
                          {.id = "MujocoReacher",
                           .observation_size = 10,
                           .solved_at = -4.0,
                           .action_low = {-1, -1},
                           .action_high = {1, 1}},
                          4) {}

 private:
  void draw_start(Pcg64& random) override {
    for (std::size_t joint = 0; joint < 2; ++joint) state().qpos[joint] = random.uniform(-0.1, 0.1);
    do {  // in the circle that the hand reaches
      for (double& part : target_) part = random.uniform(-0.2, 0.2);
    } while (std::hypot(target_[0], target_[1]) > 0.2);
  }
  void observe(std::span<float> out) const override {
    for (std::size_t i = 0; i < 2; ++i) {
      out[i] = static_cast<float>(std::cos(state().qpos[i]));
      out[2 + i] = static_cast<float>(std::sin(state().qpos[i]));
      out[4 + i] = static_cast<float>(target_[i]);
      out[6 + i] = static_cast<float>(state().qvel[i]);
      out[8 + i] = static_cast<float>(state().site_xpos[i] - target_[i]);
    }
  }
  double reward(double effort) const override {
    return -std::hypot(state().site_xpos[0] - target_[0], state().site_xpos[1] - target_[1]) - 0.1 * effort;
  }
  bool has_failed() const override { return false; }

  std::array<double, 2> target_{};
};

template <class T>
Result<std::unique_ptr<Environment>> make(const char* model) {
  auto simulation = simulate(model);
  if (!simulation) return simulation.error();
  return std::unique_ptr<Environment>(std::make_unique<T>(*std::move(simulation)));
}

}  // namespace

Result<std::unique_ptr<Environment>> make_mujoco_cart_pole() { return make<MujocoCartPole>(mujoco::kCartPoleModel); }

Result<std::unique_ptr<Environment>> make_mujoco_reacher() { return make<MujocoReacher>(mujoco::kReacherModel); }

}  // namespace caftan::rl
