// Of the rows drawn for each step of a stretch those that count come first, in their order. Program s has step s.

#define THREADS 1024
#define EACH 4  // rows of a thread at a time

struct Given {
  int* rows_of;         // (steps, m)
  const float* C;       // what each row counts,
  const float* factor;  // times that of the step
  int* counts;          // (steps): how many count
  int* notes;           // of trimlearn.engines.cuda.steps
  unsigned* arrived;    // of held.cu: nobody has, yet
  int m;
};

extern "C" __global__ void __launch_bounds__(THREADS) drawn(const Given given) {
  __shared__ int of_warps[THREADS / 32];
  const int step = blockIdx.x, me = threadIdx.x, lane = me & 31, warp = me >> 5;
  const int m = given.m;
  int* const rows = given.rows_of + (long long)step * m;
  const bool counted = given.factor[step] != 0.f;
  int count = 0;
  if (step == 0 && me < 2) given.arrived[32 * me] = 0;
  for (int from = 0; from < m; from += EACH * THREADS) {
    int row[EACH], some = 0;
#pragma unroll
    for (int e = 0; e < EACH; e++) {
      const int i = from + me * EACH + e;
      row[e] = counted && i < m ? rows[i] : -1;
    }
#pragma unroll
    for (int e = 0; e < EACH; e++) {
      if (row[e] >= 0 && given.C[row[e]] == 0.f) row[e] = -1;
      some += row[e] >= 0;
    }
    int before = some;
    for (int o = 1; o < 32; o *= 2) {
      const int left = __shfl_up_sync(0xffffffffu, before, o);
      if (lane >= o) before += left;
    }
    if (lane == 31) of_warps[warp] = before;
    __syncthreads();  // all have read their rows, too: they may be overwritten
    int to = count + before - some;
    for (int o = 0; o < THREADS / 32; o++) {
      if (o < warp) to += of_warps[o];
      count += of_warps[o];
    }
#pragma unroll
    for (int e = 0; e < EACH; e++)
      if (row[e] >= 0) rows[to++] = row[e];
    __syncthreads();
  }
  if (me == 0) {
    given.counts[step] = count;
    atomicAdd(given.notes + 2, count);
  }
}
