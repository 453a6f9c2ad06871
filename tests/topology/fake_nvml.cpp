// SPDX-License-Identifier: Apache-2.0
// An NVML for machines without GPUs: three GPUs of compute capability 9.0. The first two have four
// links to each other, all have two to a switch, the first has two of three C2C links up.
#include <cstdio>
#include <cstring>

extern "C" {

struct PciInfo {
  char legacy_bus_id[16];
  unsigned domain, bus, device, device_id, subsystem_id;
  char bus_id[32];
};

struct FieldValue {
  unsigned field, scope;
  long long timestamp, latency;
  int type, result;
  union {
    unsigned number;
    double real;
  } value;
};

struct FabricInfo {
  unsigned version;
  unsigned char cluster[16];
  int status;
  unsigned clique;
  unsigned char state;
  unsigned health;
};

enum { success = 0, not_supported = 3, links = 6, links_to_peer = 4 };

static unsigned number_of(void* device) {
  return static_cast<unsigned>(reinterpret_cast<unsigned long>(device)) - 1;
}

static void fill(PciInfo* info, unsigned number) {
  std::memset(info, 0, sizeof *info);
  std::snprintf(info->bus_id, sizeof info->bus_id, "00000000:A%u:00.0", number);
}

int nvmlInit_v2() { return success; }
int nvmlShutdown() { return success; }

int nvmlDeviceGetCount_v2(unsigned* count) {
  *count = 3;
  return success;
}

int nvmlDeviceGetHandleByIndex_v2(unsigned index, void** device) {
  *device = reinterpret_cast<void*>(static_cast<unsigned long>(index) + 1);
  return success;
}

int nvmlDeviceGetPciInfo_v3(void* device, PciInfo* info) {
  fill(info, number_of(device));
  return success;
}

int nvmlDeviceGetCudaComputeCapability(void*, int* major, int* minor) {
  *major = 9;
  *minor = 0;
  return success;
}

int nvmlDeviceGetNvLinkState(void* device, unsigned link, unsigned* active) {
  if (link >= links) return not_supported;
  *active = number_of(device) < 2 || link >= links_to_peer;
  return success;
}

int nvmlDeviceGetNvLinkRemoteDeviceType(void*, unsigned link, int* type) {
  *type = link < links_to_peer ? 0 : 2;
  return success;
}

int nvmlDeviceGetNvLinkRemotePciInfo_v2(void* device, unsigned link, PciInfo* info) {
  if (link >= links_to_peer) return not_supported;
  fill(info, 1 - number_of(device));
  return success;
}

int nvmlDeviceGetFieldValues(void* device, int count, FieldValue* values) {
  for (int i = 0; i < count; ++i) {
    const bool coupled = number_of(device) == 0;
    values[i].result = success;
    if (values[i].field == 170)
      values[i].value.number = coupled ? 3 : 0;
    else if (values[i].field == 171)
      values[i].value.number = values[i].scope != 1;
    else if (values[i].field == 172)
      values[i].value.number = 44712;
    else
      values[i].result = not_supported;
  }
  return success;
}

int nvmlDeviceGetGpuFabricInfoV(void*, FabricInfo* info) {
  if (info->version != (sizeof *info | (2u << 24))) return not_supported;
  std::memset(info->cluster, 0xab, sizeof info->cluster);
  info->status = success;
  info->clique = 5;
  info->state = 3;
  return success;
}

}  // extern "C"
