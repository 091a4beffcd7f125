// expect: a parameter of a remote function is a reference: pass a value or a const reference
#include <caftan/caftan.hpp>
void twice(int& number) { number *= 2; }
void use(caftan::Registry& registry) { registry.add<&twice>("math.twice"); }
