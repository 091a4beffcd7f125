// Actors, a learner and an evaluator as a user runs them: one actor learns the same bits in one process, in processes
// and after a resume; what is wrong is said with its key; a killed process ends the run or is done without, by the
// file.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <random>
#include <sstream>
#include <utility>

#include "command.hpp"
#include "lines.hpp"
#include "soak_size.hpp"

namespace caftan::test::actor_critic_test {
namespace {

using namespace std::chrono_literals;
using ::testing::AllOf;
using ::testing::ContainsRegex;
using ::testing::HasSubstr;
using ::testing::StartsWith;

const std::string kCaftan = CAFTAN_COMMAND;
const std::string kFile = std::string(CAFTAN_CONFIGS) + "/actor_critic.test.toml";
const std::string kLearning = "roles.learner.config.";

std::vector<std::string> run_file(const std::vector<std::string>& overrides) {
  std::vector<std::string> words{"run", kFile};
  words.insert(words.end(), overrides.begin(), overrides.end());
  return words;
}

class ActorCritic : public ::testing::Test {
 protected:
  Finished run(const std::vector<std::string>& overrides) const {
    return run_to_end(folder_, kCaftan, run_file(overrides));
  }
  std::filesystem::path latest() const { return std::filesystem::canonical(folder_.path() / "runs/latest"); }
  Finished play(const std::vector<std::string>& words) const {
    std::vector<std::string> all{"play"};
    all.insert(all.end(), words.begin(), words.end());
    return run_to_end(folder_, kCaftan, all);
  }
  Folder folder_;
};

TEST_F(ActorCritic, OneActorLearnsTheSameBitsInEveryPlacementAndGoesOn) {
  const Finished one = run({"run.placement=one_process"});
  ASSERT_EQ(one.code, 0) << one.err;
  const Finished many = run({});
  ASSERT_EQ(many.code, 0) << many.err;
  const std::string print = line_with(one.out, "fingerprint sha256:");
  EXPECT_THAT(print, StartsWith("fingerprint sha256:"));
  EXPECT_EQ(line_with(many.out, "fingerprint sha256:"), print);
  EXPECT_THAT(many.out,
              AllOf(HasSubstr("trains on GridWorld with 1 actor\n"), HasSubstr("\ntrained: 20,480 frames, 80 updates"),
                    ContainsRegex("evaluation: last -[0-9.]+ at 20,480 frames, best -[0-9.]+\n")));
  const std::string curve = folder_.read("runs/latest/curve.csv");
  for (const char* const metric : {"evaluation", "return", "policy_lag", "entropy", "value_loss"}) {
    EXPECT_THAT(curve, HasSubstr(",learner." + std::string(metric) + ",")) << metric;
  }
  const std::string metrics = folder_.read("runs/latest/metrics.csv");
  for (const char* const metric : {"queue", "learner_idle", "frames_per_s"}) EXPECT_THAT(metrics, HasSubstr(metric));

  ASSERT_EQ(run({kLearning + "max_frames=10240"}).code, 0);
  const std::filesystem::path stopped = latest();
  const Finished rest = run({kLearning + "resume=" + stopped.string()});
  ASSERT_EQ(rest.code, 0) << rest.err;
  EXPECT_THAT(rest.out, HasSubstr("resumed: frame 10240 of " + stopped.string() + "\n"));
  EXPECT_EQ(line_with(rest.out, "fingerprint sha256:"), print);

  // The new folder has the best agent, also before an evaluation is better than that one.
  const Finished no_more = run({kLearning + "max_frames=10240", kLearning + "resume=" + stopped.string()});
  ASSERT_EQ(no_more.code, 0) << no_more.err;
  const Finished shown = play({latest().string(), "--quiet"});
  EXPECT_THAT(shown.out, HasSubstr(latest().string() + "/checkpoints/best: GridWorld, frames "));
}

TEST_F(ActorCritic, SeveralActorsInStepLearnTheSameBits) {
  const std::vector<std::string> several{"roles.actor.replicas=3", "roles.actor.config.environments=4"};
  const Finished first = run(several);
  const Finished second = run(several);
  ASSERT_EQ(first.code, 0) << first.err;
  EXPECT_EQ(line_with(second.out, "fingerprint sha256:"), line_with(first.out, "fingerprint sha256:"));
}

TEST_F(ActorCritic, EndsWhenTheTargetIsReached) {
  const Finished finished = run({kLearning + "target=-45.0", kLearning + "max_frames=1000000000",
                                 kLearning + "evaluate_every=2560", "run.deterministic=false", kLearning + "ahead=1"});
  EXPECT_EQ(finished.code, 0) << finished.err;
  EXPECT_THAT(folder_.read("runs/latest/summary.json"), HasSubstr("learner.evaluation"));
  EXPECT_TRUE(std::filesystem::exists(latest() / "checkpoints/best"));
}

TEST_F(ActorCritic, PlayShowsWhatWasLearned) {
  ASSERT_EQ(run({}).code, 0);
  const Finished shown = play({"runs/latest", "--episodes", "3", "--svg", "film.svg", "--gif", "film.gif"});
  EXPECT_EQ(shown.code, 0) << shown.err;
  EXPECT_THAT(shown.out,
              AllOf(HasSubstr("step 0, return 0.0"), HasSubstr("checkpoints/best: GridWorld, frames "),
                    ContainsRegex("\nreturns: -[0-9.]+ -[0-9.]+ -[0-9.]+\nmean -[0-9.]+ of 3 episodes, min -"),
                    HasSubstr("\nfilm.svg\nfilm.gif\n")));
  EXPECT_THAT(folder_.read("film.svg"), AllOf(StartsWith("<svg "), HasSubstr("GridWorld, frames ")));
  EXPECT_THAT(folder_.read("film.gif"), AllOf(StartsWith("GIF89a"), HasSubstr("NETSCAPE2.0")));
  const Finished newest = play({"runs/latest", "--newest", "--quiet"});
  EXPECT_THAT(newest.out,
              AllOf(HasSubstr("checkpoints/step-020480: GridWorld, frames 20480"), HasSubstr(" of 10 episodes")));
  const Finished nothing = play({"runs/nothing"});
  EXPECT_EQ(nothing.code, 2);
  EXPECT_THAT(nothing.err, HasSubstr("there is no runs/nothing"));
  EXPECT_EQ(play({}).code, 2);
  EXPECT_EQ(play({"runs/latest", "--episodes", "many"}).code, 2);
  const Finished unnamed = play({"runs/latest", "--gif", "--quiet"});
  EXPECT_EQ(unnamed.code, 2);
  EXPECT_THAT(unnamed.err, HasSubstr("--gif needs the name of a file"));
  const Finished unwritten = play({"runs/latest", "--quiet", "--gif", "nowhere/film.gif"});
  EXPECT_EQ(unwritten.code, 2);
  EXPECT_THAT(unwritten.err, HasSubstr("nowhere/film.gif cannot be written: "));
  EXPECT_EQ(unwritten.out, "") << "said before the time of playing is spent";
  const Finished folder = play({"runs/latest", "--quiet", "--svg", "runs"});
  EXPECT_EQ(folder.code, 2);
  EXPECT_THAT(folder.err, HasSubstr("runs cannot be written: it is a folder"));
  EXPECT_EQ(play({"--help"}).code, 0);
}

TEST_F(ActorCritic, CartPoleLeavesItsPolicyToPlay) {
  ASSERT_EQ(run_to_end(folder_, kCaftan, {"run", std::string(CAFTAN_CONFIGS) + "/cartpole.test.toml"}).code, 0);
  const Finished shown = play({"runs/latest", "--quiet", "--episodes", "5"});
  EXPECT_EQ(shown.code, 0) << shown.err;
  EXPECT_THAT(shown.out, ContainsRegex(": CartPole-v1, episode [0-9]+\nreturns: "));
}

TEST_F(ActorCritic, WhatCannotWorkIsSaidWithTheKey) {
  const Finished unknown = run({kLearning + "environment=GridWolrd"});
  EXPECT_EQ(unknown.code, 2);
  EXPECT_THAT(unknown.err, HasSubstr("no environment 'GridWolrd'; did you mean 'GridWorld'"));
  const Finished crowded = run({"roles.actor.replicas=100"});
  EXPECT_EQ(crowded.code, 2);
  EXPECT_THAT(crowded.err, HasSubstr("100 actors play 25,600 frames in their first trajectories, max_frames = 20,480"));
  const Finished hasty = run({kLearning + "ahead=1"});
  EXPECT_EQ(hasty.code, 2);
  EXPECT_THAT(hasty.err, HasSubstr("run.deterministic = true needs ahead = 0 and batch = 0"));
  const Finished missed = run({kLearning + "goal=-1.0", kLearning + "max_frames=256"});
  EXPECT_EQ(missed.code, 1);
  EXPECT_THAT(missed.err, AllOf(HasSubstr("goal_missed"), HasSubstr("the goal is -1")));

  const std::filesystem::path other = latest();
  const Finished moved = run({kLearning + "environment=Catch", kLearning + "resume=" + other.string()});
  EXPECT_EQ(moved.code, 2);
  EXPECT_THAT(moved.err, HasSubstr("a checkpoint of another training: environment = GridWorld, here it is Catch"));
  const Finished wider = run({kLearning + "network.hidden=17", kLearning + "resume=" + other.string()});
  EXPECT_EQ(wider.code, 2);
  EXPECT_THAT(wider.err, HasSubstr("network.hidden = 16, here it is 17"));
  const Finished nowhere = run({kLearning + "resume=/nowhere"});
  EXPECT_EQ(nowhere.code, 2);
  EXPECT_THAT(nowhere.err, HasSubstr("there is no /nowhere"));
}

TEST_F(ActorCritic, ALearnerThatDivergesIsNamed) {
  const Finished diverged = run({kLearning + "environment=Pendulum-v1", kLearning + "loss.reward_scale=1e30"});
  EXPECT_EQ(diverged.code, 1);
  EXPECT_THAT(diverged.err, AllOf(HasSubstr("the training has diverged"), HasSubstr("loss.reward_scale")));
}

TEST_F(ActorCritic, AnEnvironmentThatBreaksItsSpecIsNamedAndNothingIsLost) {
  const std::vector<std::pair<std::string, std::string>> faults{
      {"Throws", "threw: no more fuel"},
      {"Nan", "the reward is -?nan"},
      {"Shape", "the observation has 3 values, its spec says 2"},
      {"Spec", "its spec has changed: actions was 2 and is 3"}};
  for (const auto& [name, what] : faults) {
    const Finished failed = run_to_end(
        folder_, CAFTAN_FAULTY, run_file({kLearning + "environment=" + name, kLearning + "max_frames=1000000000"}));
    EXPECT_EQ(failed.code, 1) << name;
    EXPECT_THAT(failed.err, ContainsRegex("environment '" + name + "', step [0-9]+: " + what)) << failed.err;
    const Finished shown = run_to_end(folder_, CAFTAN_FAULTY, {"play", "runs/latest", "--newest", "--quiet"});
    EXPECT_EQ(shown.code, 0) << shown.err;
    EXPECT_THAT(shown.out, HasSubstr("checkpoints/step-005120: " + name + ", frames 5120"));
  }
  const Finished unknown = play({"runs/latest"});
  EXPECT_EQ(unknown.code, 2);
  EXPECT_THAT(unknown.err, HasSubstr("no environment 'Spec'"));
}

TEST_F(ActorCritic, AnEnvironmentThatHangsEndsWithTheTimeOfTheRun) {
  Command command(folder_, CAFTAN_FAULTY,
                  run_file({kLearning + "environment=Hangs", kLearning + "max_frames=1000000000", "run.wall=3s"}));
  EXPECT_EQ(command.wait(), 1);
  EXPECT_THAT(command.err(), HasSubstr("error: the run took longer than 3s (run.wall)\n"));
  EXPECT_TRUE(command.nothing_is_left(5s));
}

TEST_F(ActorCritic, AMissingGymnasiumIsSaidWithWhatToInstall) {
  const Finished missing =
      run({kLearning + "environment=gymnasium:CartPole-v1", "roles.actor.config.gymnasium.python=/nowhere/python3"});
  EXPECT_EQ(missing.code, 1);
  EXPECT_THAT(missing.err,
              AllOf(HasSubstr("there is no interpreter '/nowhere/python3'"), HasSubstr("pip install gymnasium")));
}

TEST_F(ActorCritic, EndsOnCtrlC) {
  Command command(folder_, kCaftan, run_file({kLearning + "max_frames=1000000000"}));
  ASSERT_TRUE(command.wait_for_line("checkpoint: frame "));
  command.signal(SIGINT);
  EXPECT_EQ(command.wait(), 130) << command.err();
  EXPECT_TRUE(command.nothing_is_left(5s));
}

/// Who is killed, behind which checkpoint, and whether the file lets the run go on.
struct Moment {
  std::string victim;
  std::uint64_t seed = 0;
};
std::vector<Moment> moments(const std::vector<std::string>& victims) {
  std::vector<Moment> all;
  for (const std::string& victim : victims) {
    for (std::uint64_t seed = 0; seed < soak_size("CAFTAN_ACTOR_CRITIC_MOMENTS", 2); ++seed)
      all.push_back({victim, seed});
  }
  return all;
}
std::string name_of(const ::testing::TestParamInfo<Moment>& info) {
  return (info.param.victim == "actor-1" ? "actor" : info.param.victim) + std::to_string(info.param.seed);
}

/// Frames of a run that goes on after a kill: it shall not end before.
constexpr std::int64_t kRest = 30'720;

class KilledActorCritic : public ActorCritic, public ::testing::WithParamInterface<Moment> {};
INSTANTIATE_TEST_SUITE_P(Moments, KilledActorCritic, ::testing::ValuesIn(moments({"actor-1", "learner", "evaluator"})),
                         name_of);

TEST_P(KilledActorCritic, EndsOrGoesOnAsTheFileSays) {
  const auto& [victim, seed] = GetParam();
  std::mt19937_64 random(seed + 1000 * victim.size());
  const bool goes_on = victim != "learner" && random() % 2 == 0;
  const std::int64_t after = 5120 * static_cast<std::int64_t>(1 + random() % 12);  // frames
  const std::int64_t max_frames = goes_on ? after + kRest : 1'000'000'000;
  std::vector<std::string> settings{"roles.actor.replicas=2",
                                    "roles.actor.config.environments=8",
                                    kLearning + "max_frames=" + std::to_string(max_frames),
                                    "run.deterministic=false",
                                    kLearning + "ahead=1",
                                    kLearning + "evaluate_every=2560"};
  if (goes_on) settings.push_back("roles." + (victim == "actor-1" ? std::string("actor") : victim) + ".on_loss=go_on");
  Command command(folder_, kCaftan, run_file(settings));
  ASSERT_TRUE(command.wait_for_line("checkpoint: frame " + std::to_string(after) + " in ")) << command.err();
  const pid_t pid = command.worker(victim);
  ASSERT_GT(pid, 0);
  ASSERT_EQ(::kill(pid, SIGKILL), 0);
  EXPECT_EQ(command.wait(), goes_on ? 0 : 1) << command.err();
  EXPECT_TRUE(command.nothing_is_left(5s));
  EXPECT_THAT(command.err(), HasSubstr(victim));
  EXPECT_THAT(command.err(), HasSubstr("killed by signal 9"));
  if (goes_on) {
    EXPECT_THAT(command.out(), HasSubstr("\ntrained: "));
    EXPECT_THAT(folder_.read("runs/latest/summary.json"), HasSubstr("\"name\": \"" + victim + "\""));
  }
  // What was learned is not lost: a run goes on from the newest checkpoint.
  const Finished shown = play({"runs/latest", "--newest", "--quiet"});
  EXPECT_EQ(shown.code, 0) << shown.err;
  const std::string stopped = latest().string();
  const Finished resumed =
      run({kLearning + "max_frames=1000000000", kLearning + "target=-60.0", kLearning + "resume=" + stopped});
  EXPECT_EQ(resumed.code, 0) << resumed.err;
  EXPECT_THAT(resumed.out, HasSubstr("resumed: frame "));
}

TEST_F(ActorCritic, AfterAKillOneActorGoesOnWithTheSameBits) {
  const std::string print = line_with(run({}).out, "fingerprint sha256:");
  ASSERT_THAT(print, StartsWith("fingerprint sha256:"));
  for (const Moment& moment : moments({"actor", "learner", "evaluator"})) {
    std::mt19937_64 random(moment.seed + 1000 * moment.victim.size());
    const std::string after = std::to_string(5120 * (1 + random() % 3));  // frames, of 20,480
    Command command(folder_, kCaftan,
                    run_file({kLearning + "max_frames=1000000000", kLearning + "checkpoint.keep=1000000"}));
    ASSERT_TRUE(command.wait_for_line("checkpoint: frame " + after + " in ")) << command.err();
    ASSERT_EQ(::kill(command.worker(moment.victim), SIGKILL), 0) << moment.victim;
    EXPECT_EQ(command.wait(), 1) << moment.victim;
    const std::string name = "checkpoints/step-" + std::string(6 - after.size(), '0') + after;
    const Finished resumed =
        run_to_end(folder_, kCaftan, run_file({kLearning + "resume=" + (latest() / name).string()}));
    ASSERT_EQ(resumed.code, 0) << resumed.err;
    EXPECT_EQ(line_with(resumed.out, "fingerprint sha256:"), print) << moment.victim << " after " << after;
  }
}

/// Returns the process that a worker has started, and that runs Gymnasium; 0 where there is none.
pid_t child_of(pid_t worker) {
  for (const auto& entry : std::filesystem::directory_iterator("/proc")) {
    const std::string name = entry.path().filename().string();
    if (!std::ranges::all_of(name, [](char c) { return c >= '0' && c <= '9'; })) continue;
    std::ifstream stream(entry.path() / "stat");  // pid (name) state parent ...
    std::string text;
    std::getline(stream, text);
    const std::size_t name_end = text.rfind(')');
    if (name_end == std::string::npos) continue;  // it has ended
    std::istringstream rest(text.substr(name_end + 1));
    char state = 0;
    pid_t parent = 0;
    if (rest >> state >> parent && parent == worker) return std::stoi(name);
  }
  return 0;
}

class KilledGymnasium : public KilledActorCritic {
 protected:
  /// The overrides for an environment of Gymnasium, with the module that tests have in its place.
  std::vector<std::string> overrides() const {
    const std::string python = folder_ / "python_with_stub";
    std::ofstream(python) << "#!/bin/sh\nPYTHONPATH='" << CAFTAN_GYMNASIUM_STUB << "' exec python3 -S \"$@\"\n";
    std::filesystem::permissions(python, std::filesystem::perms::owner_all);
    return {kLearning + "environment=gymnasium:Count-v0",
            kLearning + "ahead=1",
            kLearning + "evaluate_every=2560",
            "run.deterministic=false",
            "roles.actor.replicas=2",
            "roles.actor.config.environments=8",
            "roles.actor.config.gymnasium.python=" + python,
            "roles.evaluator.config.episodes=8",
            "roles.evaluator.config.gymnasium.python=" + python};
  }
};
INSTANTIATE_TEST_SUITE_P(Moments, KilledGymnasium, ::testing::ValuesIn(moments({"actor-1", "evaluator"})), name_of);

TEST_P(KilledGymnasium, ItsWorkerEndsOrIsDoneWithoutAsTheFileSays) {
  const auto& [victim, seed] = GetParam();
  std::mt19937_64 random(seed + 2000 * victim.size());
  const bool goes_on = seed % 2 == 0;
  const std::int64_t after = 5120 * static_cast<std::int64_t>(1 + random() % 3);  // frames
  std::vector<std::string> settings = overrides();
  settings.push_back(kLearning + "max_frames=" + std::to_string(goes_on ? after + kRest : 1'000'000'000));
  if (goes_on) settings.push_back("roles." + (victim == "actor-1" ? std::string("actor") : victim) + ".on_loss=go_on");
  Command command(folder_, kCaftan, run_file(settings));
  ASSERT_TRUE(command.wait_for_line("checkpoint: frame " + std::to_string(after) + " in ")) << command.err();
  const pid_t process = child_of(command.worker(victim));
  ASSERT_GT(process, 0);
  ASSERT_EQ(::kill(process, SIGKILL), 0);
  EXPECT_EQ(command.wait(), goes_on ? 0 : 1) << command.err();
  EXPECT_TRUE(command.nothing_is_left(5s));
  if (goes_on) {
    EXPECT_THAT(command.out(), HasSubstr("\ntrained: "));
    EXPECT_THAT(folder_.read("runs/latest/log/learner.log") + command.out(), HasSubstr(" is lost: "));
  } else {
    EXPECT_THAT(command.err(), AllOf(HasSubstr("environment 'gymnasium:Count-v0'"),
                                     HasSubstr("the process of Gymnasium was ended by signal 9")));
  }
  std::vector<std::string> again = overrides();
  again.insert(again.end(), {kLearning + "max_frames=1000000000", kLearning + "target=20.0",
                             kLearning + "resume=" + latest().string()});
  const Finished resumed = run(again);
  EXPECT_EQ(resumed.code, 0) << resumed.err;
  EXPECT_THAT(resumed.out, HasSubstr("resumed: frame "));
}

}  // namespace
}  // namespace caftan::test::actor_critic_test
