// SPDX-License-Identifier: Apache-2.0
#include "api/submit.h"

using khoro::Call;
using khoro::CallKind;
using khoro::guard;

khoroResult_t khoroAllReduce(const void* sendbuff, void* recvbuff, size_t count,
                             khoroDataType_t datatype, khoroRedOp_t op, khoroComm_t comm,
                             khoroStream_t stream) {
  return guard([&] {
    khoro::submit(comm, stream, op,
                  {{CallKind::allreduce, khoro::dtype(datatype), khoro::reduction(op), 0, count},
                   khoro::buffers(sendbuff, recvbuff)});
  });
}

khoroResult_t khoroBroadcast(const void* sendbuff, void* recvbuff, size_t count,
                             khoroDataType_t datatype, int root, khoroComm_t comm,
                             khoroStream_t stream) {
  return guard([&] {
    khoro::submit(comm, stream,
                  {{CallKind::broadcast, khoro::dtype(datatype), {}, root, count},
                   khoro::buffers(sendbuff, recvbuff)});
  });
}

khoroResult_t khoroAllGather(const void* sendbuff, void* recvbuff, size_t sendcount,
                             khoroDataType_t datatype, khoroComm_t comm, khoroStream_t stream) {
  return guard([&] {
    khoro::submit(comm, stream,
                  {{CallKind::allgather, khoro::dtype(datatype), {}, 0, sendcount},
                   khoro::buffers(sendbuff, recvbuff)});
  });
}

khoroResult_t khoroReduceScatter(const void* sendbuff, void* recvbuff, size_t recvcount,
                                 khoroDataType_t datatype, khoroRedOp_t op, khoroComm_t comm,
                                 khoroStream_t stream) {
  return guard([&] {
    khoro::submit(
        comm, stream, op,
        {{CallKind::reducescatter, khoro::dtype(datatype), khoro::reduction(op), 0, recvcount},
         khoro::buffers(sendbuff, recvbuff)});
  });
}

khoroResult_t khoroReduce(const void* sendbuff, void* recvbuff, size_t count,
                          khoroDataType_t datatype, khoroRedOp_t op, int root, khoroComm_t comm,
                          khoroStream_t stream) {
  return guard([&] {
    khoro::submit(comm, stream, op,
                  {{CallKind::reduce, khoro::dtype(datatype), khoro::reduction(op), root, count},
                   khoro::buffers(sendbuff, recvbuff)});
  });
}

khoroResult_t khoroGather(const void* sendbuff, void* recvbuff, size_t sendcount,
                          khoroDataType_t datatype, int root, khoroComm_t comm,
                          khoroStream_t stream) {
  return guard([&] {
    khoro::submit(comm, stream,
                  {{CallKind::gather, khoro::dtype(datatype), {}, root, sendcount},
                   khoro::buffers(sendbuff, recvbuff)});
  });
}

khoroResult_t khoroScatter(const void* sendbuff, void* recvbuff, size_t recvcount,
                           khoroDataType_t datatype, int root, khoroComm_t comm,
                           khoroStream_t stream) {
  return guard([&] {
    khoro::submit(comm, stream,
                  {{CallKind::scatter, khoro::dtype(datatype), {}, root, recvcount},
                   khoro::buffers(sendbuff, recvbuff)});
  });
}

khoroResult_t khoroAlltoAll(const void* sendbuff, void* recvbuff, size_t count,
                            khoroDataType_t datatype, khoroComm_t comm, khoroStream_t stream) {
  return guard([&] {
    khoro::submit(comm, stream,
                  {{CallKind::alltoall, khoro::dtype(datatype), {}, 0, count},
                   khoro::buffers(sendbuff, recvbuff)});
  });
}

khoroResult_t khoroBarrier(khoroComm_t comm, khoroStream_t stream) {
  return guard([&] {
    khoro::submit(comm, stream, {{CallKind::barrier, khoro::Dtype::f32, {}, 0, 0}, {}});
  });
}
