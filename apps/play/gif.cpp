#include "play/gif.hpp"

#include <fcntl.h>
#include <gif_lib.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cmath>
#include <cstring>
#include <string>
#include <utility>

#include "caftan/base/settings_io.hpp"
#include "play/look.hpp"

namespace caftan::play {
namespace {

/// Index 0 is the background; those of the parts follow.
constexpr int kColours = 8;
constexpr std::array kParts{Part::ground, Part::body, Part::limb, Part::goal};

GifByteType index_of(Part part) noexcept {
  return static_cast<GifByteType>(1 + (std::ranges::find(kParts, part) - kParts.begin()));
}

/// The picture of one scene: a colour for each pixel.
class Picture {
 public:
  explicit Picture(const Scene& scene)
      : screen_(scene), rows_(static_cast<std::size_t>(screen_.height)), pixels_(rows_ * kColumns, 0) {
    for (const Stroke& stroke : scene.strokes) {
      draw({screen_.x(stroke.from.x), screen_.y(stroke.from.y)}, {screen_.x(stroke.to.x), screen_.y(stroke.to.y)},
           look_of(stroke.part).width / 2, index_of(stroke.part));
    }
    for (const Disc& disc : scene.discs) {
      const Place middle{screen_.x(disc.middle.x), screen_.y(disc.middle.y)};
      draw(middle, middle, disc.radius * screen_.scale, index_of(disc.part));
    }
  }

  static constexpr std::size_t kColumns = static_cast<std::size_t>(kPictureWidth);
  std::size_t rows() const noexcept { return rows_; }
  GifByteType* row(std::size_t at) noexcept { return pixels_.data() + at * kColumns; }

 private:
  /// Colours the pixels that are within `reach` of a line, which may be a point.
  void draw(Place from, Place to, double reach, GifByteType colour) {
    const double dx = to.x - from.x;
    const double dy = to.y - from.y;
    const double square = dx * dx + dy * dy;
    const auto [left, right] = pixels_between(std::min(from.x, to.x) - reach, std::max(from.x, to.x) + reach, kColumns);
    const auto [top, bottom] = pixels_between(std::min(from.y, to.y) - reach, std::max(from.y, to.y) + reach, rows_);
    for (std::size_t row = top; row < bottom; ++row) {
      for (std::size_t column = left; column < right; ++column) {
        const double x = static_cast<double>(column) + 0.5 - from.x;
        const double y = static_cast<double>(row) + 0.5 - from.y;
        const double share = square > 0 ? std::clamp((x * dx + y * dy) / square, 0.0, 1.0) : 0.0;
        if (std::hypot(x - share * dx, y - share * dy) <= reach) pixels_[row * kColumns + column] = colour;
      }
    }
  }

  /// Returns the pixels of a row or column of `size` that lie between two places: the first, and one behind the last.
  static std::pair<std::size_t, std::size_t> pixels_between(double low, double high, std::size_t size) noexcept {
    const auto most = static_cast<double>(size);
    // A place that is not finite is out of the picture.
    if (!std::isfinite(low) || !std::isfinite(high)) return {0, 0};
    return {static_cast<std::size_t>(std::clamp(std::floor(low), 0.0, most)),
            static_cast<std::size_t>(std::clamp(std::ceil(high), 0.0, most))};
  }

  Screen screen_;
  std::size_t rows_;
  std::vector<GifByteType> pixels_;
};

/// A file that is written. After a failure nothing more is written.
class GifFile {
 public:
  explicit GifFile(const std::filesystem::path& path) : path_(path) {
    // giflib would let only the owner read it.
    const int descriptor = ::open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
    int failure = E_GIF_ERR_OPEN_FAILED;
    if (descriptor >= 0) gif_ = EGifOpenFileHandle(descriptor, &failure);
    if (gif_) return;
    fail(failure);
    if (descriptor >= 0) ::close(descriptor);
  }
  GifFile(const GifFile&) = delete;
  GifFile& operator=(const GifFile&) = delete;
  ~GifFile() {
    if (gif_) EGifCloseFile(gif_, nullptr);
  }

