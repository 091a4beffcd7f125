/// Files of images as the data sets have them, in small.
#pragma once

#include <zlib.h>

#include <cstdint>
#include <filesystem>
#include <stdexcept>
#include <string>
#include <vector>

#include "folder.hpp"

namespace caftan::test {

/// Returns the bytes as gzip packs them.
inline std::string gzipped(const std::string& bytes) {
  z_stream stream{};
  constexpr int kGzip = 16 + MAX_WBITS;
  if (deflateInit2(&stream, Z_BEST_SPEED, Z_DEFLATED, kGzip, 8, Z_DEFAULT_STRATEGY) != Z_OK) {
    throw std::runtime_error("deflateInit2 failed");
  }
  std::string packed(deflateBound(&stream, bytes.size()) + 32, '\0');
  std::string input = bytes;
  stream.next_in = reinterpret_cast<Bytef*>(input.data());
  stream.avail_in = static_cast<uInt>(input.size());
  stream.next_out = reinterpret_cast<Bytef*>(packed.data());
  stream.avail_out = static_cast<uInt>(packed.size());
  const int state = deflate(&stream, Z_FINISH);
  packed.resize(packed.size() - stream.avail_out);
  deflateEnd(&stream);
  if (state != Z_STREAM_END) throw std::runtime_error("deflate failed");
  return packed;
}

/// Returns the header of an IDX file of unsigned bytes.
inline std::string idx_header(const std::vector<std::uint32_t>& sizes) {
  std::string header{'\0', '\0', '\x08', static_cast<char>(sizes.size())};
  for (const std::uint32_t size : sizes) {
    for (const unsigned shift : {24U, 16U, 8U, 0U}) header += static_cast<char>(size >> shift);
  }
  return header;
}

/// Returns an IDX file of 28x28 images; pixel p of image i is (7 i + p) modulo 251.
inline std::string idx_images(std::uint32_t count, std::uint32_t side = 28) {
  std::string file = idx_header({count, side, side});
  for (std::uint32_t i = 0; i < count; ++i) {
    for (std::uint32_t p = 0; p < side * side; ++p) file += static_cast<char>((7 * i + p) % 251);
  }
  return file;
}

/// Returns an IDX file of labels 0, 1, ... 9, 0, ...
inline std::string idx_labels(std::uint32_t count) {
  std::string file = idx_header({count});
  for (std::uint32_t i = 0; i < count; ++i) file += static_cast<char>(i % 10);
  return file;
}

/// Writes the four files of a data set in the form of Fashion-MNIST. Returns their folder.
inline std::filesystem::path write_fashion(const Folder& folder, std::uint32_t train, std::uint32_t test) {
  folder.write("train-images-idx3-ubyte.gz", gzipped(idx_images(train)));
  folder.write("train-labels-idx1-ubyte.gz", gzipped(idx_labels(train)));
  folder.write("t10k-images-idx3-ubyte.gz", gzipped(idx_images(test)));
  folder.write("t10k-labels-idx1-ubyte.gz", gzipped(idx_labels(test)));
  return folder.path();
}

}  // namespace caftan::test
