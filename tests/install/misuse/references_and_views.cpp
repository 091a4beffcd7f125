// expect: a parameter of a remote function is a reference: pass a value or a const reference
// expect: a parameter of a remote function is a view of memory that stays with the caller
// expect: a remote function returns a view of memory that stays with the callee: return a std::string or a std::vector
// expect: a view of memory cannot travel: send a std::string or a std::vector
// not said: needs a serialize
// not said: has no serialize
// not said: cannot bind
// not said: wrong type
#include <caftan/caftan.hpp>
#include <span>
#include <string_view>
#include <vector>
void twice(int& number) { number *= 2; }
int count(std::string_view text) { return static_cast<int>(text.size()); }
int sum(const std::span<const int>& numbers) { return numbers[0]; }
int lines(const std::vector<std::string_view>& text) { return static_cast<int>(text.size()); }
std::string_view title() { return "some text"; }
int use(caftan::Registry& registry, caftan::Worker& worker) {
  registry.add<&twice>("math.twice");
  registry.add<&sum>("math.sum");
  registry.add<&lines>("text.lines");
  const std::string_view text = worker.rpc_sync<&title>("worker1");
  return worker.rpc_sync<&count>("worker1", text);
}
