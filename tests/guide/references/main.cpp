// References to values of other workers: fetching, handing on, how long the value lives, and the end of its owner.
#include <caftan/caftan.hpp>
#include <cstdio>
#include <latch>
#include <memory>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

int add(int a, int b) { return a + b; }
int add_to(const caftan::RRef<int>& a, int b) { return a.to_here() + b; }
int fail() { throw std::runtime_error("no luck"); }

class Journal {
 public:
  explicit Journal(std::string title) : lines_{std::move(title)} {}
  ~Journal() { ended.count_down(); }
  Journal(const Journal&) = delete;
  Journal& operator=(const Journal&) = delete;
  int write(const std::string& line) {
    lines_.push_back(line);
    return static_cast<int>(lines_.size());
  }

  static inline std::latch ended{1};  // so that this program can wait for the end of its only journal

 private:
  std::vector<std::string> lines_;
};

/// Keeps a reference beyond the call that brought it.
class Shelf {
 public:
  void keep(const caftan::RRef<Journal>& journal) { journal_ = journal; }
  int write(const std::string& line) { return journal_.rpc_sync<&Journal::write>(line); }
  void clear() { journal_ = {}; }

 private:
  caftan::RRef<Journal> journal_;
};

caftan::Registry functions() {
  caftan::Registry registry;
  registry.add<&add>("add");
  registry.add<&add_to>("add_to");
  registry.add<&fail>("fail");
  registry.add<Journal>("journal").constructor<std::string>().method<&Journal::write>("write");
  registry.add<Shelf>("shelf")
      .constructor<>()
      .method<&Shelf::keep>("keep")
      .method<&Shelf::write>("write")
      .method<&Shelf::clear>("clear");
  return registry;
}

std::unique_ptr<caftan::Worker> launch(const std::string& name, const std::string& first) {
  caftan::WorkerOptions options;
  options.name = name;
  options.world = {{"a", first}, {"b", ""}, {"c", ""}};
  return caftan::Worker::launch(std::move(options), functions()).value();
}

bool values_stay_where_they_are(const caftan::Worker& a) {
  const caftan::RRef<int> sum = a.remote<&add>("b", 20, 1);        // returns at once; the sum is made and stays at b
  const caftan::RRef<int> more = a.remote<&add_to>("c", sum, 21);  // c fetches the value from b itself
  return sum.to_here() == 21 && more.to_here() == 42;
}

bool a_reference_keeps_its_value(const caftan::Worker& a) {
  caftan::RRef<Journal> journal = a.remote<Journal>("b", "of today");
  const caftan::RRef<Shelf> shelf = a.remote<Shelf>("c");
  shelf.rpc_sync<&Shelf::keep>(journal);
  journal = {};  // c has a reference still, a has none
  const bool is_there = shelf.rpc_sync<&Shelf::write>("still here") == 2;
  shelf.rpc_sync<&Shelf::clear>();  // that was the last one
  Journal::ended.wait();            // b destroys the journal
  return is_there;
}

bool only_the_owner_has_the_object(const caftan::Worker& a) {
  const caftan::RRef<int> own = a.make_rref(5);
  const caftan::RRef<int> other = a.remote<&add>("b", 2, 3);
  return own.is_owner() && *own.local_value() == 5 && other.try_local_value().error().code() == caftan::Errc::not_owner;
}

bool errors_come_with_the_value(const caftan::Worker& a) {
  const caftan::RRef<int> none = a.remote<&fail>("b");  // no error here: `fail` has not run yet
  const caftan::Result<void> made = none.created().result();
  return !made && !none.try_to_here();
}

bool the_owner_ends(const caftan::Worker& a, caftan::Worker& b) {
  const caftan::RRef<int> sum = a.remote<&add>("b", 1, 2);
  sum.created().get();
  b.stop();
  const caftan::Result<int> gone = sum.try_to_here();
  if (!gone) std::printf("%s\n", gone.error().message().c_str());
  return !gone;
}

int main() {
  const auto a = launch("a", "tcp:127.0.0.1:0");
  const auto b = launch("b", a->address());
  const auto c = launch("c", a->address());
  for (caftan::Worker* worker : {a.get(), b.get(), c.get()}) worker->wait_until_ready().value();
  const bool right = values_stay_where_they_are(*a) && a_reference_keeps_its_value(*a) &&
                     only_the_owner_has_the_object(*a) && errors_come_with_the_value(*a) && the_owner_ends(*a, *b);
  return right ? 0 : 1;
}
