// RN-7: what is written when the output is not read.
#include "launch/output_stream.hpp"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <array>
#include <cerrno>

#include "launch/signal_source.hpp"

namespace caftan::actors::output_stream_test {
namespace {

class Output : public ::testing::Test {
 protected:
  Output() {
    if (::pipe2(ends_.data(), O_CLOEXEC) != 0) throw std::runtime_error("pipe2");
    ::fcntl(ends_[1], F_SETPIPE_SZ, 4096);
  }
  ~Output() override {
    if (ends_[0] >= 0) ::close(ends_[0]);
    ::close(ends_[1]);
  }
  std::string read() const {
    std::string bytes(65536, '\0');
    bytes.resize(static_cast<std::size_t>(::read(ends_[0], bytes.data(), bytes.size())));
    return bytes;
  }
  const SignalSource signals_;  // makes a write to a closed pipe an error instead of a signal
  std::array<int, 2> ends_{};
};

TEST_F(Output, K2_RN7_KeepsWhatFindsNoRoomAndItsOrder) {
  OutputStream stream(ends_[1]);
  const std::string full(4096, 'x');
  stream.write(full);
  EXPECT_EQ(stream.waiting(), 0U);
  stream.write("one\n");
  stream.write("two\n");
  EXPECT_EQ(stream.waiting(), 8U);
  EXPECT_FALSE(stream.offer("progress\n"));
  EXPECT_EQ(read(), full);
  stream.flush();
  EXPECT_EQ(stream.waiting(), 0U);
  EXPECT_EQ(read(), "one\ntwo\n");
  EXPECT_TRUE(stream.offer("progress\n"));
  EXPECT_EQ(read(), "progress\n");
}

TEST_F(Output, AClosedPipeIsNoError) {
  OutputStream stream(ends_[1]);
  ::close(std::exchange(ends_[0], -1));
  stream.write("x\n");
  EXPECT_EQ(stream.waiting(), 0U);
  EXPECT_EQ(stream.error(), 0);
}

TEST(OutputStreamTest, AFullDiskIs) {
  const int fd = ::open("/dev/full", O_WRONLY | O_CLOEXEC);
  OutputStream stream(fd);
  stream.write("x\n");
  EXPECT_EQ(stream.waiting(), 0U);
  EXPECT_EQ(stream.error(), ENOSPC);
  ::close(fd);
}

}  // namespace
}  // namespace caftan::actors::output_stream_test
