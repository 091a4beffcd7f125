#include "layout_table.hpp"

#include <algorithm>
#include <array>

namespace caftan::tensor::detail {
namespace {

struct DtypeRow {
  std::uint8_t code;
  at::ScalarType dtype;
  std::string_view name;
};

using enum at::ScalarType;
constexpr std::array kDtypes{
    DtypeRow{1, Byte, "uint8"},
    DtypeRow{2, Char, "int8"},
    DtypeRow{3, Short, "int16"},
    DtypeRow{4, Int, "int32"},
    DtypeRow{5, Long, "int64"},
    DtypeRow{6, Half, "float16"},
    DtypeRow{7, Float, "float32"},
    DtypeRow{8, Double, "float64"},
    DtypeRow{9, ComplexHalf, "complex32"},
    DtypeRow{10, ComplexFloat, "complex64"},
    DtypeRow{11, ComplexDouble, "complex128"},
    DtypeRow{12, Bool, "bool"},
    DtypeRow{13, BFloat16, "bfloat16"},
    DtypeRow{14, UInt16, "uint16"},
    DtypeRow{15, UInt32, "uint32"},
    DtypeRow{16, UInt64, "uint64"},
    DtypeRow{17, Float8_e5m2, "float8_e5m2"},
    DtypeRow{18, Float8_e4m3fn, "float8_e4m3fn"},
    DtypeRow{19, Float8_e5m2fnuz, "float8_e5m2fnuz"},
    DtypeRow{20, Float8_e4m3fnuz, "float8_e4m3fnuz"},
    DtypeRow{21, Float8_e8m0fnu, "float8_e8m0fnu"},
    DtypeRow{22, Float4_e2m1fn_x2, "float4_e2m1fn_x2"},
    DtypeRow{23, Bits8, "bits8"},
    DtypeRow{24, Bits16, "bits16"},
};

constexpr auto kByDtype = [] {
  std::array<std::uint8_t, static_cast<std::size_t>(NumOptions) + 1> codes{};
  for (const DtypeRow& row : kDtypes) codes[static_cast<std::size_t>(row.dtype)] = row.code;
  return codes;
}();

constexpr bool codes_are_positions() {
  for (std::size_t i = 0; i < kDtypes.size(); ++i) {
    if (kDtypes[i].code != i + 1) return false;
  }
  return true;
}
static_assert(codes_are_positions());

bool multiply(std::int64_t& by, std::int64_t factor) noexcept { return !__builtin_mul_overflow(by, factor, &by); }

bool all_at_most_one(const std::uint8_t* bytes, std::int64_t count) noexcept {
  std::uint8_t seen = 0;
  for (std::int64_t i = 0; i < count; ++i) seen |= bytes[i];
  return seen <= 1;
}

}  // namespace

std::optional<std::uint8_t> dtype_code(at::ScalarType dtype) noexcept {
  const auto at = static_cast<std::size_t>(dtype);
  if (at >= kByDtype.size() || kByDtype[at] == 0) return std::nullopt;
  return kByDtype[at];
}

std::optional<at::ScalarType> dtype_of_code(std::uint8_t code) noexcept {
  if (code == 0 || code > kDtypes.size()) return std::nullopt;
  return kDtypes[code - 1u].dtype;
}

std::string_view dtype_name(at::ScalarType dtype) noexcept {
  const std::optional<std::uint8_t> code = dtype_code(dtype);
  return code ? kDtypes[*code - 1u].name : std::string_view(c10::toString(dtype));
}

std::optional<Extent> extent_of(c10::IntArrayRef sizes, c10::IntArrayRef strides, std::int64_t offset,
                                std::size_t itemsize) noexcept {
  if (offset < 0) return std::nullopt;
  Extent extent{1, 1, offset};
  // A size of 0 counts as 1 here: in places libtorch multiplies only the other sizes, and that product must not
  // overflow, either.
  std::int64_t product = static_cast<std::int64_t>(itemsize);
  bool empty = false;
  for (std::size_t i = 0; i < sizes.size(); ++i) {
    const std::int64_t size = sizes[i];
    const std::int64_t stride = strides[i];
    if (size < 0 || stride < 0 || !multiply(product, std::max<std::int64_t>(size, 1))) return std::nullopt;
    empty |= size == 0;
    extent.numel *= size;
    if (stride > 0) extent.distinct *= size;
    std::int64_t step = stride;
    if (size > 1 && (!multiply(step, size - 1) || __builtin_add_overflow(extent.last, step, &extent.last))) {
      return std::nullopt;
    }
  }
  std::int64_t end = extent.last;
  if (__builtin_add_overflow(end, 1, &end) || !multiply(end, static_cast<std::int64_t>(itemsize))) return std::nullopt;
  if (empty) extent = Extent{0, 0, offset};
  return extent;
}

bool is_zero_point(std::int64_t zero_point, at::ScalarType dtype) noexcept {
  if (dtype == at::ScalarType::Char) return zero_point >= INT8_MIN && zero_point <= INT8_MAX;
  if (dtype == at::ScalarType::Byte) return zero_point >= 0 && zero_point <= UINT8_MAX;
  return zero_point >= INT32_MIN && zero_point <= INT32_MAX;
}

void contiguous_strides(c10::IntArrayRef sizes, std::int64_t* strides) noexcept {
  std::int64_t stride = 1;
  for (std::size_t i = sizes.size(); i-- > 0;) {
    strides[i] = stride;
    stride *= std::max<std::int64_t>(sizes[i], 1);
  }
}

bool are_contiguous(c10::IntArrayRef sizes, c10::IntArrayRef strides) noexcept {
  std::int64_t stride = 1;
  for (std::size_t i = sizes.size(); i-- > 0;) {
    if (strides[i] != stride) return false;
    stride *= std::max<std::int64_t>(sizes[i], 1);
  }
  return true;
}

bool bools_are_valid(const std::uint8_t* data, c10::IntArrayRef sizes, c10::IntArrayRef strides,
                     const Extent& extent) noexcept {
  if (extent.numel == 0) return true;
  std::int64_t span = 1;
  for (std::size_t i = 0; i < sizes.size(); ++i) span += (sizes[i] - 1) * strides[i];
  // The elements are dense, or overlap so that to walk them would take longer than to walk the memory.
  if (extent.distinct >= span) return all_at_most_one(data, span);
  std::array<std::int64_t, kMostDims> index{};
  const std::uint8_t* at = data;
  for (;;) {
    if (*at > 1) return false;
    std::size_t dim = sizes.size();
    for (; dim > 0; --dim) {
      const std::size_t d = dim - 1;
      if (strides[d] == 0) continue;
      at += strides[d];
      if (++index[d] < sizes[d]) break;
      at -= strides[d] * sizes[d];
      index[d] = 0;
    }
    if (dim == 0) return true;
  }
}

}  // namespace caftan::tensor::detail
