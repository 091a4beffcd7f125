// One scenario of `./caftan bench scale` in one size: scale.py runs them and compares the costs of one unit.
//
//   scale_bench SCENARIO SIZE
#include <charconv>
#include <cstdio>
#include <map>
#include <string>

#include "scale.hpp"

int main(int argc, char** argv) {
  using namespace caftan::bench;
  const std::map<std::string, void (*)(std::size_t)> scenarios{
      {"workers", scale_workers},       {"processes", scale_processes}, {"connections", scale_connections},
      {"references", scale_references}, {"calls", scale_calls},         {"contexts", scale_contexts}};
  const auto scenario = argc == 3 ? scenarios.find(argv[1]) : scenarios.end();
  const std::string text = argc == 3 ? argv[2] : "";
  std::size_t size = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), size);
  if (scenario == scenarios.end() || error != std::errc() || *end != '\0' || size < 2 || size > 10'000'000) {
    std::fprintf(stderr,
                 "usage: scale_bench workers|processes|connections|references|calls|contexts SIZE, at least 2\n");
    return 2;
  }
  need_descriptors(256);
  scenario->second(size);
  return 0;
}
