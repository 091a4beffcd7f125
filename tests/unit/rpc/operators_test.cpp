#include "caftan/rpc/operators.hpp"

#include <ATen/ops/cat.h>
#include <ATen/ops/ones.h>
#include <gtest/gtest.h>

#include "caftan/tensor/operators.hpp"
#include "fake_caller.hpp"

namespace caftan::operators_test {
namespace {

using rpc::kwarg;
using test::FakeJob;

struct Operators : ::testing::Test {
  Operators() {
    job.add(Registry());
    job.add(Registry());
  }
  Worker& worker() { return job.at(0).worker(); }
  Error refused(const std::string& schema, const std::vector<rpc::OperatorArgument>& arguments = {}) {
    rpc::CallTarget target;
    target.caller = worker().alive().value();
    target.peer = worker().peer("worker1");
    return rpc::start_operator(target, schema, arguments).result().error();
  }
  FakeJob job;
};

TEST_F(Operators, RunBySchemaNameWithPositionalAndKeywordArguments) {
  const at::Tensor a = at::ones({2, 3});
  EXPECT_TRUE(worker().rpc_op("worker1", "aten::add.Tensor", a, a, kwarg("alpha", 2)).equal(a * 3));
  EXPECT_TRUE(worker().rpc_op("worker1", "aten::neg", a).equal(-a));
  EXPECT_TRUE(worker().rpc_op("worker1", "aten::cat", std::vector<at::Tensor>{a, a}, 1).equal(at::cat({a, a}, 1)));
  EXPECT_EQ(worker().rpc_op("worker1", "aten::reshape", a, std::vector<std::int64_t>{3, 2}).size(0), 3);
  const at::Tensor half = worker().rpc_op("worker1", "aten::to.dtype", a, at::kHalf, false, true, std::monostate());
  EXPECT_EQ(half.scalar_type(), at::kHalf);
  EXPECT_EQ(worker().rpc_op("worker1", "aten::clamp", a, 2.0, std::monostate())[0][0].item<float>(), 2.0F);
}

TEST_F(Operators, ReturnSeveralResults) {
  const auto results = worker().rpc_op_async("worker1", "aten::max.dim", at::ones({2, 3}), 1).get();
  ASSERT_EQ(results.size(), 2U);
  EXPECT_EQ(std::get<at::Tensor>(results[1]).scalar_type(), at::kLong);
  EXPECT_EQ(worker().try_rpc_op("worker1", "aten::max.dim", at::ones({2, 3}), 1).error().code(), Errc::wrong_type);
  const auto size = worker().rpc_op_async("worker1", "aten::size.int", at::ones({2, 3}), 1).get();
  EXPECT_EQ(std::get<std::int64_t>(size[0]), 3);
}

TEST_F(Operators, MayLeaveTheirResultThere) {
  const RRef<at::Tensor> sum = worker().remote_op("worker1", "aten::add.Tensor", at::ones({2}), at::ones({2}));
  EXPECT_EQ(sum.owner_name(), "worker1");
  EXPECT_TRUE(sum.to_here().equal(at::ones({2}) * 2));
}

TEST_F(Operators, L3_CALL5_ACreationWhoseTimeIsOverIsNotMade) {
  EXPECT_TRUE(worker().rpc_op("worker1", "aten::neg", at::ones({2})).equal(-at::ones({2})));
  wire::Bytes body(sizeof(std::uint64_t), std::byte{0});  // the mark of a creation by an operator
  wire::append(body, job.at(0).last_request().body);
  rpc::Dispatcher dispatcher(job.at(1));
  const auto create = [&](base::TimePoint deadline) {
    rpc::InPayload payload;
    payload.body = body;
    payload.tensors = {at::ones({2})};
    CallInfo info;
    info.caller = job.at(0).peer();
    info.deadline = deadline;
    return dispatcher.create(nullptr, std::move(payload), std::move(info), job.at(1).make_rref_id()).result();
  };
  EXPECT_TRUE(create(base::kNever));
  EXPECT_EQ(create(job.executor.clock().now()).error().code(), Errc::timeout);
}

TEST_F(Operators, CALL10_TheirErrorsAreTyped) {
  const at::Tensor a = at::ones({2, 3});
  EXPECT_EQ(refused("aten::no_such_thing").code(), Errc::unknown_function);
  EXPECT_EQ(refused("aten::add.Tensor", {a}).code(), Errc::bad_arguments);
  EXPECT_EQ(refused("aten::add.Tensor", {a, a, a, a}).code(), Errc::bad_arguments);
  EXPECT_EQ(refused("aten::add.Tensor", {a, kwarg("other", a), kwarg("other", a)}).code(), Errc::bad_arguments);
  const Error shape = refused("aten::mm", {a, a});
  EXPECT_EQ(shape.code(), Errc::remote_exception);
  EXPECT_EQ(shape.worker(), "worker1");
  EXPECT_NE(shape.text().find("cannot be multiplied"), std::string::npos) << shape.text();
  EXPECT_EQ(refused("aten::to.dtype", {a, rpc::OperatorValue(static_cast<at::ScalarType>(120))}).code(),
            Errc::bad_arguments);
}

TEST_F(Operators, H11_TheArgumentsChooseTheOverload) {
  const at::Tensor a = at::ones({2, 3});
  EXPECT_TRUE(worker().rpc_op("worker1", "aten::add", a, a).equal(a * 2));
  EXPECT_EQ(job.at(0).last_request().what, "aten::add.Tensor");
  EXPECT_TRUE(worker().rpc_op("worker1", "aten::add", a, 2).equal(a * 3));
  EXPECT_EQ(job.at(0).last_request().what, "aten::add.Scalar");
  EXPECT_EQ(worker().rpc_op("worker1", "aten::sum", a).item<float>(), 6.0F);
  EXPECT_EQ(job.at(0).last_request().what, "aten::sum");
  EXPECT_EQ(worker().rpc_op("worker1", "aten::sum", a, std::vector<std::int64_t>{0}).size(0), 3);
  EXPECT_EQ(job.at(0).last_request().what, "aten::sum.dim_IntList");
  EXPECT_EQ(worker().rpc_op_async("worker1", "aten::max", a, 1).get().size(), 2U);
  EXPECT_TRUE(worker().remote_op("worker1", "aten::add", a, a, kwarg("alpha", 3)).to_here().equal(a * 4));
}

TEST_F(Operators, H11_WrongArgumentsAreFoundBeforeAFrameIsSent) {
  const at::Tensor a = at::ones({2, 3});
  EXPECT_TRUE(worker().rpc_op("worker1", "aten::neg", a).equal(-a));
  for (const Error& error : {refused("aten::add", {a, "text"}), refused("aten::add.Tensor", {a}),
                             refused("aten::no_such_thing", {a}), refused("aten::neg", {a, kwarg("other", a)}),
                             refused("aten::add_.Tensor", {a, a}), refused("aten::add.Tensor", {a, a, a})}) {
    EXPECT_TRUE(error.code() == Errc::bad_arguments || error.code() == Errc::unknown_function) << error.message();
    EXPECT_EQ(job.at(0).last_request().what, "aten::neg") << error.message();
  }
  const Error error = refused("aten::add", {a, "text"});
  EXPECT_NE(error.text().find("aten::add.Tensor(Tensor self, Tensor other"), std::string::npos) << error.text();
  const Result<std::shared_ptr<rpc::RRefHandle>> made = [&] {
    rpc::CallTarget target;
    target.caller = worker().alive().value();
    target.peer = worker().peer("worker1");
    return rpc::start_operator_creation(target, "aten::max", {a, 1});
  }();
  EXPECT_EQ(made.error().code(), Errc::wrong_type);
  EXPECT_EQ(job.at(0).last_request().what, "aten::neg");
}

TEST_F(Operators, CALL10_WhatIsNotPureIsRefused) {
  const at::Tensor a = at::ones({2});
  const char* const forbidden[] = {
      "aten::add_.Tensor",
      "aten::add.out",
      "aten::from_file",
      "aten::_print",
      "aten::set_data",
      "aten::_pin_memory",
      "aten::pin_memory",
      "aten::record_stream",
      "aten::rand",
      "aten::dropout",
      "aten::bernoulli",
      "aten::empty_strided",
      "aten::empty.memory_format",
      "aten::new_empty",
      "aten::rand.generator",
      "aten::_unsafe_view",
      "aten::native_dropout_backward",
      "aten::embedding_dense_backward",
  };
  for (const char* const schema : forbidden) {
    const Error error = refused(schema, {a});
    EXPECT_EQ(error.code(), Errc::bad_arguments) << schema << ": " << error.message();
    EXPECT_NE(error.text().find("cannot be called remotely"), std::string::npos) << schema << ": " << error.message();
  }
  EXPECT_EQ(refused("prim::device").code(), Errc::unknown_function);
}

}  // namespace
}  // namespace caftan::operators_test
