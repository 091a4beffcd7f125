// expect: a remote function returns a pointer, and pointers do not travel: return the value, or an RRef to it
// once: static assertion failed
// not said: cannot travel
// not said: has no serialize
#include <caftan/caftan.hpp>
struct FlagWalk {
  int flags = 0;
};
FlagWalk* make() { return nullptr; }
bool use(caftan::Registry& registry, caftan::Worker& worker) {
  registry.add<&make>("make");
  FlagWalk* const walk = worker.rpc_sync<&make>("worker1");
  return walk == nullptr;
}
