/// Strict typed settings from one declaration. A struct `C` has `static void settings(auto& s, C& c)` that names each
/// field once: `s("rounds", c.rounds, "calls to each counter").at_least(1);`. From that come parsing with located
/// errors, the dump of resolved values, the help text and the reference page (settings_io.hpp).
///
/// Field types: bool, integers, double, std::string, enums (with one_of, in enumerator order), std::chrono durations
/// ("250ms", "2s", "10min", "1h"), ByteSize ("64MiB"), std::filesystem::path (relative to the file), lists of strings
/// or integers, std::optional of these (not in the file = empty), and structs with their own `settings` (sub-tables).
#pragma once

#include <any>
#include <chrono>
#include <concepts>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <limits>
#include <optional>
#include <string>
#include <type_traits>
#include <utility>
#include <variant>
#include <vector>

namespace caftan {

/// A number of bytes, written "64MiB" in files (B, KiB, MiB, GiB, TiB).
struct ByteSize {
  std::int64_t bytes = 0;
  auto operator<=>(const ByteSize&) const = default;
  /// Returns n KiB.
  static constexpr ByteSize kib(std::int64_t n) { return {n << 10}; }
  /// Returns n MiB.
  static constexpr ByteSize mib(std::int64_t n) { return {n << 20}; }
  /// Returns n GiB.
  static constexpr ByteSize gib(std::int64_t n) { return {n << 30}; }
};

/// What a field holds, as far as files and help texts distinguish it.
enum class SettingKind { boolean, integer, number, text, choice, duration, bytes, path, texts, integers, table };

/// A value on its way between a file and a field. Durations are nanoseconds, sizes bytes; a choice is its name, or for
/// an enum its number.
using SettingValue = std::variant<std::monostate, bool, std::int64_t, double, std::string, std::vector<std::string>,
                                  std::vector<std::int64_t>>;

/// One value that a field with choices may have.
struct SettingChoice {
  SettingChoice(const char* name, const char* note = "") : name(name), note(note) {}
  std::string name;
  std::string note;  ///< what the value means, shown in brackets
};

/// One end of a range: in `integer` for the kinds integer, duration and bytes, in `number` for the kind number.
struct SettingBound {
  bool open = false;     ///< the end itself is not allowed
  bool implied = false;  ///< the range ends here only because the C++ type ends here: not worth showing
  std::int64_t integer = 0;
  double number = 0;
};

/// One declared field, bound to an object: what it accepts, and how to read and write it.
struct SettingField {
  std::string name{};
  std::string doc{};
  std::string unit{};
  SettingKind kind = SettingKind::text;
  bool optional = false;  ///< the field may hold no value at all
  bool required = false;  ///< must stand in the file
  std::vector<SettingChoice> choices{};
  bool choice_by_number = false;  ///< `get` and `set` take the position of a choice in `choices`, not its name
  std::optional<SettingBound> lower{};
  std::optional<SettingBound> upper{};
  std::string default_text{};           ///< text that is shown as the default instead of the field's own initial value
  std::vector<SettingField> fields{};   ///< of kind table
  std::function<SettingValue()> get{};  ///< monostate = empty optional; not of kind table
  std::function<void(const SettingValue&)> set{};
};

class SettingsBuilder;

/// A struct that declares its fields.
template <class C>
concept HasSettings = requires(SettingsBuilder& s, C& c) {
  C::settings(s, c);
};

namespace settings_detail {

template <class T>
struct Unwrap {
  using type = T;
  static constexpr bool optional = false;
};
template <class T>
struct Unwrap<std::optional<T>> {
  using type = T;
  static constexpr bool optional = true;
};

template <class T>
inline constexpr bool is_duration = false;
template <class Rep, class Period>
inline constexpr bool is_duration<std::chrono::duration<Rep, Period>> = true;

template <class T>
constexpr SettingKind kind_of() {
  if constexpr (std::same_as<T, bool>)
    return SettingKind::boolean;
  else if constexpr (std::integral<T>)
    return SettingKind::integer;
  else if constexpr (std::floating_point<T>)
    return SettingKind::number;
  else if constexpr (std::is_enum_v<T>)
    return SettingKind::choice;
  else if constexpr (is_duration<T>)
    return SettingKind::duration;
  else if constexpr (std::same_as<T, ByteSize>)
    return SettingKind::bytes;
  else if constexpr (std::same_as<T, std::filesystem::path>)
    return SettingKind::path;
  else if constexpr (std::same_as<T, std::string>)
    return SettingKind::text;
  else if constexpr (std::same_as<T, std::vector<std::string>>)
    return SettingKind::texts;
  else if constexpr (std::same_as<T, std::vector<std::int64_t>>)
    return SettingKind::integers;
  else {
    static_assert(HasSettings<T>,
                  "caftan settings: a field is a bool, an integer, a double, a string, an enum, a "
                  "duration, a ByteSize, a path, a list of strings or std::int64_t, an optional of "
                  "these, or a struct with a static settings function");
    return SettingKind::table;
  }
}

/// Enumerators travel as their number; the reader and the writer turn it into the choice's name.
template <class T>
SettingValue to_value(const T& value) {
  if constexpr (std::same_as<T, bool>)
    return value;
  else if constexpr (std::is_enum_v<T> || std::integral<T>)
    return static_cast<std::int64_t>(value);
  else if constexpr (std::floating_point<T>)
    return static_cast<double>(value);
  else if constexpr (is_duration<T>) {
    return static_cast<std::int64_t>(std::chrono::duration_cast<std::chrono::nanoseconds>(value).count());
  } else if constexpr (std::same_as<T, ByteSize>)
    return value.bytes;
  else if constexpr (std::same_as<T, std::filesystem::path>)
    return value.string();
  else
    return value;
}

template <class T>
T from_value(const SettingValue& value) {
  if constexpr (std::same_as<T, bool>)
    return std::get<bool>(value);
  else if constexpr (std::is_enum_v<T> || std::integral<T>)
    return static_cast<T>(std::get<std::int64_t>(value));
  else if constexpr (std::floating_point<T>)
    return static_cast<T>(std::get<double>(value));
  else if constexpr (is_duration<T>) {
    return std::chrono::duration_cast<T>(std::chrono::nanoseconds(std::get<std::int64_t>(value)));
  } else if constexpr (std::same_as<T, ByteSize>)
    return ByteSize{std::get<std::int64_t>(value)};
  else if constexpr (std::same_as<T, std::filesystem::path>)
    return std::filesystem::path(std::get<std::string>(value));
  else
    return std::get<T>(value);
}

template <class T>
SettingBound bound(const T& value, bool open) {
  SettingBound result{.open = open};
  const SettingValue erased = to_value(value);
  if (const auto* number = std::get_if<double>(&erased)) result.number = *number;
  if (const auto* integer = std::get_if<std::int64_t>(&erased)) result.integer = *integer;
  return result;
}

}  // namespace settings_detail

/// Narrows the field that was just declared; T is its type without std::optional.
template <class T>
class SettingBuilder {
 public:
  explicit SettingBuilder(SettingField& field) : field_(field) {}

