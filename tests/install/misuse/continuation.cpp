// expect: a continuation takes the result, which may be an error
#include <caftan/caftan.hpp>
void use(caftan::Future<int> future) {
  std::move(future).then([](int) {}).forget();
}
