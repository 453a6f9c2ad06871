// SPDX-License-Identifier: Apache-2.0
#include "plan/grid.h"

#include <cstdint>
#include <vector>

#include "support/catch.h"

using namespace khoro;

namespace {

Grid::Request allreduce(int chunks, std::size_t count, std::size_t element_bytes,
                        std::size_t chunk_limit) {
  return {{CollectiveKind::allreduce, 4}, chunks, count, element_bytes, chunk_limit};
}

/// Each element of the buffer lies in one piece of one tile, and no piece is over the limit.
bool covers_once(const Grid::Request& request, Buffer buffer, int chunks, std::size_t elements) {
  const Grid grid(request);
  std::vector<int> seen(elements);
  for (std::size_t tile = 0; tile < grid.tiles(); ++tile)
    for (int chunk = 0; chunk < chunks; ++chunk) {
      const Grid::Piece piece = grid.piece(buffer, chunk, tile);
      if (piece.count > request.chunk_limit || piece.first + piece.count > elements) return false;
      for (std::size_t i = 0; i < piece.count; ++i) ++seen[piece.first + i];
    }
  for (int count : seen)
    if (count != 1) return false;
  return true;
}

}  // namespace

TEST_CASE("the pieces of all tiles cover a buffer, each element once", "[plan]") {
  for (std::size_t count : {1, 2, 31, 32, 33, 63, 100, 1000, 4099})
    for (std::size_t bytes : {1, 2, 4, 8, 16, 12})
      for (std::size_t limit : {1, 3, 16, 32, 100, 5000})
        for (int chunks : {1, 2, 3, 4, 7}) {
          INFO(count << " elements of " << bytes << " bytes, " << chunks << " chunks of at most "
                     << limit);
          REQUIRE(
              covers_once(allreduce(chunks, count, bytes, limit), Buffer::input, chunks, count));
          const Grid::Request gather{
              {CollectiveKind::allgather, 3}, 3 * chunks, count, bytes, limit};
          REQUIRE(covers_once(gather, Buffer::output, 3 * chunks, 3 * count));
          REQUIRE(covers_once(gather, Buffer::input, chunks, count));
        }
}

TEST_CASE("pieces of weighted chunks cover a buffer, each element once", "[plan]") {
  Weights weights;
  for (std::uint32_t weight : {1, 7, 2, 256}) weights.add(weight);
  for (std::size_t count : {1, 2, 33, 1000, 4099, 70'000})
    for (std::size_t bytes : {1, 4, 16})
      for (std::size_t limit : {1, 3, 32, 100, 5000, 100'000}) {
        INFO(count << " elements of " << bytes << " bytes in chunks of at most " << limit);
        Grid::Request reduce = allreduce(4, count, bytes, limit);
        reduce.weights = &weights;
        REQUIRE(covers_once(reduce, Buffer::input, 4, count));
        const Grid::Request gather{
            {CollectiveKind::allgather, 3}, 12, count, bytes, limit, nullptr, &weights};
        REQUIRE(covers_once(gather, Buffer::output, 12, 3 * count));
      }
}

TEST_CASE("chunks are as long as their weights, but for less than 128 bytes", "[plan]") {
  Weights weights;
  for (std::uint32_t weight : {3, 1, 4}) weights.add(weight);
  Grid::Request request = allreduce(3, 80'000, 4, 1 << 20);
  request.weights = &weights;
  const Grid grid(request);
  REQUIRE(grid.tiles() == 1);
  const double share = 80'000 / 8.0;
  for (int chunk = 0; chunk < 3; ++chunk)
    CHECK(static_cast<double>(grid.piece(Buffer::input, chunk, 0).count) ==
          Approx(share * weights.of(static_cast<std::size_t>(chunk))).margin(32));
}

TEST_CASE("cuts fall on multiples of 128 bytes of a block, as evenly as that allows", "[plan]") {
  // 10 granules of 32 floats over 4 chunks: 3, 3, 2, and 2 of which the last is cut by the count.
  const Grid grid(allreduce(4, 310, 4, 1000));
  REQUIRE(grid.tiles() == 1);
  CHECK(grid.piece(Buffer::input, 0, 0).first == 0);
  CHECK(grid.piece(Buffer::input, 1, 0).first == 96);
  CHECK(grid.piece(Buffer::input, 2, 0).first == 192);
  CHECK(grid.piece(Buffer::input, 3, 0).first == 256);
  CHECK(grid.piece(Buffer::input, 3, 0).count == 54);
}

TEST_CASE("a buffer longer than a tile becomes full tiles and a rest", "[plan]") {
  const Grid grid(allreduce(2, 1000, 4, 100));  // a chunk takes 96 floats, a tile 192
  CHECK(grid.tiles() == 6);
  CHECK(grid.piece(Buffer::input, 0, 5).first == 960);
  CHECK(grid.piece(Buffer::input, 0, 5).count == 32);
  CHECK(grid.piece(Buffer::input, 1, 5).count == 8);
}

TEST_CASE("a short buffer leaves the later chunks empty", "[plan]") {
  const Grid grid(allreduce(4, 5, 4, 100));
  CHECK(grid.piece(Buffer::input, 0, 0).count == 5);
  for (int chunk : {1, 2, 3}) CHECK(grid.piece(Buffer::input, chunk, 0).count == 0);
}

TEST_CASE("all blocks give the same part of themselves to a tile", "[plan]") {
  const Grid grid({{CollectiveKind::reducescatter, 3}, 3, 300, 4, 128});
  REQUIRE(grid.tiles() == 3);
  for (int block : {0, 1, 2}) {
    CHECK(grid.piece(Buffer::input, block, 1).first == std::size_t(block) * 300 + 128);
    CHECK(grid.piece(Buffer::input, block, 2).count == 44);
  }
  CHECK(grid.piece(Buffer::output, 0, 2).first == 256);
}

TEST_CASE("nothing to move is no tile, and a barrier is one", "[plan]") {
  CHECK(Grid(allreduce(4, 0, 4, 100)).tiles() == 0);
  const Grid barrier({{CollectiveKind::barrier, 4}, 0, 0, 1, 1});
  CHECK(barrier.tiles() == 1);
  CHECK(barrier.piece(Buffer::input, 0, 0).count == 0);
}

TEST_CASE("the greatest counts do not overflow", "[plan]") {
  const std::size_t most = SIZE_MAX / 2 / 8;
  for (std::size_t limit : {std::size_t{8192}, SIZE_MAX}) {
    const Grid grid(allreduce(65536, most, 8, limit));
    const Grid::Piece last = grid.piece(Buffer::output, 65535, grid.tiles() - 1);
    const Grid::Piece first = grid.piece(Buffer::output, 0, grid.tiles() - 1);
    CHECK(last.first + last.count == most);
    CHECK(first.first <= last.first);
  }
}

TEST_CASE("scratch chunks stand apart by the room of a chunk", "[plan]") {
  const Grid grid(allreduce(4, 1000, 4, 100));
  CHECK(grid.piece(Buffer::scratch, 3, 1).first == 300);
  CHECK(grid.piece(Buffer::scratch, 3, 1).count == 100);
}
