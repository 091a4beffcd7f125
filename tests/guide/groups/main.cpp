// One call to several objects or workers, workers that wait for each other, and calls without a reply.
#include <ATen/ops/ones.h>
#include <algorithm>
#include <caftan/caftan.hpp>
#include <chrono>
#include <cstdio>
#include <functional>
#include <future>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

using namespace std::chrono_literals;

class Learner {
 public:
  explicit Learner(double loss) : loss_(loss) {}
  double loss() const { return loss_; }
  void set_weight(const at::Tensor& weight) { weight_ = weight; }
  double take(int row) { return rows_ += row; }
  void set_mean(double total) { mean_ = total / 3; }
  double mean() const { return mean_; }

 private:
  double loss_;
  double rows_ = 0;
  double mean_ = 0;
  at::Tensor weight_;
};

class Journal {
 public:
  void note(const std::string& line) { lines_.push_back(line); }
  std::size_t lines() const { return lines_.size(); }

 private:
  std::vector<std::string> lines_;
};

int square(int x) { return x * x; }

bool calls_all(const caftan::Group<Learner>& learners) {
  const std::vector<double> losses = learners.rpc_all<&Learner::loss>().get();
  learners.broadcast<&Learner::set_weight>(at::ones({1000})).get();  // encoded once, for all
  const std::vector<double> rows = learners.scatter<&Learner::take>(std::vector<int>{10, 20, 30}).get();
  return losses == std::vector<double>{1, 2, 6} && rows[2] == 30;
}

bool folds(const caftan::Group<Learner>& learners) {
  const double sum = learners.reduce<&Learner::loss>(std::plus<>()).get();
  const double worst = learners.reduce<&Learner::loss>([](double a, double b) { return std::max(a, b); }).get();
  learners.all_reduce<&Learner::loss, &Learner::set_mean>(std::plus<>()).get();  // and each learner has the total
  return sum == 9 && worst == 6 && learners.rpc_all<&Learner::mean>().get() == std::vector<double>{3, 3, 3};
}

bool each_outcome(const caftan::WorkerGroup& workers) {
  int failed = 0;
  for (const caftan::Result<int>& outcome : workers.with({.timeout = 5s}).rpc_all_results<&square>(7).get()) {
    if (!outcome) std::printf("%s\n", outcome.error().message().c_str()), ++failed;
  }
  return failed == 0;
}

/// Each worker runs this.
double mean_loss(const caftan::CallSite& worker, double loss) {
  worker.barrier();  // all have come so far
  const std::map<std::string, double> losses = worker.all_gather(loss);
  double sum = 0;
  for (const auto& [name, value] : losses) sum += value;
  return sum / static_cast<double>(losses.size());
}

bool notes(const caftan::RRef<Journal>& journal) {
  for (int step = 0; step < 1000; ++step) journal.tell<&Journal::note>("step " + std::to_string(step));
  return journal.rpc_sync<&Journal::lines>() == 1000;  // a later call of the object finds them all
}

caftan::Registry functions() {
  caftan::Registry registry;
  registry.add<&square>("square");
  registry.add<Learner>("learner")
      .constructor<double>()
      .method<&Learner::loss>("loss")
      .method<&Learner::set_weight>("set_weight")
      .method<&Learner::take>("take")
      .method<&Learner::set_mean>("set_mean")
      .method<&Learner::mean>("mean");
  registry.add<Journal>("journal").constructor<>().method<&Journal::note>("note").method<&Journal::lines>("lines");
  return registry;
}

std::vector<std::unique_ptr<caftan::Worker>> start_workers() {
  const auto network = std::make_shared<caftan::LocalNetwork>();
  std::vector<std::unique_ptr<caftan::Worker>> workers;
  for (const std::string name : {"a", "b", "c"}) {
    caftan::WorkerOptions options;
    options.name = name;
    options.world = {{"a", ""}, {"b", ""}, {"c", ""}};
    options.network = network;
    workers.push_back(caftan::Worker::launch(std::move(options), functions()).value());
  }
  for (const auto& worker : workers) worker->wait_until_ready().value();
  return workers;
}

bool gathers(const std::vector<std::unique_ptr<caftan::Worker>>& workers) {
  std::vector<std::future<double>> means;
  for (std::size_t i = 0; i < workers.size(); ++i) {
    means.push_back(std::async(std::launch::async, [&worker = *workers[i], i] { return mean_loss(worker, 1.0 + i); }));
  }
  bool right = true;
  for (std::future<double>& mean : means) right = mean.get() == 2 && right;
  return right;
}

int main() {
  const auto workers = start_workers();
  caftan::Worker& a = *workers[0];
  std::vector<caftan::RRef<Learner>> made;
  for (const auto& [name, loss] : std::map<std::string, double>{{"a", 1}, {"b", 2}, {"c", 6}}) {
    made.push_back(a.remote<Learner>(name, loss));
  }
  const caftan::Group<Learner> learners(made);
  const bool right = calls_all(learners) && folds(learners) && each_outcome(a.group({"a", "b", "c"})) &&
                     gathers(workers) && notes(a.remote<Journal>("b"));
  return right ? 0 : 1;
}
