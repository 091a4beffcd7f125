// expect: a remote call has the wrong number of arguments
// once: static assertion failed
#include <caftan/caftan.hpp>
int add(int a, int b) { return a + b; }
int use(caftan::Worker& worker) { return worker.rpc_sync<&add>("worker1", 1); }
