// SPDX-License-Identifier: Apache-2.0
#include "api/submit.h"

using khoro::CallKind;
using khoro::guard;

khoroResult_t khoroSend(const void* sendbuff, size_t count, khoroDataType_t datatype, int peer,
                        khoroComm_t comm, khoroStream_t stream) {
  return guard([&] {
    khoro::submit(comm, stream,
                  {{CallKind::send, khoro::dtype(datatype), {}, peer, count},
                   khoro::buffers(sendbuff, nullptr)});
  });
}

khoroResult_t khoroRecv(void* recvbuff, size_t count, khoroDataType_t datatype, int peer,
                        khoroComm_t comm, khoroStream_t stream) {
  return guard([&] {
    khoro::submit(comm, stream,
                  {{CallKind::recv, khoro::dtype(datatype), {}, peer, count},
                   khoro::buffers(nullptr, recvbuff)});
  });
}

khoroResult_t khoroSendTag(const void* sendbuff, size_t count, khoroDataType_t datatype, int peer,
                           uint32_t tag, khoroComm_t comm, khoroStream_t stream) {
  return guard([&] {
    khoro::submit(comm, stream,
                  {.signature = {CallKind::send, khoro::dtype(datatype), {}, peer, count},
                   .buffers = khoro::buffers(sendbuff, nullptr),
                   .tag = tag});
  });
}

khoroResult_t khoroRecvTag(void* recvbuff, size_t count, khoroDataType_t datatype, int peer,
                           uint32_t tag, khoroComm_t comm, khoroStream_t stream) {
  return guard([&] {
    khoro::submit(comm, stream,
                  {.signature = {CallKind::recv, khoro::dtype(datatype), {}, peer, count},
                   .buffers = khoro::buffers(nullptr, recvbuff),
                   .tag = tag});
  });
}
