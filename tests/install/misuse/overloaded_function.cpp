// expect: unable to deduce
// expect: no overload, no template
#include <caftan/caftan.hpp>
int add(int a, int b) { return a + b; }
double add(double a, double b) { return a + b; }
template <class T>
T twice(T value) {
  return value + value;
}
void use(caftan::Registry& registry) {
  registry.add<&add>("math.add");
  registry.add<&twice>("math.twice");
}