  void begin(std::size_t rows) {
    if (has_failed()) return;
    EGifSetGifVersion(gif_, true);
    std::array<GifColorType, kColours> colours{};
    colours.fill({0xff, 0xff, 0xff});
    for (const Part part : kParts) {
      const Look look = look_of(part);
      colours[index_of(part)] = {look.red, look.green, look.blue};
    }
    ColorMapObject* const map = GifMakeMapObject(kColours, colours.data());
    keep(map ? EGifPutScreenDesc(gif_, static_cast<int>(Picture::kColumns), static_cast<int>(rows), 8, 0, map)
             : GIF_ERROR);
    GifFreeMapObject(map);
    // The extension of Netscape: again and again.
    const std::array<GifByteType, 3> forever{1, 0, 0};
    keep(EGifPutExtensionLeader(gif_, APPLICATION_EXT_FUNC_CODE));
    keep(EGifPutExtensionBlock(gif_, 11, "NETSCAPE2.0"));
    keep(EGifPutExtensionBlock(gif_, static_cast<int>(forever.size()), forever.data()));
    keep(EGifPutExtensionTrailer(gif_));
  }

  /// @param hundredths  of a second that the picture stays
  void add(Picture picture, int hundredths) {
    if (has_failed()) return;
    const GraphicsControlBlock control{
        .DisposalMode = DISPOSE_DO_NOT, .UserInputFlag = false, .DelayTime = hundredths, .TransparentColor = -1};
    std::array<GifByteType, 4> bytes{};
    EGifGCBToExtension(&control, bytes.data());
    keep(EGifPutExtension(gif_, GRAPHICS_EXT_FUNC_CODE, static_cast<int>(bytes.size()), bytes.data()));
    keep(EGifPutImageDesc(gif_, 0, 0, static_cast<int>(Picture::kColumns), static_cast<int>(picture.rows()), false,
                          nullptr));
    for (std::size_t row = 0; row < picture.rows() && !has_failed(); ++row) {
      keep(EGifPutLine(gif_, picture.row(row), static_cast<int>(Picture::kColumns)));
    }
  }

  /// Returns what went wrong, if anything did.
  Result<void> end() {
    if (gif_) {
      int failure = 0;
      if (EGifCloseFile(std::exchange(gif_, nullptr), &failure) != GIF_OK) fail(failure);
    }
    if (!has_failed()) return {};
    return Error(Errc::io_error,
                 printable(path_.string()) + " cannot be written: " + failure_ + ": " + std::strerror(errno_));
  }

 private:
  bool has_failed() const noexcept { return !failure_.empty(); }
  void keep(int answer) {
    if (answer != GIF_OK) fail(gif_->Error);
  }
  /// The first failure stays.
  void fail(int code) {
    if (has_failed()) return;
    errno_ = errno;
    const char* const text = GifErrorString(code);
    failure_ = text ? text : "error " + std::to_string(code);
  }

  std::filesystem::path path_;
  GifFileType* gif_ = nullptr;
  std::string failure_{};
  int errno_ = 0;
};

}  // namespace

Result<void> write_gif(const std::filesystem::path& path, const std::vector<Scene>& scenes, double per_s) {
  if (scenes.empty()) return Error(Errc::bad_arguments, "no scene to show");
  if (!(per_s > 0)) return Error(Errc::bad_arguments, "scenes per second: " + format_digits(per_s) + " is not above 0");
  const auto stride = static_cast<std::size_t>(std::max(1.0, std::ceil(per_s / kMostPicturesPerS)));
  // The delay of each picture is a whole number of hundredths; the sum of all stays right.
  const auto hundredths_at = [&](std::size_t scene) { return std::llround(static_cast<double>(scene) * 100 / per_s); };
  GifFile file(path);
  file.begin(Picture(scenes.front()).rows());
  const std::size_t last = scenes.size() - 1;
  for (std::size_t at = 0, next = 0; at <= last; at = next) {
    next = at < last ? std::min(at + stride, last) : at + stride;
    const auto delay = std::clamp<long long>(hundredths_at(next) - hundredths_at(at), 2, 65535);
    file.add(Picture(scenes[at]), static_cast<int>(delay));
  }
  return file.end();
}

}  // namespace caftan::play
