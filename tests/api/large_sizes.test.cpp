// SPDX-License-Identifier: Apache-2.0
// More bytes than 31 and 32 bits hold.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

#include "support/catch.h"
#include "support/large_memory.h"
#include "support/play_cases.h"

using namespace khoro;
using namespace khoro::test;

namespace {

/// How many numbers of a rank follow each other by one step.
constexpr std::size_t run = std::size_t{1} << 13;

/// Adds the numbers that a rank gives from element `first` on. They are from -128 to 127, and
/// differ from the other ranks', and from those that are as many elements before as a product or a
/// sum that is cut to 31 or 32 bits would be off by. Thousands of millions are made, so a run is a
/// loop that a compiler makes wide.
template <class T>
void add_numbers(T* to, std::size_t count, int rank, std::size_t first) {
  const auto step = static_cast<std::uint8_t>(2 * rank + 3);
  for (std::size_t done = 0; done < count;) {
    const std::size_t i = first + done;
    const std::size_t here = std::min(count - done, run - i % run);
    const auto start = static_cast<std::uint8_t>(step * i + i / run + 91 * (i >> 29) +
                                                 37 * static_cast<std::size_t>(rank));
    for (std::size_t j = 0; j < here; ++j) {
      const auto bits = static_cast<std::uint8_t>(start + step * static_cast<std::uint8_t>(j));
      to[done + j] = static_cast<T>(to[done + j] + static_cast<std::int8_t>(bits));
    }
    done += here;
  }
}

template <class T>
constexpr khoroDataType_t type_of = sizeof(T) == 1 ? khoroInt8 : khoroFloat32;

template <class T>
constexpr T guard = 77;
/// Who gives the guards that a block is full of.
constexpr int nobody = -2;

/// Elements of a block from `first` on, as they must be.
template <class T>
void make_elements(T* to, std::size_t count, Requirement held, int ranks, std::size_t first) {
  std::fill_n(to, count, held.from == nobody ? guard<T> : T(0));
  for (int rank = 0; rank < ranks; ++rank)
    if (held.from == rank || held.from == Requirement::all_ranks)
      add_numbers(to, count, rank, first);
}

/// Block `index` of what a rank gives.
template <class T>
void fill_block(T* data, std::size_t count, int rank, int index) {
  const std::size_t first = std::size_t(index) * count;
  for (std::size_t done = 0; done < count; done += run)
    make_elements(data + done, std::min(count - done, run), {rank, index}, rank + 1, first + done);
}

template <class T>
void expect_block(const T* data, std::size_t count, Requirement held, int ranks) {
  const std::size_t first = std::size_t(held.chunk) * count;
  std::vector<T> expected(run);
  for (std::size_t done = 0; done < count; done += run) {
    const std::size_t here = std::min(count - done, run);
    make_elements(expected.data(), here, held, ranks, first + done);
    if (std::equal(data + done, data + done + here, expected.data())) continue;
    const T* const wrong = std::mismatch(data + done, data + done + here, expected.data()).first;
    throw std::runtime_error("element " + std::to_string(wrong - data) + " is wrong");
  }
}

/// Elements that are not initialized, and a guard behind them.
template <class T>
struct Memory {
  explicit Memory(std::size_t size) : elements(new T[size + 1]), size(size) {
    elements[size] = guard<T>;
  }
  void check() const {
    expect(elements[size] == guard<T>, "what is behind the buffer was written");
  }
  std::unique_ptr<T[]> elements;
  std::size_t size;
};

/// How many blocks of a whole vector the memory of a call in place has, and which of them a rank
/// reads and writes.
struct InPlace {
  struct Range {
    int first = 0, last = 0;
    bool holds(int block) const { return first <= block && block < last; }
  };
  InPlace(const Collective& collective, int rank)
      : blocks(std::max(collective.input_blocks(), collective.output_blocks())),
        input(range(collective.input_blocks(), rank)),
        output(range(collective.output_blocks(), rank)),
        read(collective.has_input(rank) ? input : Range{}),
        written(collective.has_output(rank) ? output : Range{}) {}
  Range range(int of, int rank) const {
    return of < blocks ? Range{rank, rank + 1} : Range{0, blocks};
  }
  int blocks;
  Range input, output, read, written;
};

void run_if_it_fits(int ranks, std::size_t bytes_of_rank, const RankBody& body) {
  const std::size_t bytes = static_cast<std::size_t>(ranks) * bytes_of_rank;
  const std::string why = too_large(bytes);
  if (!why.empty()) {
    WARN("skipped: " << why);
    return;
  }
  CHECK(on_ranks(Living::threads, ranks, "", body));
}

/// A call in place of blocks of so many elements, after which every element is compared.
template <class T>
void play_in_place(CollectiveKind kind, int ranks, std::size_t count) {
  Case what{.kind = kind, .ranks = ranks, .root = ranks - 1, .count = count, .in_place = true};
  what.dtype = static_cast<Dtype>(type_of<T>);
  INFO(text(what));
  const Collective collective = what.collective();
  const std::size_t all = count * std::size_t(InPlace(collective, 0).blocks);
  run_if_it_fits(ranks, all * sizeof(T), [&](khoroComm_t comm, int rank) {
    const InPlace place(collective, rank);
    const Memory<T> memory(all);
    const auto block = [&](int b) { return &memory.elements[std::size_t(b) * count]; };
    for (int b = 0; b < place.blocks; ++b)
      fill_block<T>(block(b), count, place.read.holds(b) ? rank : nobody, b - place.read.first);
    succeed(make_call(what, {rank, block(place.input.first), block(place.output.first), comm}),
            text(what));
    for (int b = 0; b < place.blocks; ++b) {
      Requirement held{place.read.holds(b) ? rank : nobody, b - place.read.first};
      if (place.written.holds(b))
        held = *collective.requirement(rank, b - place.written.first, collective.blocks());
      expect_block(block(b), count, held, ranks);
    }
    memory.check();
  });
}

constexpr std::size_t two_to_31 = std::size_t{1} << 31;

}  // namespace

