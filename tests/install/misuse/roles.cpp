// expect: the Config of a role is private: make it public
// expect: run() of a role is public and has the form: caftan::Result<void> run(std::stop_token stop)
#include <caftan/caftan.hpp>
class Hidden {
 public:
  explicit Hidden(caftan::RoleContext&) {}

 private:
  struct Config {};
};
class Twofold {
 public:
  explicit Twofold(caftan::RoleContext&) {}
  void run(std::stop_token) {}
  void run(int) {}
};
void use(caftan::Program& program) {
  program.role<Hidden>("hidden");
  program.role<Twofold>("twofold");
}
