// expect: an argument of a remote call might lose a part of its value
#include <caftan/caftan.hpp>
int add(int a, int b) { return a + b; }
int use(caftan::Worker& worker) { return worker.rpc_sync<&add>("worker1", 1, 3.9); }
