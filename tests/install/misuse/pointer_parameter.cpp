// expect: a parameter of a remote function is a pointer, and pointers do not travel: pass the value, or an RRef to it
// once: static assertion failed
// not said: cannot travel
#include <caftan/caftan.hpp>
struct FlagWalk {
  int flags = 0;
};
int first(const FlagWalk* walk) { return walk->flags; }
int use(caftan::Registry& registry, caftan::Worker& worker, const FlagWalk& walk) {
  registry.add<&first>("first");
  return worker.rpc_sync<&first>("worker1", &walk);
}
