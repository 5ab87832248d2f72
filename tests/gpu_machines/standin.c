/* A GPU that is not there: just enough of NVIDIA's driver and CUDA libraries for TensorFlow to list a GPU, put a tensor
   on it and ask cuDNN for its version. Every kernel "runs" and does nothing, so results are worthless; what TensorFlow says
   and does when something does not fit is its own. Compiled once per library name by tests/test_gpu_check.py.

   STANDIN_CUINIT=100     what cuInit returns (100: no device)       STANDIN_CUDNN=90300    cuDNN's version
   STANDIN_CAPABILITY=89  the GPU's compute capability               STANDIN_BREAK=30       from this cuCtxSetCurrent on, the driver fails
   STANDIN_CUDA=12050     the driver's CUDA version */

#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int set(const char *name, int otherwise) {
  const char *text = getenv(name);
  return text ? atoi(text) : otherwise;
}
static int fresh(void **result, size_t bytes) { return posix_memalign(result, 4096, bytes ? bytes : 1) ? 2 : 0; }

#define FINE(name) int name() { return 0; }
#define MAKES(name) int name(void **made) { return fresh(made, 64); }
#define COPIES(name) int name(void *to, void *from, size_t bytes) { memcpy(to, from, bytes); return 0; }

/* libcuda.so.1 */
int cuInit(unsigned flags) { return set("STANDIN_CUINIT", 0); }
int cuDriverGetVersion(int *version) { return *version = set("STANDIN_CUDA", 12050), 0; }
int cuDeviceGetCount(int *count) { return *count = 1, 0; }
int cuDeviceGet(int *device, int index) { return *device = index, 0; }
int cuDeviceGetName(char *name, int length, int device) { return snprintf(name, length, "Stand-in GPU"), 0; }
int cuDeviceGetPCIBusId(char *id, int length, int device) { return snprintf(id, length, "0000:00:04.0"), 0; }
int cuDeviceGetUuid(char *id, int device) { return memset(id, 1, 16), 0; }
int cuDeviceGetUuid_v2(char *id, int device) { return memset(id, 1, 16), 0; }
int cuDeviceTotalMem_v2(size_t *bytes, int device) { return *bytes = 8ull << 30, 0; }
int cuMemGetInfo_v2(size_t *unused, size_t *total) { return *unused = 2ull << 30, *total = 8ull << 30, 0; }
int cuDeviceComputeCapability(int *major, int *minor, int device) {
  return *major = set("STANDIN_CAPABILITY", 80) / 10, *minor = set("STANDIN_CAPABILITY", 80) % 10, 0;
}
int cuDeviceGetAttribute(int *value, int which, int device) {
  switch (which) {
    case 75: return *value = set("STANDIN_CAPABILITY", 80) / 10, 0;
    case 76: return *value = set("STANDIN_CAPABILITY", 80) % 10, 0;
    case 10: return *value = 32, 0;                       /* warp */
    case 16: case 4: return *value = 64, 0;               /* multiprocessors */
    case 1: case 2: case 3: return *value = 1024, 0;      /* threads per block */
    case 5: case 6: case 7: return *value = 65535, 0;     /* grid */
    case 8: case 81: case 97: return *value = 49152, 0;   /* shared memory */
    case 12: case 82: return *value = 65536, 0;           /* registers */
    case 39: return *value = 1536, 0;                     /* threads per multiprocessor */
    case 13: case 36: return *value = 1500000, 0;         /* clocks */
    case 37: return *value = 256, 0;                      /* bus width */
    case 38: return *value = 32 << 20, 0;                 /* L2 cache */
    case 32: return *value = 0, 0;                        /* ECC */
    default: return *value = 1, 0;
  }
}
int cuDevicePrimaryCtxRetain(void **context, int device) { return *context = (void *)0x1000, 0; }
int cuDevicePrimaryCtxGetState(int device, unsigned *flags, int *active) { return *flags = 0, *active = 0, 0; }
int cuCtxGetCurrent(void **context) { return *context = (void *)0x1000, 0; }
int cuCtxGetDevice(int *device) { return *device = 0, 0; }
int cuCtxGetStreamPriorityRange(int *low, int *high) { return *low = 0, *high = -1, 0; }
int cuCtxSetCurrent(void *context) {
  static int calls;
  int last = set("STANDIN_BREAK", 0);
  return last && ++calls >= last ? 999 : 0;
}
int cuGetErrorName(int error, const char **text) { return *text = error == 100 ? "CUDA_ERROR_NO_DEVICE" : "CUDA_ERROR_UNKNOWN", 0; }
int cuGetErrorString(int error, const char **text) { return *text = error == 100 ? "no CUDA-capable device is detected" : "unknown error", 0; }
int cuMemAlloc_v2(void **memory, size_t bytes) { return fresh(memory, bytes); }
int cuMemAllocHost_v2(void **memory, size_t bytes) { return fresh(memory, bytes); }
int cuMemHostAlloc(void **memory, size_t bytes, unsigned flags) { return fresh(memory, bytes); }
int cuMemsetD8Async(void *to, unsigned char value, size_t count) { return memset(to, value, count), 0; }
int cuMemsetD32Async(unsigned *to, unsigned value, size_t count) {
  while (count) to[--count] = value;
  return 0;
}
int cuLaunchHostFunc(void *stream, void (*call)(void *), void *data) { return call(data), 0; }
MAKES(cuStreamCreate) MAKES(cuStreamCreateWithPriority) MAKES(cuEventCreate) MAKES(cuModuleLoadData) MAKES(cuModuleLoadDataEx) MAKES(cuModuleGetFunction)
COPIES(cuMemcpyHtoDAsync_v2) COPIES(cuMemcpyDtoHAsync_v2) COPIES(cuMemcpyDtoDAsync_v2) COPIES(cuMemcpyHtoD_v2) COPIES(cuMemcpyDtoH_v2)
FINE(cuDevicePrimaryCtxRelease_v2) FINE(cuDevicePrimaryCtxSetFlags_v2) FINE(cuCtxSynchronize) FINE(cuDeviceCanAccessPeer)
FINE(cuEventRecord) FINE(cuEventQuery) FINE(cuEventSynchronize) FINE(cuEventDestroy_v2) FINE(cuStreamWaitEvent) FINE(cuStreamQuery)
FINE(cuStreamSynchronize) FINE(cuStreamDestroy_v2) FINE(cuMemFree_v2) FINE(cuMemFreeHost) FINE(cuMemsetD32_v2) FINE(cuModuleUnload) FINE(cuLaunchKernel)

