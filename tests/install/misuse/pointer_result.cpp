// expect: a remote function returns a pointer: return the value, or an RRef to it
#include <caftan/caftan.hpp>
int* make() { return nullptr; }
void use(caftan::Registry& registry) { registry.add<&make>("math.make"); }
