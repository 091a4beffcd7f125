#include "scale.hpp"

#include <sys/resource.h>

#include <cstdio>
#include <iostream>
#include <thread>
#include <utility>

namespace caftan::bench {
namespace {

using SteadyClock = std::chrono::steady_clock;

constexpr auto kProgressEvery = std::chrono::milliseconds{500};
constexpr auto kLongestWait = std::chrono::minutes{2};

void print(const Line& line) { std::cout << line.to_string() << std::endl; }

}  // namespace

Memory memory_here() { return {live_bytes(), resident_bytes()}; }

void Meter::part(const std::string& name, std::size_t units, Prints prints, const std::function<void()>& work) {
  left_out_ = 0;
  const Reading before = read_();
  work();
  Reading after = read_();
  after.messages -= left_out_;
  print(name, units, prints, before, after);
}

void Meter::print(const std::string& name, std::size_t units, Prints prints, const Reading& before,
                  const Reading& after) const {
  const auto each = [units](auto used) { return static_cast<double>(used) / static_cast<double>(units); };
  Line line;
  line.add("part", name).add("units", std::uint64_t{units});
  if (prints.wall) line.add("wall_us", each(Nanoseconds(after.time - before.time).count()) / 1e3);
  line.add("cpu_us", each((after.cpu - before.cpu).count()) / 1e3);
  line.add("messages", each(after.messages - before.messages));
  for (std::size_t i = 0; prints.memory && i < places_.size(); ++i) {
    line.add("live_" + places_[i], each(after.memory[i].live - before.memory[i].live));
    line.add("resident_" + places_[i], each(after.memory[i].resident - before.memory[i].resident));
  }
  bench::print(line);
}

Progress::Progress(std::string what, std::size_t of)
    : what_(std::move(what)), of_(of), next_(SteadyClock::now() + kProgressEvery) {}

void Progress::at(std::size_t done) {
  const auto now = SteadyClock::now();
  if (now < next_) return;
  next_ = now + kProgressEvery;
  bench::print(Line().add("progress", what_).add("done", std::uint64_t{done}).add("of", std::uint64_t{of_}));
}

void fail_scale(const std::string& what) {
  std::fprintf(stderr, "scale_bench: %s\n", what.c_str());
  std::exit(1);
}

void wait_until(const std::string& what, const std::function<bool()>& done, Nanoseconds pause) {
  const auto end = SteadyClock::now() + kLongestWait;
  while (!done()) {
    if (SteadyClock::now() > end) fail_scale(what + " took more than two minutes");
    std::this_thread::sleep_for(pause);
  }
}

void need_descriptors(std::size_t count) {
  rlimit limit{};
  getrlimit(RLIMIT_NOFILE, &limit);
  limit.rlim_cur = limit.rlim_max;
  setrlimit(RLIMIT_NOFILE, &limit);
  if (limit.rlim_max >= count) return;
  fail_scale(std::to_string(count) + " descriptors are needed and this process may have " +
             std::to_string(limit.rlim_max) + " (ulimit -Hn): raise that limit, or take a smaller --scale");
}

}  // namespace caftan::bench
