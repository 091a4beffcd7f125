// LN-11: frames between a launcher and its relay.
#include "caftan/run/internal/stream_frames.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <span>
#include <utility>
#include <variant>

#include "caftan/run/internal/relay_messages.hpp"
#include "caftan/wire/archive.hpp"

namespace caftan::run::stream_frames_test {
namespace {

using ::testing::HasSubstr;

std::string frame_of(const std::string& text) {
  const auto frame = make_frame(std::as_bytes(std::span(text)));
  EXPECT_TRUE(frame);
  return *frame;
}

std::string text_of(const Result<std::optional<wire::Bytes>>& found) {
  EXPECT_TRUE(found) << found.error().message();
  if (!found || !*found) return "(none)";
  return {reinterpret_cast<const char*>((*found)->data()), (*found)->size()};
}

TEST(StreamFrames, LN11_FramesArriveWhereverTheStreamIsCut) {
  const std::string stream = "hello\n" + frame_of("first") + frame_of("") + frame_of(std::string(300, 'x'));
  for (std::size_t cut = 0; cut <= stream.size(); ++cut) {
    StreamFrames frames("hello\n");
    std::string found;
    for (const std::string& part : {stream.substr(0, cut), stream.substr(cut)}) {
      frames.append(part);
      for (auto next = frames.next(); next && *next; next = frames.next()) found += text_of(next) + "|";
    }
    EXPECT_EQ(found, "first||" + std::string(300, 'x') + "|") << cut;
    EXPECT_EQ(text_of(frames.next()), "(none)");
  }
}

TEST(StreamFrames, LN11_AnotherGreetingIsShownAndStaysAnError) {
  StreamFrames frames("hello\n");
  frames.append("Welcome to \x1b[1mnode\nmore");
  for (int i = 0; i < 2; ++i) {
    const auto next = frames.next();
    ASSERT_FALSE(next);
    EXPECT_EQ(next.error().code(), Errc::malformed_payload);
    EXPECT_THAT(next.error().text(), HasSubstr("\"Welcome to ?[1mnode\" came instead of a greeting"));
  }
}

TEST(StreamFrames, LN11_AFrameThatIsTooLongIsRefusedByItsHead) {
  StreamFrames frames;
  frames.append(std::string("\x01\x00\x80\x00", 4));
  const auto next = frames.next();
  ASSERT_FALSE(next);
  EXPECT_THAT(next.error().text(), HasSubstr("has 8388609 bytes"));
  const std::string long_text(kLongestFrame + 1, 'x');
  EXPECT_FALSE(make_frame(std::as_bytes(std::span(long_text))));
  frames = StreamFrames();
  frames.append(std::string("\x00\x00\x80\x00", 4));
  EXPECT_EQ(text_of(frames.next()), "(none)") << "the longest one is waited for";
}

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

TEST(RelayMessages, LN11_EachKindArrivesAsItself) {
  expect_each_arrives<ToRelay>(std::make_index_sequence<std::variant_size_v<ToRelay>>());
  expect_each_arrives<FromRelay>(std::make_index_sequence<std::variant_size_v<FromRelay>>());
}

}  // namespace
}  // namespace caftan::run::stream_frames_test
