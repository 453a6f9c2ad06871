/* SPDX-License-Identifier: Apache-2.0 */
/* The calls of jobs whose ranks do not make the same ones: as they are made, and as reports spell
 * them. */
#ifndef KHORO_TESTS_MISMATCH_CALLS_H
#define KHORO_TESTS_MISMATCH_CALLS_H

#include "check.h"

enum kind {
  allreduce,
  broadcast,
  allgather,
  reducescatter,
  reduce,
  gather,
  scatter,
  alltoall,
  allgatherv,
  reducescatterv,
  gatherv,
  scatterv,
  alltoallv,
  barrier,
  collectives,
  send,
  recv
};
enum { most_ranks = 5 };

static inline int has_blocks(enum kind kind) { return kind >= allgatherv && kind <= alltoallv; }
/* A rank knows those alone that it gives or gets. */
static inline int has_local_blocks(enum kind kind) { return kind >= gatherv && kind <= alltoallv; }
/* The same with blocks of equal length. */
static inline enum kind plain_form(enum kind kind) {
  static const enum kind plain[] = {allgather, reducescatter, gather, scatter, alltoall};
  return has_blocks(kind) ? plain[kind - allgatherv] : kind;
}

static inline int reduces(enum kind kind) {
  return kind == allreduce || plain_form(kind) == reducescatter || kind == reduce;
}
static inline int root_gives(enum kind kind) {
  return kind == broadcast || plain_form(kind) == scatter;
}
static inline int root_gets(enum kind kind) { return kind == reduce || plain_form(kind) == gather; }

struct call {
  enum kind kind;
  size_t count; /* of each block */
  khoroDataType_t type;
  khoroRedOp_t op;
  int peer; /* root, or other end */
  int comm; /* of the two that a crossed job has */
  int no_buffers;
  uint32_t tag; /* of a message; 0: it has none */
  /* Of blocks of unequal length: what the block of each rank has more than the count; of alltoallv
   * the one that goes to that rank, and the one that comes from it. */
  long more[most_ranks], gets_more[most_ranks];
  size_t gap; /* between blocks, in elements */
};

static const char* const function_names[] = {
    "khoroAllReduce",      "khoroBroadcast", "khoroAllGather",
    "khoroReduceScatter",  "khoroReduce",    "khoroGather",
    "khoroScatter",        "khoroAlltoAll",  "khoroAllGatherV",
    "khoroReduceScatterV", "khoroGatherV",   "khoroScatterV",
    "khoroAlltoAllV",      "khoroBarrier",   "",
    "khoroSend",           "khoroRecv"};

static inline const char* type_name(khoroDataType_t type) {
  switch (type) {
    case khoroInt32:
      return "khoroInt32";
    case khoroFloat64:
      return "khoroFloat64";
    default:
      return "khoroFloat32";
  }
}

static inline const char* op_name(khoroRedOp_t op) {
  return op == khoroMax ? "khoroMax" : op == khoroAvg ? "khoroAvg" : "khoroSum";
}

/* As a report spells it; of blocks that all ranks know up to the number that stands for their
 * lengths. */
static inline void spell(char text[120], const struct call* call, int ranks) {
  int at = snprintf(text, 120, "%s%s(", function_names[call->kind], call->tag ? "Tag" : "");
  size_t count = call->count;
  for (int r = 0; r < ranks && has_blocks(call->kind); ++r)
    count += (r == 0 ? 0 : call->count) + (size_t)call->more[r];
  if (has_local_blocks(call->kind))
    at += snprintf(text + at, 120 - (size_t)at, "%s", type_name(call->type));
  else if (call->kind != barrier)
    at += snprintf(text + at, 120 - (size_t)at, "%zu x %s", count, type_name(call->type));
  if (reduces(call->kind)) at += snprintf(text + at, 120 - (size_t)at, ", %s", op_name(call->op));
  if (root_gives(call->kind) || root_gets(call->kind))
    at += snprintf(text + at, 120 - (size_t)at, ", root %d", call->peer);
  if (call->kind == send) at += snprintf(text + at, 120 - (size_t)at, ", to rank %d", call->peer);
  if (call->kind == recv) at += snprintf(text + at, 120 - (size_t)at, ", from rank %d", call->peer);
  if (call->tag) at += snprintf(text + at, 120 - (size_t)at, ", tag %u", call->tag);
  const int known = has_blocks(call->kind) && !has_local_blocks(call->kind);
  snprintf(text + at, 120 - (size_t)at, known ? ", counts " : ")");
}

