// expect: unable to deduce
#include <caftan/caftan.hpp>
int add(int a, int b) { return a + b; }
double add(double a, double b) { return a + b; }
void use(caftan::Registry& registry) { registry.add<&add>("math.add"); }
