// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "algorithms/algorithm.h"

namespace khoro {

int ring_chunks(const Collective& collective, const Shape& shape);
Program ring_allreduce(const Collective&, const Topology&, const Shape&, int rank);
Cost ring_allreduce_cost(const Collective&, const Shape&);

}  // namespace khoro
