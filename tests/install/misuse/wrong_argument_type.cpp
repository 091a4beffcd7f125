// expect: an argument of a remote call has the wrong type
#include <caftan/caftan.hpp>
#include <string>
int add(int a, int b) { return a + b; }
int use(caftan::Worker& worker) { return worker.rpc_sync<&add>("worker1", 1, std::string("2")); }
