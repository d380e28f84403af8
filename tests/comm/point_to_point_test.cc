// Messages between two ranks: order, contents, ownership.
#include <ATen/ATen.h>

#include "backends.h"

namespace penstock::comm {
namespace {

class PointToPoint : public BackendTest {};
PENSTOCK_FOR_ALL_BACKENDS(PointToPoint);

TEST_P(PointToPoint, RingOfEveryCount) {
  for (const int n : kRankCounts) {
    Run(n, [n](Communicator& comm) {
      const int next = (comm.rank() + 1) % n, before = (comm.rank() + n - 1) % n;
      for (int64_t length : {0, 1, 17, 4096}) {
        comm.Send(next, {1, static_cast<uint64_t>(length)},
                  {at::full({length}, comm.rank(), at::kFloat), at::Tensor()});
        const auto got = comm.Recv(before, {1, static_cast<uint64_t>(length)})->TakeTensors();
        ASSERT_EQ(got.size(), 2u);
        EXPECT_TRUE(at::equal(got[0], at::full({length}, before, at::kFloat)));
        EXPECT_FALSE(got[1].defined());
      }
    });
  }
}

TEST_P(PointToPoint, OrderWhicheverSideIsFirst) {
  Run(2, [](Communicator& comm) {
    constexpr uint64_t kMessages = 100;
    if (comm.rank() == 0) {
      for (uint64_t i = 0; i < kMessages; ++i)
        comm.Send(1, {7, i}, {at::scalar_tensor(static_cast<double>(i), at::kDouble)});
      comm.Recv(1, {8, 0})->Wait();
      for (uint64_t i = 0; i < kMessages; ++i)
        comm.Send(1, {9, i}, {at::scalar_tensor(static_cast<double>(i), at::kDouble)});
    } else {
      for (uint64_t i = 0; i < kMessages; ++i) EXPECT_EQ(comm.Recv(0, {7, i})->TakeTensors().at(0).item<double>(), i);
      std::vector<WorkPtr> posted;
      for (uint64_t i = 0; i < kMessages; ++i) posted.push_back(comm.Recv(0, {9, i}));
      EXPECT_FALSE(posted.back()->Done());
      comm.Send(0, {8, 0}, {});
      // Waited for out of order: each still holds its own message.
      for (uint64_t i = kMessages; i-- > 0;) {
        EXPECT_EQ(posted[i]->TakeTensors().at(0).item<double>(), i);
        EXPECT_TRUE(posted[i]->Done());
        EXPECT_TRUE(posted[i]->TakeTensors().empty());
      }
    }
  });
}

TEST_P(PointToPoint, ToItself) {
  Run(1, [](Communicator& comm) {
    auto receive = comm.Recv(0, {1, 1});
    comm.Send(0, {1, 1}, {at::ones({3})});
    EXPECT_TRUE(receive->Done());
    EXPECT_TRUE(at::equal(receive->TakeTensors().at(0), at::ones({3})));
    EXPECT_EQ(comm.traffic().Total(), Traffic{});
  });
}

// numerics R6: the receiver sees the same strides whatever the sender had, and no history.
TEST_P(PointToPoint, ArrivesContiguousAlignedAndWithoutHistory) {
  Run(2, [](Communicator& comm) {
    if (comm.rank() == 0) {
      const at::Tensor base = at::arange(64, at::kFloat);
      const at::Tensor leaf = at::ones({4}).requires_grad_(true);
      comm.Send(1, {1, 0},
                {base.view({8, 8}).t(), base.slice(0, 1, 17), (leaf * 2).sum(), at::ones({3}, at::kBFloat16)});
    } else {
      const auto got = comm.Recv(0, {1, 0})->TakeTensors();
      EXPECT_TRUE(at::equal(got[0], at::arange(64, at::kFloat).view({8, 8}).t()));
      EXPECT_TRUE(at::equal(got[1], at::arange(1, 17, at::kFloat)));
      EXPECT_EQ(got[3].scalar_type(), at::kBFloat16);
      for (const at::Tensor& t : got) {
        EXPECT_TRUE(t.is_contiguous());
        EXPECT_EQ(reinterpret_cast<uintptr_t>(t.const_data_ptr()) % 64, 0u);
        EXPECT_FALSE(t.requires_grad());
        EXPECT_FALSE(t.grad_fn());
      }
    }
  });
}

// numerics test 6: what a receiver computes does not depend on the strides that the sender had. The mutation, the same
// operations on the strided tensors themselves, as they would be without R6, must have other bits.
TEST_P(PointToPoint, StridesOfTheSenderDoNotReachTheBits) {
  const auto compute = [](const at::Tensor& x) {  // what the first layer of a stage may do with its input
    return std::vector<at::Tensor>{at::gelu(x), at::silu(x), at::sigmoid(x), x.square().mean(-1), x.sum({0, 1})};
  };
  const auto differing = [](const std::vector<at::Tensor>& a, const std::vector<at::Tensor>& b) {
    int count = 0;
    for (size_t i = 0; i < a.size(); ++i) count += at::equal(a[i], b[i]) ? 0 : 1;
    return count;
  };
  for (const at::ScalarType dtype : {at::kFloat, at::kDouble}) {
    const at::Tensor x = (at::arange(4 * 16 * 37, at::kDouble) * 0.7).sin().mul(3.0).view({4, 16, 37}).to(dtype);
    const std::vector<at::Tensor> strided = {
        x.transpose(0, 1).contiguous().transpose(0, 1), x.transpose(1, 2).contiguous().transpose(1, 2),
        at::cat({x, x}, -1).narrow(-1, 0, 37), x.repeat_interleave(2, -1).slice(-1, 0, at::nullopt, 2)};
    const std::vector<at::Tensor> expected = compute(x);
    int without = 0;
    for (const at::Tensor& t : strided) {
      ASSERT_TRUE(at::equal(t, x) && !t.is_contiguous());
      without += differing(compute(t), expected);
    }
    EXPECT_GT(without, 0) << "the mutation was not noticed";
    Run(2, [&](Communicator& comm) {
      if (comm.rank() == 0) {
        comm.Send(1, {1, 0}, strided);
      } else {
        for (const at::Tensor& t : comm.Recv(0, {1, 0})->TakeTensors())
          EXPECT_EQ(differing(compute(t), expected), 0) << t.scalar_type();
      }
    });
  }
}

TEST_P(PointToPoint, WrongArgumentsAreRefusedBeforeAnythingIsSent) {
  Run(2, [](Communicator& comm) {
    EXPECT_THROW(comm.Send(2, {}, {}), InternalError);
    EXPECT_THROW(comm.Recv(-1, {}), InternalError);
    EXPECT_THROW(comm.CreateGroup({}), InternalError);
    EXPECT_THROW(comm.CreateGroup({1, 0}), InternalError);
    EXPECT_THROW(comm.CreateGroup({0, 2}), InternalError);
    EXPECT_THROW(comm.AllReduceSum(comm.world(), {}, at::ones({4, 4}).t().slice(0, 0, 2)), InternalError);
    EXPECT_THROW(comm.AllReduceSum(comm.world(), {}, at::ones({4}, at::kHalf)), InternalError);
    EXPECT_THROW(comm.ReduceScatterSum(comm.world(), {}, at::ones({4}), {0, 2}, at::ones({2})), InternalError);
    EXPECT_THROW(comm.ReduceScatterSum(comm.world(), {}, at::ones({4}), {0, 2, 4}, at::ones({3})), InternalError);
    const Group other = comm.CreateGroup({1 - comm.rank()});
    EXPECT_EQ(other.rank(), -1);
    EXPECT_THROW(comm.Barrier(other, {}), InternalError);
    EXPECT_THROW(comm.Barrier(Group(), {}), InternalError);
    comm.Barrier(comm.world(), {})->Wait();  // and the world still works
  });
}

// Threads only: a hand-over is the pointer.
TEST(ThreadHandOver, IsThePointer) {
  const void* sent = nullptr;
  std::vector<const void*> parts(4);
  RunThreadRanks(2, {}, [&](Communicator& comm) {
    if (comm.rank() == 0) {
      at::Tensor t = at::ones({1000});
      sent = t.const_data_ptr();
      comm.Send(1, {1, 2}, {t});
    } else {
      EXPECT_EQ(comm.Recv(0, {1, 2})->TakeTensors().at(0).const_data_ptr(), sent);
    }
    std::vector<at::Tensor> mine = {at::ones({5}), at::ones({7})};
    for (int i = 0; i < 2; ++i) parts[2 * comm.rank() + i] = mine[i].const_data_ptr();
    const auto got = comm.AllToAllV(comm.world(), {3, 3}, mine)->TakeTensors();
    for (int i = 0; i < 2; ++i) EXPECT_EQ(got[i].const_data_ptr(), parts[2 * i + comm.rank()]);
  });
}

}  // namespace
}  // namespace penstock::comm
