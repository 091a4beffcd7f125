// A program whose run can be ended at any moment and in any way: the driver reports each round, and both roles
// misbehave as their config says.
#include <fcntl.h>
#include <signal.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <future>
#include <iostream>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "caftan/caftan.hpp"

namespace {

/// Waits until the test has written a byte to the pipe of that name, and takes the byte.
void wait_at(const char* pipe) {
  const int fd = ::open(pipe, O_RDONLY | O_CLOEXEC);
  if (fd < 0) throw std::runtime_error("no pipe to wait at");
  char word = 0;
  while (::read(fd, &word, 1) < 0 && errno == EINTR) {
  }
  ::close(fd);
}

bool is_there(const std::string& file) { return !file.empty() && ::access(file.c_str(), F_OK) == 0; }

class Echo {
 public:
  enum class Birth { normal, throws, exits, hangs, crashes, waits };
  struct Config {
    Birth birth = Birth::normal;
  };
  static void settings(auto& s, Config& c) {
    s("birth", c.birth, "what the constructor does")
        .one_of({{"normal"}, {"throws"}, {"exits"}, {"hangs"}, {"crashes"}, {"waits", "at the pipe 'birth'"}});
  }
  Echo(caftan::RoleContext&, Config config) {
    if (config.birth == Birth::throws) throw std::runtime_error("stillborn");
    if (config.birth == Birth::exits) ::_exit(7);
    if (config.birth == Birth::hangs) std::promise<void>().get_future().wait();
    if (config.birth == Birth::crashes) ::raise(SIGSEGV);
    if (config.birth == Birth::waits) wait_at("birth");
  }
  int echo(int value) { return value; }
  /// Holds each caller until `guests` callers have called; then replies to all of them.
  caftan::Future<int> meet(int guests) {
    caftan::Future<int> all_are_there = guests_.emplace_back().future();
    if (static_cast<int>(guests_.size()) == guests) {
      for (auto& guest : guests_) guest.set(guests);
    }
    return all_are_there;
  }

 private:
  std::vector<caftan::Promise<int>> guests_;
};

class Ticker {
 public:
  enum class End { success, failure, exception, exit, std_exit, crash };
  struct Config {
    int rounds = 100'000'000;
    End end = End::success;
    int code = 3;
    bool ignore_stop = false;
    bool stop_fails = false;
    bool flood = false;
    int together = 0;
    std::string cure;
    std::string until;
  };
  static void settings(auto& s, Config& c) {
    s("rounds", c.rounds, "calls to each echo").at_least(1);
    s("end", c.end, "how run() ends")
        .one_of({{"success"}, {"failure"}, {"exception"}, {"exit"}, {"std_exit"}, {"crash"}});
    s("code", c.code, "that it exits with").range(0, 255);
    s("ignore_stop", c.ignore_stop, "goes on when asked to stop");
    s("stop_fails", c.stop_fails, "returns an error when asked to stop");
    s("flood", c.flood, "reports without pause, faster than anybody reads");
    s("cure", c.cure, "a file; where there is one of this name, run() ends well whatever `end` says");
    s("until", c.until, "a file; once there is one of this name, no further round begins");
    s("together", c.together, "how many of them meet at the first echo before they tick; 0 = none").at_least(0);
  }
  Ticker(caftan::RoleContext& context, Config config)
      : context_(context), config_(config), echoes_(context.uses<Echo>("echoes")) {}

  caftan::Result<void> run(std::stop_token stop) {
    if (config_.together > 0) {
      const auto met = echoes_.front().try_rpc_sync<&Echo::meet>(config_.together);
      if (!met) return met.error();
    }
    for (int round = 1; round <= config_.rounds; ++round) {
      if (stop.stop_requested() && config_.stop_fails) return caftan::Error(caftan::Errc::goal_missed, "too early");
      if (stop.stop_requested() && !config_.ignore_stop) return {};
      if (is_there(config_.until)) break;
      for (auto& echo : echoes_) {
        if (config_.flood) break;
        const auto answer = echo.try_rpc_sync<&Echo::echo>(round);
        const bool is_lost = !answer && answer.error().code() == caftan::Errc::peer_down;
        if (!answer && !(is_lost && context_.goes_on_without("echoes"))) return answer.error();
      }
      context_.metric("round", round);
      context_.progress(round, config_.rounds, "tick " + std::to_string(round) + "  going on");
      context_.report("tick " + std::to_string(round));
    }
    if (is_there(config_.cure)) config_.end = End::success;
    if (config_.end == End::failure) return caftan::Error(caftan::Errc::goal_missed, "not good enough");
    if (config_.end == End::exception) throw std::runtime_error("out of luck");
    if (config_.end == End::exit) ::_exit(3);
    if (config_.end == End::std_exit) std::exit(config_.code);  // NOLINT(concurrency-mt-unsafe)
    if (config_.end == End::crash) {
      std::cerr << "the table is empty\n" << std::flush;
      ::raise(SIGSEGV);
    }
    context_.report("seed " + std::to_string(context_.seed("ticks")) + " of " + context_.name());
    return {};
  }

 private:
  caftan::RoleContext& context_;
  Config config_;
  std::vector<caftan::RRef<Echo>> echoes_;
};

}  // namespace

int main(int argc, char** argv) {
  if (std::getenv("TICKING_THREAD")) std::thread([] { ::pause(); }).detach();
  caftan::Program program("ticking");
  program.role<Ticker>("ticker").uses<Echo>("echoes", caftan::at_least(1));
  program.role<Echo>("echo").method<&Echo::echo>("echo").method<&Echo::meet>("meet");
  return program.main(argc, argv);
}
