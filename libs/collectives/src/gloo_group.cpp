#include "gloo_group.hpp"

#include <ATen/ops/empty.h>
#include <ATen/ops/tensor.h>
#include <ATen/ops/zeros.h>
#include <torch/csrc/distributed/c10d/ProcessGroupGloo.hpp>

#include <cstring>
#include <optional>
#include <thread>
#include <utility>

#include "caftan/base/mutex.hpp"
#include "caftan/tensor/internal/torch_errors.hpp"
#include "caftan/tensor/packed.hpp"
#include "reduction.hpp"

// Only declarations of gloo and libtorch are used: their code is in libtorch_cpu, so nothing of Debian's libgloo is
// linked. The members' addresses pass through the group's calls; gloo listens on a port that the system chooses.

namespace caftan::collectives {
namespace {

using Kind = Operation::Kind;

/// The rendezvous of a process group: keys at rank 0, over calls.
class CallStore final : public c10d::Store {
 public:
  CallStore(std::shared_ptr<Group> group, std::chrono::milliseconds timeout)
      : c10d::Store(timeout), group_(std::move(group)) {}

  c10::intrusive_ptr<c10d::Store> clone() override { return c10::make_intrusive<CallStore>(group_, timeout_); }
  void set(const std::string& key, const std::vector<uint8_t>& value) override {
    wire::Bytes bytes(value.size());
    if (!value.empty()) std::memcpy(bytes.data(), value.data(), value.size());
    (void)ask(key, {bytes}, timeout_);
  }
  std::vector<uint8_t> get(const std::string& key) override {
    const wire::Bytes bytes = ask(key, {}, timeout_);
    std::vector<uint8_t> value(bytes.size());
    if (!value.empty()) std::memcpy(value.data(), bytes.data(), bytes.size());
    return value;
  }
  void wait(const std::vector<std::string>& keys) override { wait(keys, timeout_); }
  void wait(const std::vector<std::string>& keys, const std::chrono::milliseconds& timeout) override {
    for (const std::string& key : keys) (void)ask(key, {}, timeout);
  }
  int64_t add(const std::string&, int64_t) override { return not_needed("add"); }
  bool deleteKey(const std::string&) override { return not_needed("deleteKey") != 0; }
  bool check(const std::vector<std::string>&) override { return not_needed("check") != 0; }
  int64_t getNumKeys() override { return not_needed("getNumKeys"); }

 private:
  wire::Bytes ask(const std::string& key, const std::vector<wire::Bytes>& value, std::chrono::milliseconds timeout) {
    Future<wire::Bytes> asked = group_->store_at_root(key, value);
    if (timeout.count() > 0 && !asked.wait_for(timeout)) {
      throw RpcException(Error(Errc::timeout, "gloo's rendezvous: the key " + key + " was not set in time"));
    }
    return std::move(asked).get();
  }
  [[noreturn]] static int64_t not_needed(const char* what) {
    throw RpcException(Error(Errc::unsupported, std::string("gloo's rendezvous: ") + what));
  }

  const std::shared_ptr<Group> group_;
};

/// Owns the process group. Its end waits for operations that other members may never take part in, so a thread of its
/// own does that when the group has failed: when all members have closed their connections, all such operations end.
class Carrier {
 public:
  explicit Carrier(c10::intrusive_ptr<c10d::ProcessGroupGloo> group) : group_(std::move(group)) {}
  ~Carrier() {
    end();
    if (ending_.joinable()) ending_.join();
  }
  Carrier(const Carrier&) = delete;
  Carrier& operator=(const Carrier&) = delete;

  void end() {
    const base::LockGuard lock(mutex_);
    if (group_) ending_ = std::thread([group = std::exchange(group_, {})]() mutable { group.reset(); });
  }
  /// Returns null after `end`.
  c10::intrusive_ptr<c10d::ProcessGroupGloo> group() {
    const base::LockGuard lock(mutex_);
    return group_;
  }

 private:
  base::Mutex mutex_;
  c10::intrusive_ptr<c10d::ProcessGroupGloo> group_ CAFTAN_GUARDED_BY(mutex_);
  std::thread ending_ CAFTAN_GUARDED_BY(mutex_);
};

/// The user's handle of a group whose tensors gloo carries.
class GlooCollectives final : public Collectives {
 public:
  GlooCollectives(std::shared_ptr<Group> group, std::shared_ptr<Collectives> control,
                  c10::intrusive_ptr<c10d::ProcessGroupGloo> gloo)
      : group_(std::move(group)), control_(std::move(control)), carrier_(std::make_shared<Carrier>(std::move(gloo))) {
    group_->on_failure([weak = std::weak_ptr<Carrier>(carrier_)](const Error&) {
      if (const auto carrier = weak.lock()) carrier->end();
    });
  }
  ~GlooCollectives() override { control_.reset(); }

