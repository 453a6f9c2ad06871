// SPDX-License-Identifier: Apache-2.0
#include "memory.h"

#include <algorithm>

namespace khoro::benchmark {
namespace {

// Elements of the buffer that holds the output: both sides, in place.
std::size_t room(const Case& test) {
  return test.form == Form::in_place ? std::max(test.sizes.send, test.sizes.recv) : test.sizes.recv;
}

std::size_t first_of_input(const Case& test) {
  return test.form == Form::in_place ? test.at.rank * test.sizes.send_stride : 0;
}

std::size_t first_of_output(const Case& test) {
  return test.form == Form::in_place ? test.at.rank * test.sizes.recv_stride : 0;
}

void add(Wrong& total, const Wrong& wrong) {
  if (wrong.count == 0) return;
  total.first = total.count ? std::min(total.first, wrong.first) : wrong.first;
  total.count += wrong.count;
}

/// Compares the first `elements` of a buffer: what no origin tells was not written to.
Wrong inspect_buffer(Buffer& buffer, const Case& test, std::size_t elements,
                     std::vector<Origin> origins) {
  const std::size_t bytes = test.draw.type.bytes;
  const std::byte* const data = buffer.data();
  std::erase_if(origins, [](const Origin& origin) { return origin.count == 0; });
  std::sort(origins.begin(), origins.end(),
            [](const Origin& a, const Origin& b) { return a.first < b.first; });
  origins.push_back({test.at.rank, 0, elements, 0});
  Wrong total;
  std::size_t known = 0;
  for (const Origin& origin : origins) {
    const std::byte* const next = data + origin.first * bytes;
    const std::byte* const written = Buffer::first_written(data + known * bytes, next);
    if (written != next) add(total, {1, static_cast<std::size_t>(written - data) / bytes});
    add(total, compare(test.draw, origin, data));
    known = origin.first + origin.count;
  }
  if (!buffer.intact(elements * bytes)) add(total, {1, elements});
  return total;
}

/// The parts of the input that an output from `first` to `last` leaves over.
std::vector<Origin> rest_of_input(const Case& test, std::size_t first, std::size_t last) {
  const std::size_t begin = first_of_input(test);
  const std::size_t end = begin + test.sizes.send;
  const std::size_t before = std::clamp(first, begin, end);
  const std::size_t after = std::clamp(last, begin, end);
  return {{test.at.rank, 0, begin, before - begin},
          {test.at.rank, after - begin, after, end - after}};
}

}  // namespace

Memory::Memory(const Extent& largest, Kind kind, const Gpu& gpu)
    : send_(largest.send, kind, gpu), recv_(std::max(largest.send, largest.recv), kind, gpu) {}

std::size_t Memory::bytes(const Extent& largest) {
  return largest.send + std::max(largest.send, largest.recv);
}

Memory::Addresses Memory::prepare(const Case& test) {
  const std::size_t bytes = test.draw.type.bytes;
  recv_.prepare(room(test) * bytes);
  if (test.form == Form::out_of_place) send_.prepare(test.sizes.send * bytes);
  Buffer& inputs = test.form == Form::in_place ? recv_ : send_;
  const std::size_t input = first_of_input(test) * bytes;
  fill(test.draw, test.at.rank, test.sizes.send, inputs.data() + input);
  recv_.give(room(test) * bytes);
  if (test.form == Form::out_of_place) send_.give(test.sizes.send * bytes);
  return {inputs.in_calls() + input, recv_.in_calls() + first_of_output(test) * bytes};
}

void Memory::fetch(const Case& test) {
  recv_.fetch(room(test) * test.draw.type.bytes);
  if (test.form == Form::out_of_place) send_.fetch(test.sizes.send * test.draw.type.bytes);
}

void Memory::flip_byte(const Case& test) {
  const std::size_t end = (first_of_output(test) + test.sizes.recv) * test.draw.type.bytes;
  if (test.sizes.recv > 0) recv_.data()[end - 1] ^= std::byte{0xff};
}

Wrong Memory::inspect(const Case& test, std::vector<Origin> outputs) {
  const std::size_t shift = first_of_output(test);
  for (Origin& output : outputs) output.first += shift;
  Wrong total;
  if (test.form == Form::out_of_place) {
    total = inspect_buffer(send_, test, test.sizes.send, rest_of_input(test, 0, 0));
  } else {
    const std::size_t written = outputs.empty() ? 0 : test.sizes.recv;
    const auto inputs = rest_of_input(test, shift, shift + written);
    outputs.insert(outputs.end(), inputs.begin(), inputs.end());
  }
  add(total, inspect_buffer(recv_, test, room(test), std::move(outputs)));
  return total;
}

}  // namespace khoro::benchmark
