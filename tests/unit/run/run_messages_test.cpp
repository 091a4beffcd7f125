// What the launcher and its worker processes send each other arrives as the message that it was.
#include "caftan/run/internal/run_messages.hpp"

#include <gtest/gtest.h>

#include <utility>
#include <variant>

#include "caftan/wire/archive.hpp"

namespace caftan::run::run_messages_test {
namespace {

template <class Message, std::size_t... Is>
void expect_each_arrives(std::index_sequence<Is...>) {
  const auto expect_arrives = [](const Message& sent) {
    const auto bytes = wire::encode(sent);
    ASSERT_TRUE(bytes) << sent.index();
    const auto received = wire::decode<Message>(*bytes);
    ASSERT_TRUE(received) << sent.index();
    EXPECT_EQ(received->index(), sent.index());
  };
  (expect_arrives(Message(std::in_place_index<Is>)), ...);
}

template <class Message>
void expect_no_other_is_read() {
  const wire::Bytes bytes{static_cast<std::byte>(std::variant_size_v<Message>)};
  const auto received = wire::decode<Message>(bytes);
  ASSERT_FALSE(received);
  EXPECT_EQ(received.error().code(), Errc::malformed_payload);
}

TEST(RunMessages, EachKindArrivesAsItself) {
  expect_each_arrives<EventBody>(std::make_index_sequence<std::variant_size_v<EventBody>>());
  expect_each_arrives<Command>(std::make_index_sequence<std::variant_size_v<Command>>());
}

TEST(RunMessages, AnUnknownKindIsMalformed) {
  expect_no_other_is_read<EventBody>();
  expect_no_other_is_read<Command>();
}

TEST(RunMessages, AnEventArrivesWithItsWorkerAndItsFields) {
  const Event sent{.worker = 3, .body = Progress{.done = 7, .total = 9, .text = "episode 7"}};
  const auto bytes = wire::encode(sent);
  ASSERT_TRUE(bytes);
  const auto received = wire::decode<Event>(*bytes);
  ASSERT_TRUE(received);
  EXPECT_EQ(received->worker, 3U);
  const auto* const progress = std::get_if<Progress>(&received->body);
  ASSERT_NE(progress, nullptr);
  EXPECT_EQ(progress->done, 7);
  EXPECT_EQ(progress->total, 9);
  EXPECT_EQ(progress->text, "episode 7");
}

}  // namespace
}  // namespace caftan::run::run_messages_test
