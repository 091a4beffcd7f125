// expect: a parameter of a remote function is a reference: pass a value or a const reference
// expect: a parameter of a remote function is a view of memory that stays with the caller
// not said: needs a serialize
// not said: cannot bind
// not said: wrong type
#include <caftan/caftan.hpp>
#include <span>
#include <string_view>
void twice(int& number) { number *= 2; }
int count(std::string_view text) { return static_cast<int>(text.size()); }
int sum(const std::span<const int>& numbers) { return numbers[0]; }
int use(caftan::Registry& registry, caftan::Worker& worker) {
  registry.add<&twice>("math.twice");
  registry.add<&sum>("math.sum");
  return worker.rpc_sync<&count>("worker1", "some text");
}
