// expect: a lambda or function object cannot be registered or called remotely: write a function
#include <caftan/caftan.hpp>
void use(caftan::Registry& registry) {
  registry.add<[](int a) { return a; }>("math.same");
}
