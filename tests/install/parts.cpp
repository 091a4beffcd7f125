// Links what caftan::caftan brings beside the headers of caftan/caftan.hpp.
#include <caftan/base/keyed_random.hpp>
#include <caftan/rl/random.hpp>
int main() {
  caftan::rl::Pcg64 random(1);
  const float keyed = caftan::base::random_uniform({.seed = 1});
  return random.uniform() < 1 && keyed < 1 ? 0 : 1;
}
