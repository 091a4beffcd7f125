// expect: a method is registered with its class
#include <caftan/caftan.hpp>
struct Net {
  int forward(int input) { return input; }
};
void use(caftan::Registry& registry) { registry.add<&Net::forward>("net.forward"); }