  /// Allows the values from `low` to `high`, both included.
  SettingBuilder& range(const T& low, const T& high) { return at_least(low).at_most(high); }
  /// Refuses what is below `low`.
  SettingBuilder& at_least(const T& low) { return field_.lower = settings_detail::bound(low, false), *this; }
  /// Refuses `low` and values below it.
  SettingBuilder& greater_than(const T& low) { return field_.lower = settings_detail::bound(low, true), *this; }
  /// Refuses what is above `high`.
  SettingBuilder& at_most(const T& high) { return field_.upper = settings_detail::bound(high, false), *this; }
  /// Refuses `high` and values above it.
  SettingBuilder& less_than(const T& high) { return field_.upper = settings_detail::bound(high, true), *this; }
  /// Names the allowed values. For a string: these texts. For an enum: the names of all enumerators in their order,
  /// which start at 0.
  SettingBuilder& one_of(std::vector<SettingChoice> choices) {
    static_assert(std::is_enum_v<T> || std::same_as<T, std::string>, "one_of is for strings and enums");
    field_.kind = SettingKind::choice;
    return field_.choices = std::move(choices), *this;
  }
  /// Refuses a file that does not give the field.
  SettingBuilder& required() { return field_.required = true, *this; }
  /// Sets what a number counts; shown in the help text.
  SettingBuilder& unit(std::string unit) { return field_.unit = std::move(unit), *this; }
  /// Sets the text that the help shows as the default, where the field's initial value does not say it.
  SettingBuilder& default_text(std::string text) { return field_.default_text = std::move(text), *this; }

