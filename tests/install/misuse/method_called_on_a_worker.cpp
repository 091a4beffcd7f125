// expect: a method is called on a reference to its object
#include <caftan/caftan.hpp>
struct Net {
  int forward(int input) { return input; }
};
int use(caftan::Worker& worker) { return worker.rpc_sync<&Net::forward>("worker1", 1); }
