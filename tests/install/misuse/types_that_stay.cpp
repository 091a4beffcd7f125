// expect: a class that travels needs a serialize
// expect: the value of this reference cannot travel, since it has no serialize
// expect: types_that_stay.cpp:17:
// expect: the result of this function cannot travel, since it has no serialize
#include <caftan/caftan.hpp>
#include <thread>
#include <vector>
class Opaque {
 public:
  Opaque() = default;

 private:
  std::thread thread_;
};
int look(const std::vector<Opaque>&) { return 0; }
Opaque make() { return {}; }
Opaque fetch(const caftan::RRef<Opaque>& opaque) { return opaque.to_here(); }
void use(caftan::Registry& registry, caftan::Worker& worker) {
  registry.add<&look>("look");
  (void)worker.rpc_async<&make>("worker1");
}