 private:
  SettingField& field_;
};

/// The object that `settings` functions receive as `s`.
class SettingsBuilder {
 public:
  template <class T>
  auto operator()(std::string name, T& target, std::string doc) {
    using U = settings_detail::Unwrap<T>;
    using Plain = typename U::type;
    SettingField field{.name = std::move(name),
                       .doc = std::move(doc),
                       .kind = settings_detail::kind_of<Plain>(),
                       .optional = U::optional,
                       .choice_by_number = std::is_enum_v<Plain>};
    if constexpr (settings_detail::kind_of<Plain>() == SettingKind::table) {
      static_assert(!U::optional, "caftan settings: a sub-table cannot be optional");
      SettingsBuilder inner;
      Plain::settings(inner, target);
      field.fields = std::move(inner.fields_);
    } else {
      field.get = [&target]() -> SettingValue {
        if constexpr (U::optional) {
          return target ? settings_detail::to_value(*target) : SettingValue();
        } else {
          return settings_detail::to_value(target);
        }
      };
      field.set = [&target](const SettingValue& value) { target = settings_detail::from_value<Plain>(value); };
      if constexpr (std::integral<Plain> && !std::same_as<Plain, bool> && sizeof(Plain) < sizeof(std::int64_t)) {
        field.lower = settings_detail::bound(std::numeric_limits<Plain>::min(), false);
        field.upper = settings_detail::bound(std::numeric_limits<Plain>::max(), false);
        field.lower->implied = std::signed_integral<Plain>;
        field.upper->implied = true;
      } else if constexpr (std::unsigned_integral<Plain> && !std::same_as<Plain, bool>) {
        field.lower = settings_detail::bound(std::int64_t{0}, false);
      }
    }
    fields_.push_back(std::move(field));
    return SettingBuilder<Plain>(fields_.back());
  }

  /// Returns the fields that were declared.
  std::vector<SettingField> take() && { return std::move(fields_); }

 private:
  std::vector<SettingField> fields_;
};

/// Returns the declared fields of `object`, bound to it: valid as long as it lives and does not move.
template <class C, class Owner = C>
std::vector<SettingField> bind_settings(C& object) {
  SettingsBuilder builder;
  Owner::settings(builder, object);
  return std::move(builder).take();
}

/// The settings of a type that is not part of this class's type: a role type's `Config`. Default constructed: no keys
/// at all.
class SettingsDeclaration {
 public:
  SettingsDeclaration() = default;
  /// @tparam Owner  whose `settings(auto&, C&)` declares the fields: C itself, or the class that reads it
  template <class C, class Owner = C>
  static SettingsDeclaration of() {
    static_assert(std::copy_constructible<C> && std::default_initializable<C>);
    SettingsDeclaration result;
    result.make_ = [] { return std::any(C{}); };
    result.bind_ = [](std::any& object) { return bind_settings<C, Owner>(*std::any_cast<C>(&object)); };
    return result;
  }

  /// Returns a value with all defaults; std::any_cast<C> gives it back.
  std::any make() const { return make_ ? make_() : std::any(); }
  /// Precondition: `object` came from make() of this declaration.
  std::vector<SettingField> bind(std::any& object) const { return bind_ ? bind_(object) : std::vector<SettingField>(); }

 private:
  std::function<std::any()> make_;
  std::function<std::vector<SettingField>(std::any&)> bind_;
};

}  // namespace caftan