  int rank() const noexcept override { return group_->rank(); }
  const std::vector<std::string>& members() const noexcept override { return group_->members(); }
  Backend backend() const noexcept override { return Backend::gloo; }

  Future<Tensors> all_reduce(const Tensors& tensors, Reduction reduction) override;
  Future<Tensors> broadcast(const Tensors& tensors, int root) override;
  Future<std::vector<Tensors>> all_gather(const Tensors& tensors) override;
  Future<void> barrier() override;
  void fail(const Error& reason) override { group_->fail_everywhere(reason); }

 private:
  using Work = c10::intrusive_ptr<c10d::Work>;
  using Start = std::function<Work(c10d::ProcessGroupGloo& gloo)>;
  using Take = std::function<Result<std::vector<Tensors>>()>;

  Future<std::vector<Tensors>> run(const Operation& operation, const Tensors& tensors, const Start& start, Take take);
  void follow(std::uint64_t number, const Result<Work>& work, Take take);

  const std::shared_ptr<Group> group_;
  std::shared_ptr<Collectives> control_;
  const std::shared_ptr<Carrier> carrier_;
};

/// Taken while gloo starts an operation: libtorch 2.11 writes down each operation in a list of the process
/// (FlightRecorder::record), and adds a process group to its map there without a lock.
base::Mutex& recorder_mutex() {
  static base::Mutex mutex;
  return mutex;
}

/// Begins an operation in the group, which ends it if a member is lost, and lets gloo carry it. Gloo numbers operations
/// in the order of its calls.
Future<std::vector<Tensors>> GlooCollectives::run(const Operation& operation, const Tensors& tensors,
                                                  const Start& start, Take take) {
  std::optional<std::pair<std::uint64_t, Result<Work>>> started;
  Future<std::vector<Tensors>> future = group_->begin_elsewhere(operation, tensors, [&](std::uint64_t number) {
    const auto gloo = carrier_->group();
    if (!gloo) return;  // the group has failed, and with it the operation
    const base::LockGuard lock(recorder_mutex());
    started.emplace(number, tensor::catch_torch(Errc::io_error, [&]() -> Result<Work> { return start(*gloo); }));
  });
  if (started) follow(started->first, started->second, std::move(take));
  return future;
}

/// Completes the operation when gloo has carried it: here, if it already has.
void GlooCollectives::follow(std::uint64_t number, const Result<Work>& work, Take take) {
  if (!work) return group_->fail_soon(work.error());
  (*work)->getFuture()->addCallback(
      [group = group_, number, take = std::move(take)](c10::ivalue::Future& done) {
        if (done.hasError()) return group->fail_soon(Error(Errc::io_error, "gloo: " + done.tryRetrieveErrorMessage()));
        group->finish(number, tensor::catch_torch(Errc::malformed_payload, take));
      },
      false);
}

Future<Tensors> only_one(Future<std::vector<Tensors>> lists) {
  return std::move(lists).then([](Result<std::vector<Tensors>> all) -> Result<Tensors> {
    if (!all) return all.error();
    return std::move(all->front());
  });
}

Future<Tensors> GlooCollectives::all_reduce(const Tensors& tensors, Reduction reduction) {
  const Operation operation{.kind = Kind::all_reduce, .reduction = reduction};
  auto flat = std::make_shared<std::vector<at::Tensor>>();
  const double count = reduction == Reduction::mean ? size() : 1;
  return only_one(run(
      operation, tensors,
      [&, flat](c10d::ProcessGroupGloo& gloo) {
        *flat = {flatten(tensors)};
        return gloo.allreduce(*flat);
      },
      [flat, like = tensors, count]() -> Result<std::vector<Tensors>> {
        const at::Tensor& sum = flat->front();
        return std::vector<Tensors>{unflatten(count > 1 ? sum.div(count) : sum, like)};
      }));
}

Future<Tensors> GlooCollectives::broadcast(const Tensors& tensors, int root) {
  const Operation operation{.kind = Kind::broadcast, .root = root};
  auto bytes = std::make_shared<std::vector<at::Tensor>>();
  return only_one(run(
      operation, tensors,
      [&, bytes](c10d::ProcessGroupGloo& gloo) {
        std::vector<at::Tensor> values;
        for (const at::Tensor& copy : copies(tensors)) values.push_back(copy.reshape({-1}).view(at::kByte));
        *bytes = {flatten(values.empty() ? Tensors{at::zeros({1}, at::kByte)} : values)};
        c10d::BroadcastOptions options;
        options.rootRank = root;
        return gloo.broadcast(*bytes, options);
      },
      [bytes, like = tensors]() -> Result<std::vector<Tensors>> {
        Tensors values;
        std::int64_t at = 0;
        for (const at::Tensor& one : like) {
          const auto size = static_cast<std::int64_t>(one.numel() * static_cast<std::int64_t>(one.element_size()));
          values.push_back(bytes->front().narrow(0, at, size).clone().view(one.scalar_type()).view(one.sizes()));
          at += size;
        }
        return std::vector<Tensors>{values};
      }));
}

/// Two operations of gloo: the sizes of what the members give, then their bytes, padded to the largest.
Future<std::vector<Tensors>> GlooCollectives::all_gather(const Tensors& tensors) {
  struct Gathered {
    std::vector<at::Tensor> own;
    std::vector<std::vector<at::Tensor>> all;
  };
  auto packed = tensor::pack_tensors(copies(tensors));
  if (!packed) return make_ready_future<std::vector<Tensors>>(packed.error());
  const auto bytes = std::make_shared<const wire::Bytes>(*std::move(packed));
  const auto members = static_cast<std::size_t>(size());
  const auto gather = [members](c10d::ProcessGroupGloo& gloo, Gathered& into, const at::Tensor& own) {
    into.own = {own};
    into.all.assign(1, {});
    for (std::size_t i = 0; i < members; ++i) into.all.front().push_back(at::empty_like(own));
    return gloo.allgather(into.all, into.own);
  };
  const auto sizes = std::make_shared<Gathered>();
  auto known = run(
      {.kind = Kind::all_gather}, {},
      [&](c10d::ProcessGroupGloo& gloo) {
        return gather(gloo, *sizes, at::tensor({static_cast<std::int64_t>(bytes->size())}, at::kLong));
      },
      [sizes]() -> Result<std::vector<Tensors>> { return sizes->all; });
  // The second operation needs the first one's result, and its place in the order: so this waits for the sizes.
  auto lists = std::move(known).result();
  if (!lists) return make_ready_future<std::vector<Tensors>>(lists.error());
  std::int64_t most = 1;
  for (const at::Tensor& one : lists->front()) most = std::max(most, one.item<std::int64_t>());
  const auto values = std::make_shared<Gathered>();
  return run(
      {.kind = Kind::all_gather}, {},
      [&](c10d::ProcessGroupGloo& gloo) {
        at::Tensor own = at::zeros({most}, at::kByte);
        if (!bytes->empty()) std::memcpy(own.mutable_data_ptr(), bytes->data(), bytes->size());
        return gather(gloo, *values, own);
      },
      [values, sizes = lists->front()]() -> Result<std::vector<Tensors>> {
        std::vector<Tensors> all;
        for (std::size_t i = 0; i < sizes.size(); ++i) {
          const auto* const begin = static_cast<const std::byte*>(values->all.front()[i].const_data_ptr());
          auto one = tensor::unpack_tensors({begin, static_cast<std::size_t>(sizes[i].item<std::int64_t>())});
          if (!one) return one.error();
          all.push_back(*std::move(one));
        }
        return all;
      });
}

Future<void> GlooCollectives::barrier() {
  return run(
             {.kind = Kind::barrier}, {}, [](c10d::ProcessGroupGloo& gloo) { return gloo.barrier(); },
             []() -> Result<std::vector<Tensors>> { return std::vector<Tensors>(); })
      .then([](Result<std::vector<Tensors>> all) -> Result<void> {
        if (!all) return all.error();
        return {};
      });
}

}  // namespace

bool has_gloo() noexcept { return true; }

Result<std::shared_ptr<Collectives>> make_gloo_group(const std::shared_ptr<Group>& group,
                                                     std::shared_ptr<Collectives> control, base::Duration timeout) {
  const auto patience = std::chrono::duration_cast<std::chrono::milliseconds>(timeout);
  using Made = Result<c10::intrusive_ptr<c10d::ProcessGroupGloo>>;
  const Made gloo = tensor::catch_torch(Errc::io_error, [&]() -> Made {
    const auto options = c10d::ProcessGroupGloo::Options::create();
    options->devices.push_back(c10d::ProcessGroupGloo::createDefaultDevice());
    const auto store = c10::make_intrusive<CallStore>(group, patience);
    return c10::make_intrusive<c10d::ProcessGroupGloo>(store, group->rank(), static_cast<int>(group->members().size()),
                                                       options);
  });
  if (!gloo) {
    control->fail(gloo.error());
    return gloo.error();
  }
  return std::shared_ptr<Collectives>(std::make_shared<GlooCollectives>(group, std::move(control), *gloo));
}

}  // namespace caftan::collectives