/* One block after the other, with a gap between. */
static inline void lay(size_t places[], const size_t counts[], int ranks, size_t gap) {
  size_t end = 0;
  for (int r = 0; r < ranks; ++r) {
    places[r] = end;
    end += counts[r] + gap;
  }
}

static inline khoroResult_t make_call_of_blocks(const struct call* call, khoroComm_t comm,
                                                const char* in, char* out) {
  size_t gives[most_ranks], gets[most_ranks], from[most_ranks], to[most_ranks];
  int rank, ranks;
  OK(khoroCommUserRank(comm, &rank));
  OK(khoroCommCount(comm, &ranks));
  for (int r = 0; r < ranks; ++r) {
    gives[r] = call->count + (size_t)call->more[r];
    gets[r] = call->count + (size_t)call->gets_more[r];
  }
  lay(from, gives, ranks, call->gap);
  lay(to, gets, ranks, call->gap);
  switch (call->kind) {
    case allgatherv:
      return khoroAllGatherV(in, gives[rank], out, gives, from, call->type, comm, NULL);
    case reducescatterv:
      return khoroReduceScatterV(in, out, gives, call->type, call->op, comm, NULL);
    case gatherv:
      return khoroGatherV(in, gives[rank], out, gives, from, call->type, call->peer, comm, NULL);
    case scatterv:
      return khoroScatterV(in, gives, from, out, gives[rank], call->type, call->peer, comm, NULL);
    default:
      return khoroAlltoAllV(in, gives, from, out, gets, to, call->type, comm, NULL);
  }
}

static inline khoroResult_t make_call(const struct call* call, khoroComm_t comm, char* in,
                                      char* out) {
  void* from = call->no_buffers ? NULL : in;
  void* to = call->no_buffers ? NULL : out;
  if (has_blocks(call->kind)) return make_call_of_blocks(call, comm, from, to);
  switch (call->kind) {
    case allreduce:
      return khoroAllReduce(from, to, call->count, call->type, call->op, comm, NULL);
    case broadcast:
      return khoroBroadcast(from, to, call->count, call->type, call->peer, comm, NULL);
    case allgather:
      return khoroAllGather(from, to, call->count, call->type, comm, NULL);
    case reducescatter:
      return khoroReduceScatter(from, to, call->count, call->type, call->op, comm, NULL);
    case reduce:
      return khoroReduce(from, to, call->count, call->type, call->op, call->peer, comm, NULL);
    case gather:
      return khoroGather(from, to, call->count, call->type, call->peer, comm, NULL);
    case scatter:
      return khoroScatter(from, to, call->count, call->type, call->peer, comm, NULL);
    case alltoall:
      return khoroAlltoAll(from, to, call->count, call->type, comm, NULL);
    case barrier:
      return khoroBarrier(comm, NULL);
    case send:
      return call->tag
                 ? khoroSendTag(from, call->count, call->type, call->peer, call->tag, comm, NULL)
                 : khoroSend(from, call->count, call->type, call->peer, comm, NULL);
    default:
      return call->tag
                 ? khoroRecvTag(to, call->count, call->type, call->peer, call->tag, comm, NULL)
                 : khoroRecv(to, call->count, call->type, call->peer, comm, NULL);
  }
}

#endif
