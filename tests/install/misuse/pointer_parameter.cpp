// expect: a parameter of a remote function is a pointer: pass the value, or an RRef to it
// not said: cannot travel
#include <caftan/caftan.hpp>
int first(const int* numbers) { return *numbers; }
void use(caftan::Registry& registry) { registry.add<&first>("math.first"); }
