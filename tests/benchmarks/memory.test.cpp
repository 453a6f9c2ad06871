// SPDX-License-Identifier: Apache-2.0
#include "benchmarks/memory.h"

#include <cstring>
#include <vector>

#include "benchmarks/parts.h"
#include "support/catch.h"

using namespace khoro::benchmark;

namespace {

constexpr int ranks = 3;
constexpr std::size_t elements = 30;
constexpr std::size_t width = sizeof(float);
constexpr TypeRow type{"float", khoroFloat32, width};

using Expect = std::vector<Origin> (*)(const Extent&, const Place&);

std::vector<Origin> mine_of_root(const Extent& extent, const Place& at) {
  return {{at.root, extent.recv * at.rank, 0, extent.recv}};
}

struct Shape {
  Extent (*extent)(std::size_t, int);
  Expect expect;
};
constexpr Shape shapes[] = {{share_to_whole, gathered},
                            {share_to_whole, on_root<gathered>},
                            {whole_to_share, mine_of_root},
                            {whole_to_whole, on_root<mine_of_root>}};

/// One rank's call, made without Khoro.
struct Play {
  Play(const Shape& shape, int rank, Form form)
      : test{shape.extent(elements, ranks), {type, khoroSum, ranks, 3}, {rank, ranks, 0}, form},
        expected(shape.expect(test.sizes, test.at)),
        memory(shape.extent(elements * width, ranks)),
        at(memory.prepare(test)) {
    for (const Origin& origin : expected) {
      std::vector<std::byte> input((origin.from + origin.count) * width);
      fill(test.draw, origin.rank, origin.from + origin.count, input.data());
      std::memcpy(at.recv + origin.first * width, input.data() + origin.from * width,
                  origin.count * width);
    }
  }

  Wrong inspect() { return memory.inspect(test, expected); }
  std::byte* input() { return const_cast<std::byte*>(at.send); }

  Case test;
  std::vector<Origin> expected;
  Memory memory;
  Memory::Addresses at;
};

template <class F>
void for_each_play(F&& with) {
  for (const Shape& shape : shapes)
    for (int rank = 0; rank < ranks; ++rank)
      for (const Form form : {Form::out_of_place, Form::in_place}) {
        Play play(shape, rank, form);
        INFO("shape " << &shape - shapes << ", rank " << rank << ", in place "
                      << (form == Form::in_place));
        with(play);
      }
}

}  // namespace

TEST_CASE("what a right call leaves behind is right, in place too", "[benchmarks]") {
  for_each_play([](Play& play) { CHECK(play.inspect().count == 0); });
}

TEST_CASE("a flipped byte is found on every rank, whether or not it gets a result",
          "[benchmarks]") {
  for_each_play([](Play& play) {
    const Extent& sizes = play.test.sizes;
    const bool in_place = play.test.form == Form::in_place;
    play.memory.flip_byte(play.test);
    const Wrong wrong = play.inspect();
    CHECK(wrong.count == 1);
    CHECK(wrong.first == sizes.recv - 1 + (in_place ? play.test.at.rank * sizes.recv_stride : 0));
  });
}

TEST_CASE("an input that changed is found, in place too", "[benchmarks]") {
  for_each_play([](Play& play) {
    for (std::size_t element = 0; element < play.test.sizes.send; ++element) {
      std::byte* const byte = play.input() + element * width;
      *byte ^= std::byte{1};
      CHECK(play.inspect().count == 1);
      *byte ^= std::byte{1};
    }
  });
}

TEST_CASE("a byte written where nothing belongs is found", "[benchmarks]") {
  for_each_play([](Play& play) {
    const bool in_place = play.test.form == Form::in_place;
    const auto found = [&](std::byte* at) {
      *at ^= std::byte{1};
      CHECK(play.inspect().count == 1);
      *at ^= std::byte{1};
    };
    const Extent& sizes = play.test.sizes;
    std::byte* const first =
        play.at.recv - (in_place ? play.test.at.rank * sizes.recv_stride * width : 0);
    const std::size_t room = in_place ? std::max(sizes.send, sizes.recv) : sizes.recv;
    found(first - 1);
    found(first + room * width);
    if (!play.expected.empty()) return;
    for (std::size_t element = 0; element < room; ++element) found(first + element * width);
  });
}

TEST_CASE("a wrong element is counted, and its place in the buffer told", "[benchmarks]") {
  Play play(shapes[2], 1, Form::in_place);
  play.at.recv[2 * width] ^= std::byte{1};
  play.at.recv[4 * width] ^= std::byte{1};
  const Wrong wrong = play.inspect();
  CHECK(wrong.count == 2);
  CHECK(wrong.first == elements / ranks + 2);
}
