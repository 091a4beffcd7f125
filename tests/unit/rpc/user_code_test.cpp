// What user code throws becomes an error that names the thrower and what to do.
#include "caftan/rpc/user_code.hpp"

#include <c10/util/Exception.h>
#include <gtest/gtest.h>

#include <new>
#include <stdexcept>

namespace caftan::rpc::user_code_test {
namespace {

template <class Thrown>
Error failure_of(Thrown thrown) {
  return run_user_code("w", "math.add", [&]() -> int { throw Thrown(std::move(thrown)); }).error();
}

TEST(UserCode, U9_AnExceptionIsNamedWithTheWorkerTheFunctionAndItsType) {
  const Error error = failure_of(std::runtime_error("no such row"));
  EXPECT_EQ(error.code(), Errc::remote_exception);
  EXPECT_EQ(error.worker(), "w");
  EXPECT_EQ(error.text(), "math.add: std::runtime_error: no such row");
  EXPECT_EQ(failure_of(7).text(), "math.add: threw a value of type int");
  struct Silent : std::exception {
    const char* what() const noexcept override { return nullptr; }
  };
  EXPECT_TRUE(failure_of(Silent()).text().ends_with("Silent: an exception without a text"));
}

TEST(UserCode, U19_AnErrorOfTheApplicationsOwnStaysWhatItIs) {
  const Error own = failure_of(RpcException(user_error("bank.no_funds", "3 missing")));
  EXPECT_EQ(own.code(), Errc::user_error);
  EXPECT_EQ(own.kind(), "bank.no_funds");
  EXPECT_EQ(own.worker(), "w");
  EXPECT_EQ(own.text(), "3 missing");
  // The error of a call inside the function becomes the cause of the function's error.
  const Error nested = failure_of(RpcException(user_error("bank.no_funds", "3 missing").at("bank")));
  EXPECT_EQ(nested.code(), Errc::remote_exception);
  ASSERT_NE(nested.cause(), nullptr);
  EXPECT_EQ(nested.cause()->kind(), "bank.no_funds");
}

TEST(UserCode, MemoryThatIsNotThereIsLimitExceeded) {
  const Error error = failure_of(std::bad_alloc());
  EXPECT_EQ(error.code(), Errc::limit_exceeded);
  EXPECT_EQ(error.text(), "math.add: no memory");
  // The text that libtorch's allocator throws. It is thrown by hand here, because sanitizers end a process that asks
  // for so much memory.
  const std::string torch = "DefaultCPUAllocator: can't allocate memory: you tried to allocate 68719476736 bytes.";
  const Error tensors = failure_of(c10::Error({}, torch));
  EXPECT_EQ(tensors.code(), Errc::limit_exceeded);
  EXPECT_EQ(tensors.text(), "math.add: no memory: " + torch);
  EXPECT_EQ(failure_of(c10::OutOfMemoryError({}, "device")).code(), Errc::limit_exceeded);
  EXPECT_EQ(failure_of(c10::Error({}, "shapes differ")).code(), Errc::remote_exception);
}

}  // namespace
}  // namespace caftan::rpc::user_code_test
