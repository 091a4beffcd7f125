#include "play/play_command.hpp"

#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <chrono>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "agents/agent_file.hpp"
#include "agents/environments.hpp"
#include "agents/greedy.hpp"
#include "caftan/base/settings_io.hpp"
#include "play/episode.hpp"
#include "play/film.hpp"
#include "play/gif.hpp"
#include "play/terminal.hpp"

namespace caftan::play {
namespace {

constexpr int kBadCommandLine = 2;
constexpr int kColumns = 64;
constexpr int kRows = 16;
/// An episode that is longer is cut.
constexpr std::int64_t kMostSteps = 100'000;

struct Options {
  std::filesystem::path run{};
  std::int64_t episodes = 10;
  std::int64_t seed = 0;
  std::int64_t speed = 30;  // decisions per second
  bool newest = false;
  bool quiet = false;
  std::optional<std::filesystem::path> svg{};
  std::optional<std::filesystem::path> gif{};
};

void print(const std::string& line) { std::fputs((line + "\n").c_str(), stdout); }

int refuse(const std::string& text, int code) {
  std::fputs(("error: " + text + "\n").c_str(), stderr);
  return code;
}

/// Reads the words behind `play`. Errors: bad_arguments.
Result<Options> read_options(const std::vector<std::string>& words) {
  Options options;
  for (std::size_t at = 0; at < words.size(); ++at) {
    const std::string& word = words[at];
    const auto number = [&](std::int64_t least, std::int64_t most, std::int64_t& to) -> Result<void> {
      const std::string text = at + 1 < words.size() ? words[++at] : std::string();
      std::int64_t value = 0;
      const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
      if (error != std::errc() || end != text.data() + text.size() || value < least || value > most) {
        return Error(Errc::bad_arguments, word + " takes a number from " + std::to_string(least) + " to " +
                                              std::to_string(most) + ", not '" + printable(text) + "'");
      }
      to = value;
      return {};
    };
    Result<void> taken;
    if (word == "--episodes") {
      taken = number(1, 4096, options.episodes);
    } else if (word == "--seed") {
      taken = number(0, std::int64_t{1} << 62, options.seed);
    } else if (word == "--speed") {
      taken = number(1, 1000, options.speed);
    } else if (word == "--newest") {
      options.newest = true;
    } else if (word == "--quiet") {
      options.quiet = true;
    } else if (word == "--svg" || word == "--gif") {
      const bool has_file = at + 1 < words.size() && !words[at + 1].empty() && !words[at + 1].starts_with("-");
      if (!has_file) return Error(Errc::bad_arguments, word + " needs the name of a file");
      (word == "--svg" ? options.svg : options.gif) = words[++at];
    } else if (word.starts_with("-") || !options.run.empty()) {
      taken = Error(Errc::bad_arguments, "'" + printable(word) + "' is no option of play");
    } else {
      options.run = word;
    }
    if (!taken) return taken.error();
  }
  if (options.run.empty()) return Error(Errc::bad_arguments, "play needs the folder of a run, or a checkpoint");
  return options;
}

/// Moves through an episode on a terminal; elsewhere prints its first and its last scene.
void show(const Episode& episode, const Options& options) {
  const bool moves = ::isatty(STDOUT_FILENO) != 0;
  const std::size_t last = episode.scenes.size() - 1;
  for (std::size_t at = 0; at <= last; at = moves ? at + 1 : at + std::max<std::size_t>(last, 1)) {
    if (moves && at > 0) std::printf("\033[%dA", kRows + 1);
    for (const std::string& line : render_text(episode.scenes[at], kColumns, kRows)) print(line);
    print("step " + std::to_string(at) + ", return " + format_fixed(episode.returns[at], 1) + "      ");
    std::fflush(stdout);
    if (moves) std::this_thread::sleep_for(std::chrono::milliseconds(1000) / options.speed);
  }
}

/// Whether a file of that name can be made, before the time of playing is spent. Errors: io_error.
Result<void> check_writable(const std::filesystem::path& path) {
  std::error_code ignored;
  const bool exists = std::filesystem::exists(path, ignored);
  const std::filesystem::path folder = path.has_parent_path() ? path.parent_path() : ".";
  if (std::filesystem::is_directory(path, ignored)) {
    return Error(Errc::io_error, printable(path.string()) + " cannot be written: it is a folder");
  }
  if (::access((exists ? path : folder).c_str(), W_OK) == 0) return {};
  return Error(Errc::io_error, printable(path.string()) + " cannot be written: " + std::strerror(errno));
}

Result<void> write_film(const Episode& episode, const agents::Agent& agent, const Options& options) {
  const auto film = render_film(episode.scenes, static_cast<double>(options.speed),
                                agent.environment.name + ", " + agent.step_name + " " + std::to_string(agent.step) +
                                    ": return " + format_fixed(episode.returns.back(), 1));
  if (!film) return film.error();
  std::ofstream stream(*options.svg, std::ios::binary | std::ios::trunc);
  stream << *film << std::flush;
  if (!stream) return Error(Errc::io_error, printable(options.svg->string()) + " cannot be written");
  return {};
}

/// Plays all episodes and shows the first one. @return the exit code
int play(const rl::Environments& known, const agents::AgentFile& file, const Options& options) {
  const agents::Agent& agent = file.agent;
  const auto environment = agents::make_environment(known, agent.environment, {});
  if (!environment) return refuse(file.path.string() + ": " + environment.error().text(), kBadCommandLine);
  agents::Policy policy(agent.shape);
  if (auto loaded = policy.load(agent.weights); !loaded) return refuse(loaded.error().text(), kBadCommandLine);
  if (auto fits = check_fits(agent.shape, (*environment)->spec()); !fits) {
    return refuse(file.path.string() + ": " + fits.error().text(), kBadCommandLine);
  }
  const auto seed = static_cast<std::uint64_t>(options.seed);
  const auto episode = play_episode(**environment, agent.environment.name, policy, seed, kMostSteps);
  if (!episode) return refuse(episode.error().text(), 1);
  if (!options.quiet) show(*episode, options);
  const auto all = agents::make_environments(known, agent.environment, static_cast<std::size_t>(options.episodes), {});
  if (!all) return refuse(all.error().text(), 1);
  auto returns = agents::play_greedily(**all, policy, seed, kMostSteps);
  if (!returns) return refuse(returns.error().text(), 1);
  print(file.path.string() + ": " + agent.environment.name + ", " + agent.step_name + " " + std::to_string(agent.step));
  std::string line = "returns:";
  for (const double value : *returns) line += " " + format_fixed(value, 1);
  print(line);
  print("mean " + format_fixed(agents::mean_of(*returns), 1) + " of " + std::to_string(returns->size()) +
        " episodes, min " + format_fixed(*std::ranges::min_element(*returns), 1) + ", max " +
        format_fixed(*std::ranges::max_element(*returns), 1));
  if (options.svg) {
    if (auto written = write_film(*episode, agent, options); !written) return refuse(written.error().text(), 1);
    print(printable(options.svg->string()));
  }
  if (options.gif) {
    const auto written = write_gif(*options.gif, episode->scenes, static_cast<double>(options.speed));
    if (!written) return refuse(written.error().text(), 1);
    print(printable(options.gif->string()));
  }
  return 0;
}

}  // namespace

int run_play_command(const std::string& program, const rl::Environments& known, int argc, char** argv) {
  const std::string usage = "usage: " + program + " " + kPlayUsage;
  const std::vector<std::string> words(argv + std::min(argc, 2), argv + argc);
  if (std::ranges::find(words, "--help") != words.end() || std::ranges::find(words, "-h") != words.end()) {
    print(usage);
    print("Shows an episode of the agent of a run, or of a checkpoint, with the most probable actions.");
    print("  --episodes N  whose returns are printed; default 10");
    print("  --seed N      of the first episode; the next ones have N + 1 and so on; default 0");
    print("  --newest      the newest checkpoint of the run, not the one with the best evaluation");
    print("  --svg FILE    writes the first episode as a picture that moves in a browser");
    print("  --gif FILE    writes it as an animated GIF, without the title");
    print("  --speed N     decisions a second; default 30");
    print("  --quiet       only returns");
    return 0;
  }
  const auto options = read_options(words);
  if (!options) {
    std::fputs((usage + "\n").c_str(), stderr);
    return refuse(options.error().text(), kBadCommandLine);
  }
  for (const auto& path : {options->svg, options->gif}) {
    if (!path) continue;
    if (auto writable = check_writable(*path); !writable) return refuse(writable.error().text(), kBadCommandLine);
  }
  const auto file = agents::read_agent(options->run, options->newest ? agents::Wanted::newest : agents::Wanted::best);
  if (!file) return refuse(file.error().text(), kBadCommandLine);
  return play(known, *file, *options);
}

}  // namespace caftan::play
