// expect: this is not a method of the class
#include <caftan/caftan.hpp>
struct Net {
  int forward(int input) { return input; }
};
struct Head {};
void use(caftan::Registry& registry) { registry.add<Head>("head").method<&Net::forward>("forward"); }
