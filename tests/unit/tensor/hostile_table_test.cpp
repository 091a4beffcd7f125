/// Tables and segments that no encoder wrote.
#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <cstring>
#include <random>

#include "caftan/wire/archive.hpp"
#include "tensor_samples.hpp"

namespace caftan::tensor::hostile_table_test {
namespace {

/// Writes a table field by field, as table_format.cpp describes it.
struct TableWriter {
  wire::Bytes bytes;
  TableWriter& byte(unsigned value) {
    bytes.push_back(static_cast<std::byte>(value));
    return *this;
  }
  TableWriter& numbers(std::initializer_list<std::uint64_t> values) {
    wire::OutArchive to(bytes);
    for (const std::uint64_t value : values) to.save_count(value);
    return *this;
  }
  TableWriter& fixed(auto value) {
    wire::OutArchive(bytes) << value;
    return *this;
  }
};
constexpr unsigned kFloat32 = 7;
constexpr unsigned kInt64 = 5;
constexpr unsigned kBool = 12;
constexpr unsigned kInt8 = 2;
constexpr std::uint64_t kHuge = std::uint64_t{1} << 62;

/// Returns a table of one segment and one storage of `bytes`, which announces one tensor; the test writes that tensor's
/// fields.
TableWriter one_storage(std::uint64_t bytes) { return TableWriter().byte(1).numbers({1, bytes, 1, 0, 0, bytes, 1}); }

std::string outcome(const TableWriter& table) {
  const Result<TensorLayout> layout = TensorLayout::parse(table.bytes, kLimits);
  return layout ? "accepted" : layout.error().text();
}

/// Parses the table, builds its tensors from segments with random bytes, and reads every element.
Result<void> use(wire::ByteView table, wire::BlockPool& pool, std::mt19937_64& random) {
  const TensorLayout::Limits limits{.max_bytes = 1 << 16, .max_tensors = 64};
  const Result<TensorLayout> layout = TensorLayout::parse(table, limits);
  if (!layout) return layout.error();
  std::vector<wire::Block> blocks;
  for (const std::uint64_t size : layout->segment_sizes()) {
    blocks.push_back(std::move(pool.take(size).value()));
    for (std::size_t i = 0; i < size; ++i) blocks.back().data()[i] = static_cast<std::byte>(random() % 3);
  }
  const Result<std::vector<DecodedTensor>> made = layout->build(std::move(blocks));
  if (!made) return made.error();
  for (const DecodedTensor& decoded : *made) {
    if (!decoded.defined || decoded.tensor.numel() > 100000) continue;
    if (decoded.tensor.is_quantized() || decoded.tensor.layout() != at::kStrided) {
      static_cast<void>(decoded.tensor.detach().clone());
    } else {
      static_cast<void>(decoded.tensor.detach().contiguous());
    }
  }
  return {};
}

std::vector<wire::Bytes> valid_tables() {
  std::vector<wire::Bytes> tables;
  std::vector<at::Tensor> all;
  for (const Sample& sample : every_shape(at::ones({4, 6}))) all.push_back(sample.tensor);
  for (const Sample& sample : every_other_kind()) all.push_back(sample.tensor);
  for (const at::Tensor& tensor : all) tables.push_back(encode_tensors({&tensor, 1})->table);
  all.push_back(at::Tensor());
  tables.push_back(encode_tensors(all)->table);
  return tables;
}

TEST(HostileTable, EachTruncationIsRefused) {
  for (const wire::Bytes& table : valid_tables()) {
    ASSERT_TRUE(TensorLayout::parse(table, kLimits));
    for (std::size_t length = 0; length < table.size(); ++length) {
      const Result<TensorLayout> layout = TensorLayout::parse(wire::ByteView(table).first(length), kLimits);
      ASSERT_FALSE(layout) << length;
      EXPECT_EQ(layout.error().code(), Errc::malformed_payload);
    }
  }
}

TEST(HostileTable, FlippedBitsAndRandomBytesNeverReadOutOfBounds) {
  wire::BlockPool pool;
  std::mt19937_64 random(5);
  int refused = 0;
  for (const wire::Bytes& table : valid_tables()) {
    for (int i = 0; i < 400; ++i) {
      wire::Bytes changed = table;
      for (std::uint64_t n = 1 + random() % 3; n > 0; --n) {
        changed[random() % changed.size()] ^= static_cast<std::byte>(1u << (random() % 8));
      }
      refused += use(changed, pool, random) ? 0 : 1;
    }
  }
  for (int i = 0; i < 5000; ++i) {
    wire::Bytes garbage(1 + random() % 60);
    for (std::byte& b : garbage) b = static_cast<std::byte>(random() % (i % 2 ? 256 : 8));
    garbage[0] = std::byte{1};
    refused += use(garbage, pool, random) ? 0 : 1;
  }
  EXPECT_GT(refused, 5000);
}

TEST(HostileTable, BoundsAreComputedWithoutOverflow) {
  EXPECT_EQ(outcome(one_storage(16).byte(1).byte(kFloat32).numbers({1 << 1, 4, 1, 0})), "accepted");
  const std::string beyond = "a tensor beyond the end of its storage";
  EXPECT_EQ(outcome(one_storage(16).byte(1).byte(kFloat32).numbers({1 << 1, 5, 1, 0})), beyond);
  EXPECT_EQ(outcome(one_storage(16).byte(1).byte(kFloat32).numbers({1 << 1, 4, 1, 1})), beyond);
  EXPECT_EQ(outcome(one_storage(16).byte(1).byte(kFloat32).numbers({1 << 1 | 1, 4, 2, 1, 0})), beyond);
  EXPECT_EQ(outcome(one_storage(15).byte(1).byte(kFloat32).numbers({1 << 1, 4, 1, 0})), beyond);
  EXPECT_EQ(outcome(one_storage(16).byte(1).byte(kFloat32).numbers({0, 1, 4})), beyond);
  const std::string large = "a tensor too large";
  EXPECT_EQ(outcome(one_storage(16).byte(1).byte(kFloat32).numbers({1 << 1, kHuge, 1, 0})), large);
  EXPECT_EQ(outcome(one_storage(16).byte(1).byte(kFloat32).numbers({2 << 1, kHuge, kHuge, 1, 0})), large);
  EXPECT_EQ(outcome(one_storage(16).byte(1).byte(kFloat32).numbers({2 << 1 | 1, kHuge, 8, 0, 0, 1, 0})), large);
  EXPECT_EQ(outcome(one_storage(16).byte(1).byte(kFloat32).numbers({1 << 1 | 1, 3, kHuge, 1, 0})), large);
  EXPECT_EQ(outcome(one_storage(16).byte(1).byte(kFloat32).numbers({1 << 1, 1, 1, kHuge})), large);
  // A size of 0 does not hide that the other sizes overflow.
  EXPECT_EQ(outcome(one_storage(16).byte(1).byte(kFloat32).numbers({3 << 1, 0, kHuge, kHuge, 0, 0})), large);
  EXPECT_EQ(outcome(one_storage(16).byte(1).byte(kFloat32).numbers({1 << 1, 1, 1, kHuge * 2})),
            "a size or stride beyond 63 bits");
  EXPECT_EQ(outcome(one_storage(16).byte(1).byte(kFloat32).numbers({65 << 1})), "more than 64 dimensions");
}

TEST(HostileTable, StoragesLieInTheirSegmentsInOrderAndAligned) {
  const auto storages = [](std::initializer_list<std::uint64_t> numbers) {
    return outcome(TableWriter().byte(1).numbers({2, 256, 64}).numbers(numbers).numbers({0}));
  };
  EXPECT_EQ(storages({2, 0, 0, 64, 0, 64, 192}), "accepted");
  EXPECT_EQ(storages({1, 2, 0, 64}), "a storage without its segment");
  EXPECT_EQ(storages({1, 1, 0, 65}), "a storage beyond the end of its segment");
  EXPECT_EQ(storages({1, 1, 64, 1}), "a storage beyond the end of its segment");
  EXPECT_EQ(storages({1, 0, kHuge * 3, kHuge}), "a storage beyond the end of its segment");
  EXPECT_EQ(storages({1, 0, 0, 0}), "a storage beyond the end of its segment");
  EXPECT_EQ(storages({1, 0, 8, 8}), "a storage that is not aligned");
  EXPECT_EQ(storages({2, 0, 0, 65, 0, 64, 64}), "storages that overlap or are out of order");
  EXPECT_EQ(storages({2, 1, 0, 64, 0, 0, 64}), "storages that overlap or are out of order");
}

TEST(HostileTable, LimitsHoldBeforeAnythingIsAllocated) {
  const TensorLayout::Limits limits{.max_bytes = 1000, .max_tensors = 2};
  const auto code = [&](const TableWriter& table) { return TensorLayout::parse(table.bytes, limits).error().code(); };
  EXPECT_EQ(code(TableWriter().byte(1).numbers({1, 1001, 0, 0})), Errc::limit_exceeded);
  EXPECT_EQ(code(TableWriter().byte(1).numbers({2, 600, 401, 0, 0})), Errc::limit_exceeded);
  EXPECT_EQ(code(TableWriter().byte(1).numbers({2, kHuge * 3, kHuge * 3, 0, 0})), Errc::limit_exceeded);
  EXPECT_EQ(code(TableWriter().byte(1).numbers({0, 0, 3, 0, 0, 0})), Errc::limit_exceeded);
  EXPECT_EQ(code(TableWriter().byte(1).numbers({kHuge})), Errc::malformed_payload);
  EXPECT_EQ(code(TableWriter().byte(1).numbers({0, kHuge})), Errc::malformed_payload);
  EXPECT_EQ(code(TableWriter().byte(1).numbers({0, 0, kHuge})), Errc::malformed_payload);
}

TEST(HostileTable, BitsThatContradictEachOtherAreRefused) {
  EXPECT_EQ(outcome(TableWriter().byte(0)), "another version of the tensor table");
  EXPECT_EQ(outcome(TableWriter().byte(3)), "another version of the tensor table");
  EXPECT_EQ(outcome(one_storage(8).byte(2)), "an undefined tensor with properties");
  EXPECT_EQ(outcome(one_storage(8).byte(1 | 7 << 4)), "an unknown kind of tensor");
  EXPECT_EQ(outcome(one_storage(8).byte(1 | 8).byte(kInt64).numbers({0, 1, 0})), "coalesced, but not sparse");
  EXPECT_EQ(outcome(one_storage(8).byte(1 | 2).byte(kInt64).numbers({0, 1, 0})),
            "requires_grad of a dtype without gradients");
  EXPECT_EQ(outcome(one_storage(8).byte(1 | 4).byte(kFloat32).numbers({0, 1, 0})), "recorded, but requires no grad");
  EXPECT_EQ(outcome(one_storage(8).byte(1).byte(200)), "unknown dtype");
  EXPECT_EQ(outcome(one_storage(8).byte(1).byte(kInt64).numbers({0, 2, 0})), "a tensor without its storage");
  EXPECT_EQ(outcome(one_storage(8).byte(1).byte(kInt64).numbers({0, 0, 0})), "a tensor without its storage");
  EXPECT_EQ(outcome(one_storage(8).byte(1).byte(kInt64).numbers({1 << 1, 0, 1, 0})),
            "storage of a tensor without elements");
  EXPECT_EQ(outcome(one_storage(8).byte(1).byte(kInt64).numbers({0, 1, 0}).byte(0)),
            "bytes left over in the tensor table");
}

TEST(HostileTable, AScaleAndZeroPointAreValues) {
  const auto quantized = [](double scale, std::int64_t zero_point, unsigned dtype = kInt8) {
    return outcome(one_storage(8).byte(1 | 1 << 4).fixed(scale).fixed(zero_point).byte(dtype).numbers({0, 1, 0}));
  };
  EXPECT_EQ(quantized(0.5, -128), "accepted");
  EXPECT_EQ(quantized(0.5, 128), "a bad scale or zero point");
  EXPECT_EQ(quantized(0, 0), "a bad scale or zero point");
  EXPECT_EQ(quantized(std::numeric_limits<double>::quiet_NaN(), 0), "a bad scale or zero point");
  EXPECT_EQ(quantized(1, 0, kFloat32), "a quantized tensor of another dtype");
}

TEST(HostileTable, H5_OnlyVersionTwoHasStridesOfQuantizedTensors) {
  const auto strided = [](unsigned version) {
    TableWriter table = TableWriter().byte(version).numbers({1, 8, 1, 0, 0, 8, 1});
    return outcome(
        table.byte(1 | 1 << 4).fixed(0.5).fixed(std::int64_t{0}).byte(kInt8).numbers({1 << 1 | 1, 4, 2, 1, 0}));
  };
  EXPECT_EQ(strided(1), "strides where none can be");
  EXPECT_EQ(strided(2), "accepted");
}

Result<std::vector<DecodedTensor>> build(const TableWriter& table, std::vector<wire::Bytes> segments) {
  static wire::BlockPool pool;
  std::vector<wire::Block> blocks;
  for (const wire::Bytes& segment : segments) {
    blocks.push_back(std::move(pool.take(segment.size()).value()));
    std::memcpy(blocks.back().data(), segment.data(), segment.size());
  }
  return TensorLayout::parse(table.bytes, kLimits).value().build(std::move(blocks));
}

TEST(HostileTable, BlocksMustFitTheSegments) {
  const TableWriter table = one_storage(8).byte(1).byte(kInt64).numbers({0, 1, 0});
  EXPECT_EQ(build(table, {}).error().code(), Errc::bad_arguments);
  EXPECT_EQ(build(table, {wire::Bytes(7)}).error().code(), Errc::bad_arguments);
  EXPECT_TRUE(build(table, {wire::Bytes(8)}));
}

TEST(HostileTable, BoolBytesAboveOneAreRefusedWhereTheTensorHasThem) {
  wire::Bytes bytes(8, std::byte{1});
  const auto every_other = [] { return one_storage(8).byte(1).byte(kBool).numbers({1 << 1 | 1, 4, 2, 1, 0}); };
  bytes[3] = std::byte{2};
  EXPECT_TRUE(build(every_other(), {bytes}));
  bytes[4] = std::byte{2};
  EXPECT_EQ(build(every_other(), {bytes}).error().text(), "a bool that is neither 0 nor 1");
}

TEST(HostileTable, AHugeExpandedBoolTakesNoTime) {
  const wire::Bytes bytes(64, std::byte{1});
  const std::uint64_t side = std::uint64_t{1} << 30;
  EXPECT_TRUE(build(one_storage(64).byte(1).byte(kBool).numbers({2 << 1 | 1, side, side, 0, 0, 1, 0}), {bytes}));
}

TEST(HostileTable, H5_ChannelsAreChecked) {
  // Four values of int8; two scales of float64; two zero points of int64.
  struct Of {
    std::uint64_t axis = 1;
    unsigned values = kInt8;
    unsigned scales = 8;
    unsigned zero_points = kInt64;
    std::uint64_t channels = 2;
    double scale = 0.5;
    std::int64_t zero_point = 0;
  };
  const auto table_of = [](const Of& of) {
    TableWriter table = TableWriter().byte(2).numbers({3, 4, 16, 16, 3, 0, 0, 4, 1, 0, 16, 2, 0, 16, 1});
    table.byte(1 | 7 << 4).numbers({of.axis}).byte(of.values).numbers({2 << 1, 2, 2, 1, 0});
    return table.byte(of.scales).numbers({1 << 1, of.channels, 2, 0}).byte(of.zero_points).numbers({1 << 1, 2, 3, 0});
  };
  EXPECT_EQ(outcome(table_of({})), "accepted");
  EXPECT_EQ(outcome(table_of({.axis = 2})), "channels along a dimension that is not there");
  EXPECT_EQ(outcome(table_of({.axis = 1000})), "channels along a dimension that is not there");
  EXPECT_EQ(outcome(table_of({.values = kBool})), "a quantized tensor of another dtype");
  EXPECT_EQ(outcome(table_of({.scales = kInt64})), "scales or zero points of another dtype");
  EXPECT_EQ(outcome(table_of({.zero_points = 8})), "scales or zero points of another dtype");
  EXPECT_EQ(outcome(table_of({.channels = 1})), "another number of scales or zero points than of channels");
  const auto built = [&](const Of& of) {
    wire::Bytes scales(16, std::byte{0});
    wire::Bytes zero_points(16, std::byte{0});
    const double good = 0.5;
    std::memcpy(scales.data(), &good, 8);
    std::memcpy(scales.data() + 8, &of.scale, 8);
    std::memcpy(zero_points.data() + 8, &of.zero_point, 8);
    const auto made = build(table_of(of), {wire::Bytes(4), scales, zero_points});
    return made ? "accepted" : made.error().text();
  };
  EXPECT_EQ(built({}), "accepted");
  EXPECT_EQ(built({.scale = -1}), "a bad scale or zero point");
  EXPECT_EQ(built({.scale = std::numeric_limits<double>::infinity()}), "a bad scale or zero point");
  EXPECT_EQ(built({.zero_point = 128}), "a bad scale or zero point");
}

wire::Bytes int64_bytes(std::initializer_list<std::int64_t> values) {
  wire::Bytes bytes(8 * values.size());
  std::memcpy(bytes.data(), values.begin(), bytes.size());
  return bytes;
}

TEST(HostileTable, SparseIndicesAreChecked) {
  // Two values; indices [1, 2]; size 5.
  const auto coo = [](bool coalesced, std::initializer_list<std::int64_t> indices) {
    TableWriter table = TableWriter().byte(1).numbers({2, 8, 16, 2, 0, 0, 8, 1, 0, 16, 1});
    table.byte(1 | (coalesced ? 8 : 0) | 2 << 4).numbers({1, 5});
    table.byte(kFloat32).numbers({1 << 1, 2, 1, 0}).byte(kInt64).numbers({2 << 1, 1, 2, 2, 0});
    const Result<std::vector<DecodedTensor>> made = build(table, {wire::Bytes(8), int64_bytes(indices)});
    return made ? Errc::ok : made.error().code();
  };
  EXPECT_EQ(coo(true, {0, 4}), Errc::ok);
  EXPECT_EQ(coo(false, {4, 4}), Errc::ok);
  EXPECT_EQ(coo(false, {0, 5}), Errc::malformed_payload);
  EXPECT_EQ(coo(false, {0, -1}), Errc::malformed_payload);
  EXPECT_EQ(coo(true, {4, 0}), Errc::malformed_payload);

  const auto csr = [](std::initializer_list<std::int64_t> rows, std::initializer_list<std::int64_t> columns) {
    TableWriter table = TableWriter().byte(1).numbers({3, 8, 24, 16, 3, 0, 0, 8, 1, 0, 24, 2, 0, 16, 1});
    table.byte(1 | 3 << 4).numbers({2, 2, 5}).byte(kFloat32).numbers({1 << 1, 2, 1, 0});
    table.byte(kInt64).numbers({1 << 1, 3, 2, 0}).byte(kInt64).numbers({1 << 1, 2, 3, 0});
    const Result<std::vector<DecodedTensor>> made =
        build(table, {wire::Bytes(8), int64_bytes(rows), int64_bytes(columns)});
    return made ? Errc::ok : made.error().code();
  };
  EXPECT_EQ(csr({0, 1, 2}, {0, 4}), Errc::ok);
  EXPECT_EQ(csr({0, 1, 2}, {0, 5}), Errc::malformed_payload);
  EXPECT_EQ(csr({0, 3, 2}, {0, 4}), Errc::malformed_payload);
  EXPECT_EQ(csr({1, 1, 2}, {0, 4}), Errc::malformed_payload);
}

}  // namespace
}  // namespace caftan::tensor::hostile_table_test