/* libcudart */
int cudaGetDevice(int *device) { return *device = 0, 0; }
int cudaGetDeviceCount(int *count) { return *count = 1, 0; }
int cudaRuntimeGetVersion(int *version) { return *version = set("STANDIN_CUDA", 12050), 0; }
int cudaGetDeviceProperties_v2(int *properties, int device) {
  for (int i = 0; i < 250; i++) properties[i] = 32;
  return 0;
}
const char *cudaGetErrorString(int error) { return "unknown error"; }
const char *cudaGetErrorName(int error) { return "cudaErrorUnknown"; }
void **__cudaRegisterFatBinary(void *binary) { return malloc(8); }
FINE(__cudaRegisterFatBinaryEnd) FINE(__cudaUnregisterFatBinary) FINE(__cudaRegisterFunction) FINE(__cudaRegisterVar) FINE(__cudaPushCallConfiguration)
FINE(__cudaPopCallConfiguration) FINE(cudaSetDevice) FINE(cudaFree) FINE(cudaDeviceGetStreamPriorityRange) FINE(cudaLaunchKernel) FINE(cudaPeekAtLastError)
FINE(cudaGetLastError)

/* libcudnn, libcublas */
size_t cudnnGetVersion(void) { return set("STANDIN_CUDNN", 90300); }
int cudnnGetProperty(int which, int *value) {
  int version = set("STANDIN_CUDNN", 90300), step = version < 90000 ? 10 : 100; /* 8.9.4 is 8904, 9.3.0 is 90300 */
  return *value = which == 0 ? version / (step * 100) : which == 1 ? version / 100 % step : version % 100, 0;
}
MAKES(cudnnCreate) FINE(cudnnDestroy) FINE(cudnnSetStream)
MAKES(cublasCreate_v2) MAKES(cublasLtCreate) FINE(cublasDestroy_v2) FINE(cublasSetStream_v2)
int cublasGetMathMode(void *handle, int *mode) { return *mode = 0, 0; }
int cublasGetPointerMode_v2(void *handle, int *mode) { return *mode = 0, 0; }
FINE(cublasSetMathMode) FINE(cublasSetPointerMode_v2) FINE(cublasSgemm_v2)

/* libnvidia-ml.so.1 */
FINE(nvmlInit_v2) FINE(nvmlShutdown) int nvmlDeviceGetHandleByPciBusId_v2(const char *id, void **device) { return fresh(device, 64); }
