// Which request for a named object makes it, and what the others get (CALL-20 to CALL-22).
#include "caftan/rpc/internal/named_objects.hpp"

#include <gtest/gtest.h>

#include <memory>
#include <optional>
#include <string>
#include <utility>

namespace caftan::rpc::named_objects_test {
namespace {

using Object = std::shared_ptr<RRefHandle>;

constexpr NamedObjects::Type kBoard{"Board", 1};
constexpr NamedObjects::Type kCounter{"Counter", 2};

/// A reference that the class only copies and counts.
Object make_object() {
  const auto owner = std::make_shared<int>(0);
  return Object(owner, reinterpret_cast<RRefHandle*>(owner.get()));
}

class NamedObjectsTest : public ::testing::Test {
 protected:
  using Reply = std::optional<Result<Object>>;

  /// Returns whether this request has to make the object; else `reply` gets its reply.
  bool ask(const std::string& name, const NamedObjects::Type& type, Reply& reply) {
    return objects_.ask(name, type, std::make_unique<Kept>(reply)) != nullptr;
  }

  NamedObjects objects_;

 private:
  class Kept final : public NamedObjects::Request {
   public:
    explicit Kept(Reply& reply) : reply_(reply) {}
    void answer(const Result<Object>& object) override {
      EXPECT_FALSE(reply_) << "answered twice";
      reply_ = object;
    }

   private:
    Reply& reply_;
  };
};

TEST_F(NamedObjectsTest, CALL20_TheFirstRequestMakesItAndTheOthersGetIt) {
  Reply first, early, late, other;
  EXPECT_TRUE(ask("board", kBoard, first));
  EXPECT_FALSE(ask("board", kBoard, early));
  EXPECT_FALSE(early) << "it is being made";
  EXPECT_TRUE(ask("other", kBoard, other)) << "another name is another object";
  const Object object = make_object();
  objects_.made("board", object);
  EXPECT_FALSE(first) << "its caller answers it";
  ASSERT_TRUE(early && *early);
  EXPECT_TRUE(**early == object);
  EXPECT_FALSE(ask("board", kBoard, late));
  ASSERT_TRUE(late && *late);
  EXPECT_TRUE(**late == object);
  EXPECT_FALSE(other);
}

TEST_F(NamedObjectsTest, CALL21_AFailedConstructionFailsThoseThatWaitAndFreesTheName) {
  Reply first, second, third;
  EXPECT_TRUE(ask("board", kBoard, first));
  EXPECT_FALSE(ask("board", kBoard, second));
  objects_.made("board", Error(Errc::remote_exception, "no board"));
  ASSERT_TRUE(second);
  ASSERT_FALSE(*second);
  EXPECT_EQ(second->error().text(), "no board");
  EXPECT_TRUE(ask("board", kCounter, third)) << "also for another class";
}

TEST_F(NamedObjectsTest, CALL20_AnotherTypeIsRefusedWithBothNames) {
  Reply first, during, after;
  EXPECT_TRUE(ask("board", kBoard, first));
  EXPECT_FALSE(ask("board", kCounter, during));
  objects_.made("board", make_object());
  EXPECT_FALSE(ask("board", kCounter, after));
  for (const Reply& reply : {during, after}) {
    ASSERT_TRUE(reply);
    ASSERT_FALSE(*reply);
    EXPECT_EQ(reply->error().code(), Errc::wrong_type);
    EXPECT_EQ(reply->error().text(),
              "the object \"board\" is a Board here, and the caller asks for a Counter: give one of them another name");
  }
}

TEST_F(NamedObjectsTest, CALL22_TheNameKeepsTheObjectUntilTheWorkerLeaves) {
  Reply first, waiting, late, nameless;
  Object object = make_object();
  const std::weak_ptr<RRefHandle> kept = object;
  EXPECT_TRUE(ask("board", kBoard, first));
  objects_.made("board", std::exchange(object, nullptr));
  EXPECT_FALSE(kept.expired());
  EXPECT_TRUE(ask("slow", kBoard, first));
  EXPECT_FALSE(ask("slow", kBoard, waiting));
  EXPECT_FALSE(ask("", kBoard, nameless));
  EXPECT_EQ(nameless->error().code(), Errc::bad_arguments);
  objects_.close();
  EXPECT_TRUE(kept.expired());
  EXPECT_FALSE(ask("board", kBoard, late));
  EXPECT_EQ(late->error().code(), Errc::shut_down);
  object = make_object();
  const std::weak_ptr<RRefHandle> unnamed = object;
  objects_.made("slow", object);
  EXPECT_TRUE(waiting && *waiting) << "its construction had begun";
  waiting.reset();
  object.reset();
  EXPECT_TRUE(unnamed.expired());
}

}  // namespace
}  // namespace caftan::rpc::named_objects_test
