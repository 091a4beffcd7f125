#include <gtest/gtest.h>

#include <memory>
#include <thread>
#include <vector>

#include "caftan/rpc/ambient.hpp"

namespace caftan::cancel_flag_test {
namespace {

class Counted final : public CancelFlag::Part {
 public:
  Counted(CancelFlag& flag, std::atomic<int>& given_up) : flag_(flag), given_up_(given_up) {}
  ~Counted() override { flag_.remove(*this); }
  void give_up() noexcept override { ++given_up_; }

 private:
  CancelFlag& flag_;
  std::atomic<int>& given_up_;
};

std::shared_ptr<Counted> add_counted(CancelFlag& flag, std::atomic<int>& given_up) {
  auto part = std::make_shared<Counted>(flag, given_up);
  flag.add(part);
  return part;
}

/// Whether a flag takes a part that has no shared_ptr yet, as a constructor would pass it. The flag must not take it:
/// the thread that sets the flag would read the part while make_shared still writes it.
template <class Flag>
concept TakesWhatIsBeingMade = requires(Flag flag, CancelFlag::Part& part) {
  flag.add(part);
};
static_assert(!TakesWhatIsBeingMade<CancelFlag>);

TEST(CancelFlag, CALL5_GivesUpEachPartThatIsStillThereOnce) {
  CancelFlag flag;
  std::atomic<int> given_up{0};
  std::vector<std::shared_ptr<Counted>> parts;
  for (int i = 0; i < 5; ++i) parts.push_back(add_counted(flag, given_up));
  parts.erase(parts.begin() + 4);
  parts.erase(parts.begin() + 2);
  parts.erase(parts.begin());
  EXPECT_EQ(given_up, 0);
  flag.set();
  EXPECT_TRUE(flag.is_set());
  EXPECT_EQ(given_up, 2);
  flag.set();
  EXPECT_EQ(given_up, 2);
}

TEST(CancelFlag, CALL5_TakesNoPartsOnceItIsSet) {
  CancelFlag flag;
  flag.set();
  std::atomic<int> given_up{0};
  const auto late = add_counted(flag, given_up);
  flag.set();
  EXPECT_EQ(given_up, 0) << "its owner looks at the flag";
}

TEST(CancelFlag, CALL5_PartsMayEndWhileTheyAreGivenUp) {
  for (int round = 0; round < 200; ++round) {
    CancelFlag flag;
    std::atomic<int> given_up{0};
    std::vector<std::shared_ptr<Counted>> parts;
    for (int i = 0; i < 8; ++i) parts.push_back(add_counted(flag, given_up));
    std::thread ends([&] { parts.clear(); });
    flag.set();
    ends.join();
    EXPECT_LE(given_up, 8);
  }
}

}  // namespace
}  // namespace caftan::cancel_flag_test
