// expect: 'class Opaque' has no member named 'serialize'
#include <caftan/caftan.hpp>
#include <thread>
class Opaque {
 public:
  Opaque() = default;

 private:
  std::thread thread_;
};
int look(const Opaque&) { return 0; }
void use(caftan::Registry& registry) { registry.add<&look>("look"); }
