// The process of Gymnasium: the program that ships, with a module of the name gymnasium that needs no package; and
// Gymnasium itself where python3 has it.
#include <gtest/gtest.h>

#include <fcntl.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>

#include "caftan/rl/environments.hpp"
#include "caftan/rl/internal/gymnasium_frames.hpp"

namespace caftan::rl::gymnasium_test {
namespace {

/// An interpreter that finds `modules` before all others.
std::string interpreter(const std::string& name, const std::string& modules) {
  const auto path = std::filesystem::path(::testing::TempDir()) / name;
  std::ofstream(path) << "#!/bin/sh\nPYTHONPATH='" << modules << "' exec python3 -S \"$@\"\n";
  std::filesystem::permissions(path, std::filesystem::perms::owner_all);
  return path.string();
}

GymnasiumOptions stub() {
  GymnasiumOptions options;
  options.python = interpreter("python_with_stub", CAFTAN_GYMNASIUM_STUB);
  return options;
}

TEST(Gymnasium, GY4_StepsEnvironmentsAndResetsThoseThatEnd) {
  const auto vector = Environments().make_vector("gymnasium:Count-v0", 2, stub());
  ASSERT_TRUE(vector) << vector.error().message();
  const EnvironmentSpec expected{
      .id = "gymnasium:Count-v0", .observation_size = 2, .actions = 3, .max_steps = 4, .solved_at = 9.5};
  EXPECT_EQ((*vector)->spec(), expected);
  EXPECT_EQ((*vector)->step(std::array{0, 0}).error().code(), Errc::bad_arguments) << "before the first reset";
  const auto first = (*vector)->reset(30);
  ASSERT_TRUE(first) << first.error().message();
  EXPECT_EQ(std::vector<float>(first->begin(), first->end()), (std::vector<float>{0, 30, 0, 31}));
  for (int step = 1; step <= 4; ++step) {
    const auto taken = (*vector)->step(std::array{0, 2});
    ASSERT_TRUE(taken) << taken.error().message();
    EXPECT_EQ(taken->rewards[0], 5.0) << "actions begin at the space's start";
    EXPECT_EQ(taken->rewards[1], 7.0);
    EXPECT_EQ(taken->terminated[1] != 0, step == 4);
    EXPECT_EQ(taken->observations[0], step % 4);
    if (step < 4) continue;
    EXPECT_EQ(taken->last_observations[2], 4.0F);
    EXPECT_EQ(taken->last_observations[3], 31.0F);
    EXPECT_EQ(taken->observations[3], 31.125F) << "the next episode, with the next numbers";
  }
  EXPECT_FALSE((*vector)->step(std::array{0, 3}));
  EXPECT_TRUE((*vector)->step(std::array{0, 1})) << "a refused action ends nothing";
}

TEST(Gymnasium, GY4_ASingleEnvironmentIsResetByItsCaller) {
  const auto environment = Environments().make("gymnasium:Cut-v0", stub()).value();
  ASSERT_TRUE(environment->reset(3));
  ASSERT_TRUE(environment->step(0));
  ASSERT_TRUE(environment->step(0));
  const auto third = environment->step(0);
  ASSERT_TRUE(third) << third.error().message();
  EXPECT_TRUE(third->truncated);
  EXPECT_FALSE(third->terminated);
  EXPECT_EQ(third->observation[0], 3.0F);
  EXPECT_EQ(environment->step(0).error().code(), Errc::bad_arguments);
  EXPECT_EQ(environment->reset().value()[1], 3.125F);
}

TEST(Gymnasium, GY5_ContinuousActionsAreFloats) {
  const auto vector = Environments().make_vector("gymnasium:Torque-v0", 2, stub()).value();
  EXPECT_EQ(vector->spec().action_low, (std::vector<float>{-2}));
  ASSERT_TRUE(vector->reset(0));
  const auto taken = vector->step_continuous(std::array{0.5F, -1.5F});
  ASSERT_TRUE(taken) << taken.error().message();
  EXPECT_EQ(taken->rewards[1], -1.5);
}

/// The error of the second step of an environment that does something wrong there.
Error second_step(const std::string& id, base::Duration limit = std::chrono::seconds(30)) {
  GymnasiumOptions options = stub();
  options.reply_limit = limit;
  const auto vector = Environments().make_vector("gymnasium:" + id, 2, options);
  if (!vector) return vector.error();
  EXPECT_TRUE((*vector)->reset(0));
  EXPECT_TRUE((*vector)->step(std::array{0, 0}));
  const auto second = (*vector)->step(std::array{0, 0});
  EXPECT_FALSE(second);
  const auto later = (*vector)->reset(0);
  EXPECT_FALSE(later);
  EXPECT_EQ(later.error().message(), second.error().message()) << "GY-6: each later call fails alike";
  return second.error();
}

TEST(Gymnasium, GY6_FaultsAreTypedAndEndTheProcess) {
  const Error raised = second_step("Raises-v0");
  EXPECT_EQ(raised.code(), Errc::remote_exception);
  EXPECT_EQ(raised.text(), "environment 'gymnasium:Raises-v0' (number 0): step: ValueError: no more fuel");
  const Error died = second_step("Dies-v0");
  EXPECT_EQ(died.code(), Errc::peer_down);
  EXPECT_NE(died.text().find("exit code 7"), std::string::npos) << died.text();
  const Error hangs = second_step("Hangs-v0", std::chrono::milliseconds(300));
  EXPECT_EQ(hangs.code(), Errc::timeout);
  EXPECT_NE(hangs.text().find("reply_limit"), std::string::npos) << hangs.text();
  EXPECT_EQ(second_step("Nan-v0").text(),
            "environment 'gymnasium:Nan-v0' (number 0): value 0 of the observation is nan");
  EXPECT_EQ(second_step("NanReward-v0").kind(), "environment.not_finite");
  EXPECT_EQ(second_step("Shape-v0").kind(), "environment.shape");
}

TEST(Gymnasium, GY7_SaysWhatToInstall) {
  const Error unknown = make_gymnasium("Other-v0", 1, stub()).error();
  EXPECT_EQ(unknown.code(), Errc::invalid_config);
  EXPECT_NE(unknown.text().find("`Other-v0` doesn't exist"), std::string::npos) << unknown.text();
  GymnasiumOptions options;
  options.python = interpreter("python_without", "/nowhere");
  const Error missing = make_gymnasium("CartPole-v1", 1, options).error();
  EXPECT_EQ(missing.code(), Errc::invalid_config);
  EXPECT_NE(missing.text().find("pip install gymnasium"), std::string::npos) << missing.text();
  options.python = "/nowhere/python3";
  const Error no_python = make_gymnasium("CartPole-v1", 1, options).error();
  EXPECT_EQ(no_python.code(), Errc::invalid_config);
  EXPECT_NE(no_python.text().find("'/nowhere/python3'"), std::string::npos) << no_python.text();
  const Error unsupported = make_gymnasium("Words-v0", 1, stub()).error();
  EXPECT_EQ(unsupported.code(), Errc::invalid_config);
  EXPECT_NE(unsupported.text().find("Text(1, 8)"), std::string::npos) << unsupported.text();
}

TEST(Gymnasium, GY1_TheProcessEndsWithItsConnectionWhileAnEnvironmentHangs) {
  using gymnasium::Header;
  using gymnasium::Kind;
  std::array<int, 2> sockets{};
  ASSERT_EQ(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, sockets.data()), 0);
  const std::string python = stub().python;
  const std::string descriptor = std::to_string(sockets[1]);
  const pid_t child = ::fork();
  if (child == 0) {
    ::fcntl(sockets[1], F_SETFD, 0);
    ::execl(python.c_str(), python.c_str(), CAFTAN_GYMNASIUM_WORKER, descriptor.c_str(), nullptr);
    ::_exit(99);
  }
  ::close(sockets[1]);
  const auto send = [&](Kind kind, std::span<const std::byte> body) {
    const auto head = gymnasium::encode(Header{.size = static_cast<std::uint32_t>(body.size()), .kind = kind});
    EXPECT_EQ(::write(sockets[0], head.data(), head.size()), static_cast<ssize_t>(head.size()));
    EXPECT_EQ(::write(sockets[0], body.data(), body.size()), static_cast<ssize_t>(body.size()));
  };
  const auto receive = [&](std::size_t size) {
    std::vector<std::byte> bytes(size);
    EXPECT_EQ(::recv(sockets[0], bytes.data(), size, MSG_WAITALL), static_cast<ssize_t>(size));
    return bytes;
  };
  const auto reply = [&] { receive(gymnasium::decode_header(receive(Header::kSize)).value().size); };
  send(Kind::hello, gymnasium::encode_hello(1, true, "Hangs-v0"));
  reply();
  const gymnasium::ResetOrder order{.environment = 0, .seed = 1};
  send(Kind::reset, gymnasium::encode_reset(std::span(&order, 1)));
  reply();
  const std::int32_t action = 0;
  send(Kind::step, std::as_bytes(std::span(&action, 1)));
  reply();
  ::kill(child, SIGINT);  // a terminal sends this to all processes of a run
  send(Kind::step, std::as_bytes(std::span(&action, 1)));
  ::close(sockets[0]);
  int status = 0;
  ASSERT_EQ(::waitpid(child, &status, 0), child);  // the hang lasts for ever
  ASSERT_TRUE(WIFEXITED(status));
  EXPECT_EQ(WEXITSTATUS(status), 1);
}

/// A program in place of the one that ships.
Error with_script(const std::string& text) {
  const auto path = std::filesystem::path(::testing::TempDir()) / "peer.py";
  std::ofstream(path) << "import socket, sys, time\nlink = socket.socket(fileno=int(sys.argv[-1]))\n" << text;
  GymnasiumOptions options;
  options.script = path;
  options.start_limit = std::chrono::seconds(30);
  return make_gymnasium("X", 1, options).error();
}

TEST(Gymnasium, GY2_APeerThatSpeaksOtherBytesIsRefused) {
  EXPECT_EQ(with_script("link.sendall(b'HTTP/1.1 400 Bad Request')\n").code(), Errc::malformed_payload);
  EXPECT_EQ(
      with_script("link.sendall(bytes([255, 255, 255, 255, 2, 0, 0, 0]))\nlink.recv(9999)\nlink.recv(9999)\n").code(),
      Errc::malformed_payload);
  EXPECT_EQ(
      with_script("import struct\nlink.recv(9999)\nlink.sendall(struct.pack('<IHHIIIIIId', 32, 2, 0, 1, 1 << 29, 0, 2, "
                  "0, 0, 0.0))\nlink.recv(9999)\n")
          .code(),
      Errc::limit_exceeded);
  EXPECT_EQ(with_script("link.recv(9999)\nsys.exit(3)\n").code(), Errc::peer_down);
  EXPECT_EQ(with_script("link.sendall(bytes(3))\nlink.shutdown(socket.SHUT_WR)\n").code(), Errc::peer_down);
}

TEST(GymnasiumItself, CartPoleHasTheBitsOfTheNativeOne) {
  const Environments known;
  const auto remote = known.make_vector("gymnasium:CartPole-v1", 3);
  if (!remote) {
    ASSERT_EQ(remote.error().code(), Errc::invalid_config) << remote.error().message();
    GTEST_SKIP() << remote.error().message();
  }
  const auto native = known.make_vector("CartPole-v1", 3).value();
  EXPECT_EQ((*remote)->spec().max_steps, native->spec().max_steps);
  EXPECT_EQ((*remote)->spec().solved_at, native->spec().solved_at);
  const auto theirs = (*remote)->reset(11).value();
  const auto ours = native->reset(11).value();
  EXPECT_TRUE(std::equal(theirs.begin(), theirs.end(), ours.begin(), ours.end()));
  for (int step = 0; step < 60; ++step) {
    const std::array actions = {step % 2, (step / 2) % 2, 1 - step % 2};
    const auto one = (*remote)->step(actions).value();
    const auto other = native->step(actions).value();
    for (std::size_t i = 0; i < 12; ++i) EXPECT_NEAR(one.observations[i], other.observations[i], 1e-6) << step;
    for (std::size_t i = 0; i < 3; ++i) EXPECT_EQ(one.terminated[i], other.terminated[i]) << step;
  }
}

TEST(GymnasiumItself, PendulumTakesTorques) {
  const Environments known;
  const auto remote = known.make("gymnasium:Pendulum-v1");
  if (!remote) GTEST_SKIP() << remote.error().message();
  const auto native = known.make("Pendulum-v1").value();
  EXPECT_EQ((*remote)->spec().action_high, native->spec().action_high);
  ASSERT_TRUE((*remote)->reset(5));
  ASSERT_TRUE(native->reset(5));
  for (int step = 0; step < 20; ++step) {
    const auto one = (*remote)->step_continuous(std::array{0.5F});
    ASSERT_TRUE(one) << one.error().message();
    EXPECT_NEAR(one->reward, native->step_continuous(std::array{0.5F})->reward, 1e-5) << step;
  }
}

}  // namespace
}  // namespace caftan::rl::gymnasium_test
