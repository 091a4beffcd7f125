#include "actor_critic/requirements.hpp"

#include <any>
#include <string>

#include "actor_critic/checkpoint.hpp"
#include "actor_critic/progress_text.hpp"

namespace caftan::actor_critic {
namespace {

using Kind = app::MissingRequirement::Kind;

std::vector<const std::any*> used(const app::RolePlace& place, const char* use) {
  const auto found = place.uses.find(use);
  return found == place.uses.end() ? std::vector<const std::any*>() : found->second;
}

/// Appends what the number of actors and of their steps cannot do.
void check_shares(const LearnerConfig& config, const std::vector<const std::any*>& actors,
                  std::vector<app::MissingRequirement>& missing) {
  std::int64_t round = 0;  // frames, if each actor sends one trajectory
  std::int64_t least = 0;  // frames of the smallest update
  for (const std::any* const actor : actors) {
    const std::int64_t frames = std::any_cast<const ActorConfig&>(*actor).environments * config.unroll;
    round += frames;
    if (least == 0 || frames < least) least = frames;
  }
  if (actors.empty()) return;
  if (round > config.max_frames) {
    missing.push_back({.keys = {"max_frames", "unroll"},
                       .text = std::to_string(actors.size()) + " actors play " + with_commas(round) +
                               " frames in their first trajectories, max_frames = " + with_commas(config.max_frames) +
                               " leaves none for some of them: fewer actors or environments, a shorter unroll, or more "
                               "max_frames",
                       .kind = Kind::file});
  }
  const std::int64_t rows = config.batch > 0 ? least * config.batch : round;
  if (config.loss.minibatches > rows) {
    missing.push_back({.keys = {"loss.minibatches"},
                       .text = "an update has " + with_commas(rows) +
                               " frames, fewer than loss.minibatches = " + std::to_string(config.loss.minibatches),
                       .kind = Kind::file});
  }
  const auto most = static_cast<std::int64_t>(actors.size()) * (config.ahead + 1);
  if (config.batch > most) {
    missing.push_back({.keys = {"batch"},
                       .text = "batch = " + std::to_string(config.batch) + " trajectories never come together: " +
                               std::to_string(actors.size()) + " actors with ahead = " + std::to_string(config.ahead) +
                               " send " + std::to_string(most) + " at most before they wait",
                       .kind = Kind::file});
  }
}

}  // namespace

std::vector<app::MissingRequirement> find_missing(const LearnerConfig& config, const app::RolePlace& place,
                                                  std::uint64_t seed) {
  std::vector<app::MissingRequirement> missing;
  check_shares(config, used(place, "actors"), missing);
  if (used(place, "evaluator").empty() && (config.target || config.goal)) {
    missing.push_back({.keys = {"target", "goal"},
                       .text = "target and goal are about evaluations: [roles.NAME.uses] needs an evaluator",
                       .kind = Kind::file});
  }
  if (place.deterministic && (config.ahead > 0 || config.batch > 0)) {
    missing.push_back({.keys = {config.ahead > 0 ? "ahead" : "batch"},
                       .text = "run.deterministic = true needs ahead = 0 and batch = 0: else the result depends on "
                               "which actor is fast",
                       .kind = Kind::file});
  }
  if (config.loss.policy == LossConfig::Policy::vtrace && config.loss.epochs > 1) {
    missing.push_back({.keys = {"loss.epochs"},
                       .text =
                           "with loss.policy = \"vtrace\" nothing limits the change of the policy in further epochs: "
                           "use \"clipped\"",
                       .kind = Kind::doubt});
  }
  if (!config.resume) return missing;
  if (const auto frames = check_checkpoint(*config.resume, facts_of(config, seed), config.max_frames); !frames) {
    missing.push_back({.keys = {"resume", "max_frames"}, .text = frames.error().text()});
  }
  return missing;
}

}  // namespace caftan::actor_critic
