// Uses libraries that caftan::caftan links and whose headers caftan/caftan.hpp does not include.
#include <caftan/nn/keyed_random.hpp>
#include <caftan/rl/random.hpp>
int main() {
  caftan::rl::Pcg64 random(1);
  const float keyed = caftan::nn::random_uniform({.seed = 1});
  return random.uniform() < 1 && keyed < 1 ? 0 : 1;
}
