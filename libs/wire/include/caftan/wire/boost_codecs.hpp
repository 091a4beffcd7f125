/// How Boost.Serialization's wrappers travel: only the wrapped value is written. Include archive.hpp instead.
#pragma once

#include <boost/serialization/array_wrapper.hpp>
#include <boost/serialization/collection_size_type.hpp>
#include <boost/serialization/item_version_type.hpp>
#include <boost/serialization/nvp.hpp>
#include <limits>

#include "caftan/wire/std_codecs.hpp"

namespace caftan::wire {

template <class T>
struct Codec<boost::serialization::nvp<T>> {
  static void save(OutArchive& to, const boost::serialization::nvp<T>& pair) { to << pair.const_value(); }
  static void load(InArchive& from, boost::serialization::nvp<T>& pair) { from >> pair.value(); }
};
template <class T>
struct Codec<boost::serialization::array_wrapper<T>> {
  static void save(OutArchive& to, const boost::serialization::array_wrapper<T>& array) {
    detail::save_elements<std::remove_const_t<T>>(to, array.address(), array.count());
  }
  static void load(InArchive& from, boost::serialization::array_wrapper<T>& array) {
    detail::load_elements(from, array.address(), array.count());
  }
};
template <>
struct Codec<boost::serialization::collection_size_type> {
  static void save(OutArchive& to, const boost::serialization::collection_size_type& count) { to.save_count(count); }
  static void load(InArchive& from, boost::serialization::collection_size_type& count) {
    count = boost::serialization::collection_size_type(from.load_count());
  }
};
template <>
struct Codec<boost::serialization::item_version_type> {
  static void save(OutArchive& to, const boost::serialization::item_version_type& version) { to.save_count(version); }
  static void load(InArchive& from, boost::serialization::item_version_type& version) {
    const std::uint64_t read = from.load_number();
    if (read > std::numeric_limits<unsigned>::max()) throw DecodeError("bad version of a class");
    version = boost::serialization::item_version_type(static_cast<unsigned>(read));
  }
};

}  // namespace caftan::wire
