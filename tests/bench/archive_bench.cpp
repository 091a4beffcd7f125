/// The archives against Boost's binary archive on the same values, and the tensor codec on small and large tensors.
#include <ATen/ops/rand.h>
#include <benchmark/benchmark.h>

#include <boost/archive/binary_iarchive.hpp>
#include <boost/archive/binary_oarchive.hpp>
#include <boost/serialization/map.hpp>
#include <boost/serialization/string.hpp>
#include <boost/serialization/vector.hpp>
#include <cstring>
#include <map>
#include <streambuf>
#include <string>
#include <vector>

#include "caftan/tensor/codec.hpp"
#include "caftan/wire/archive.hpp"

namespace {

using namespace caftan;

struct Particle {
  double position[3] = {1, 2, 3};
  float mass = 4;
  std::int32_t id = 5;
  bool alive = true;
  std::string name = "particle";
  template <class Archive>
  void serialize(Archive& archive, unsigned) {
    archive& position& mass& id& alive& name;
  }
};

template <class T>
T make_value();
template <>
std::vector<int> make_value() {
  return std::vector<int>(1000, 7);
}
template <>
std::vector<Particle> make_value() {
  return std::vector<Particle>(100);
}
template <>
std::map<std::string, double> make_value() {
  std::map<std::string, double> value;
  for (int i = 0; i < 100; ++i) value["key " + std::to_string(i)] = i;
  return value;
}
template <>
std::vector<std::string> make_value() {
  return std::vector<std::string>(100, "a string of thirty characters.");
}
template <>
Particle make_value() {
  return {};
}

/// A stream buffer over a growing vector: the quickest that Boost's archive can write to.
class VectorBuffer : public std::streambuf {
 public:
  explicit VectorBuffer(std::vector<char>& to) : to_(to) {}

 protected:
  std::streamsize xsputn(const char* from, std::streamsize count) override {
    to_.insert(to_.end(), from, from + count);
    return count;
  }
  int_type overflow(int_type c) override {
    to_.push_back(traits_type::to_char_type(c));
    return c;
  }

 private:
  std::vector<char>& to_;
};
class ViewBuffer : public std::streambuf {
 public:
  ViewBuffer(char* data, std::size_t size) { setg(data, data, data + size); }
};

constexpr unsigned kBoostFlags = boost::archive::no_header | boost::archive::no_codecvt;

template <class T>
void save_caftan(benchmark::State& state) {
  const T value = make_value<T>();
  wire::Bytes bytes;
  for (auto _ : state) {
    bytes.clear();
    benchmark::DoNotOptimize(wire::encode_into(bytes, value));
    benchmark::ClobberMemory();
  }
  state.SetBytesProcessed(static_cast<std::int64_t>(state.iterations() * bytes.size()));
}

template <class T>
void save_boost(benchmark::State& state) {
  const T value = make_value<T>();
  std::vector<char> bytes;
  for (auto _ : state) {
    bytes.clear();
    VectorBuffer buffer(bytes);
    boost::archive::binary_oarchive archive(buffer, kBoostFlags);
    archive << value;
    benchmark::ClobberMemory();
  }
  state.SetBytesProcessed(static_cast<std::int64_t>(state.iterations() * bytes.size()));
}

template <class T>
void load_caftan(benchmark::State& state) {
  const wire::Bytes bytes = *wire::encode(make_value<T>());
  for (auto _ : state) benchmark::DoNotOptimize(wire::decode<T>(bytes));
  state.SetBytesProcessed(static_cast<std::int64_t>(state.iterations() * bytes.size()));
}

template <class T>
void load_boost(benchmark::State& state) {
  std::vector<char> bytes;
  VectorBuffer to(bytes);
  const T value = make_value<T>();
  boost::archive::binary_oarchive(to, kBoostFlags) << value;
  for (auto _ : state) {
    ViewBuffer from(bytes.data(), bytes.size());
    boost::archive::binary_iarchive archive(from, kBoostFlags);
    T read;
    archive >> read;
    benchmark::DoNotOptimize(read);
  }
  state.SetBytesProcessed(static_cast<std::int64_t>(state.iterations() * bytes.size()));
}

#define CAFTAN_COMPARE(...)                     \
  BENCHMARK_TEMPLATE(save_caftan, __VA_ARGS__); \
  BENCHMARK_TEMPLATE(save_boost, __VA_ARGS__);  \
  BENCHMARK_TEMPLATE(load_caftan, __VA_ARGS__); \
  BENCHMARK_TEMPLATE(load_boost, __VA_ARGS__)
CAFTAN_COMPARE(Particle);
CAFTAN_COMPARE(std::vector<int>);
CAFTAN_COMPARE(std::vector<Particle>);
CAFTAN_COMPARE(std::vector<std::string>);
CAFTAN_COMPARE(std::map<std::string, double>);

/// Takes one float32 tensor through the codec: encodes it, copies its segment as a receiver would, parses the table and
/// builds the tensor.
void tensor_round_trip(benchmark::State& state) {
  const at::Tensor tensor = at::rand({state.range(0)});
  wire::BlockPool pool;
  const tensor::TensorLayout::Limits limits;
  for (auto _ : state) {
    const Result<tensor::EncodedTensors> encoded = tensor::encode_tensors({&tensor, 1});
    const Result<tensor::TensorLayout> layout = tensor::TensorLayout::parse(encoded->table, limits);
    std::vector<wire::Block> blocks;
    for (const wire::Segment& segment : encoded->segments) {
      blocks.push_back(*pool.take(segment.size));
      std::memcpy(blocks.back().data(), segment.data, segment.size);
    }
    benchmark::DoNotOptimize(layout->build(std::move(blocks)));
  }
}
BENCHMARK(tensor_round_trip)->Arg(4)->Arg(1024)->Arg(1 << 18)->Arg(1 << 22);

void tensor_encode(benchmark::State& state) {
  const std::vector<at::Tensor> tensors(static_cast<std::size_t>(state.range(0)), at::rand({4}));
  for (auto _ : state) benchmark::DoNotOptimize(tensor::encode_tensors(tensors));
}
BENCHMARK(tensor_encode)->Arg(1)->Arg(10);

void tensor_decode(benchmark::State& state) {
  std::vector<at::Tensor> tensors;
  for (std::int64_t i = 0; i < state.range(0); ++i) tensors.push_back(at::rand({4}));
  const Result<tensor::EncodedTensors> encoded = tensor::encode_tensors(tensors);
  wire::BlockPool pool;
  for (auto _ : state) {
    std::vector<wire::Block> blocks;
    for (const wire::Segment& segment : encoded->segments) blocks.push_back(*pool.take(segment.size));
    const Result<tensor::TensorLayout> layout = tensor::TensorLayout::parse(encoded->table, {});
    benchmark::DoNotOptimize(layout->build(std::move(blocks)));
  }
}
BENCHMARK(tensor_decode)->Arg(1)->Arg(10);

}  // namespace

BENCHMARK_MAIN();