TEST_CASE("every collective of more than 2^31 bytes is right", "[api]") {
  for (CollectiveKind kind : kinds_that_move_data()) {
    const auto blocks = static_cast<std::size_t>(Collective{kind, 2}.blocks());
    play_in_place<std::int8_t>(kind, 2, two_to_31 / blocks + 1);
  }
}

TEST_CASE("an allreduce of 2^31 bytes is right, and of one fewer", "[api]") {
  for (std::size_t count : {two_to_31 - 1, two_to_31})
    play_in_place<std::int8_t>(CollectiveKind::allreduce, 2, count);
}

TEST_CASE("a reducescatter whose last block begins beyond 2^30 bytes is right", "[api]") {
  play_in_place<std::int8_t>(CollectiveKind::reducescatter, 3, 800'000'001);
}

TEST_CASE("collectives of a thousand million floats are right", "[api]") {
  play_in_place<float>(CollectiveKind::allreduce, 2, 1'000'000'000);
  play_in_place<float>(CollectiveKind::allreduce, 2, (std::size_t{1} << 30) + 1);
  play_in_place<float>(CollectiveKind::reducescatter, 2, 500'000'001);
  play_in_place<float>(CollectiveKind::allgather, 2, 500'000'001);
}

TEST_CASE("a message of more than 2^31 bytes is right", "[api]") {
  constexpr std::size_t count = two_to_31 + 1;
  run_if_it_fits(2, count, [](khoroComm_t comm, int rank) {
    const Memory<std::int8_t> memory(count);
    std::int8_t* data = memory.elements.get();
    fill_block(data, count, rank == 0 ? 0 : nobody, 0);
    succeed(rank == 0 ? khoroSend(data, count, khoroInt8, 1, comm, nullptr)
                      : khoroRecv(data, count, khoroInt8, 0, comm, nullptr),
            "the message");
    expect_block(data, count, {0, 0}, 2);
    memory.check();
  });
}

TEST_CASE("a block that begins beyond 2^31 bytes is right, however short it is", "[api]") {
  constexpr std::size_t gap = 3;
  constexpr std::size_t counts[] = {two_to_31 + 1, 5}, places[] = {0, counts[0] + gap};
  run_if_it_fits(2, places[1] + counts[1], [&](khoroComm_t comm, int rank) {
    const Memory<std::int8_t> memory(places[1] + counts[1]);
    const auto at = [&](int from) { return &memory.elements[places[from]]; };
    fill_block(at(0), memory.size, nobody, 0);
    fill_block(at(rank), counts[rank], rank, 0);
    succeed(
        khoroAllGatherV(at(rank), counts[rank], at(0), counts, places, khoroInt8, comm, nullptr),
        "allgatherv");
    for (int from : {0, 1}) expect_block(at(from), counts[from], {from, 0}, 2);
    expect_block(at(0) + counts[0], gap, {nobody, 0}, 2);
    memory.check();
  });
}
