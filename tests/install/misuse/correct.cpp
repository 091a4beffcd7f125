// expect: nothing; it shows that the other cases fail for their own reason
#include <caftan/caftan.hpp>
#include <string>
using namespace caftan;
using namespace std;
// A program may have classes of these names: no name of Caftan's may be in the way.
class Clock {};
class Destination {};
class Duration {};
class Executor {};
class Function {};
class Mutex {};
class Task {};
class TimePoint {};
class Timer {};
void own(Clock, Destination, Duration, Executor, Function, Mutex, Task, TimePoint, Timer) {}
int add(int a, int b) { return a + b; }
struct Point {
  double x = 0;
  double y = 0;
  template <class Archive>
  void serialize(Archive& archive, unsigned) {
    archive& x& y;
  }
};
double length(const Point& point) { return point.x * point.x + point.y * point.y; }
class Net {
 public:
  explicit Net(int width) : width_(width) {}
  int forward(int input) { return input * width_; }

 private:
  int width_;
};
int use(caftan::Worker& worker, caftan::Registry& registry) {
  registry.add<&add>("math.add");
  registry.add<&length>("math.length");
  registry.add<Net>("net").constructor<int>().method<&Net::forward>("forward");
  auto net = worker.remote<Net>("worker1", 4);
  return worker.rpc_sync<&add>("worker1", 1, 2) + net.rpc_sync<&Net::forward>(3);
}
