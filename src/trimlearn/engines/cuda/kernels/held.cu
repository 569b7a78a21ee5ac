// Σ cᵢ dᵢ vᵢᵀ over rows of softmax with labels that lie in memory as bfloat16, each read once.
//
// A program goes over tiles of 64 rows, and each third of its threads, a team of four warps, has one task. The third team
// copies rows into shared memory, in blocks of 64 columns that take turns in a ring. The second predicts, z = V·model of
// all columns, by the tensor cores' products of shared memory, and makes residuals d of that. The first adds Vᵀd to sums
// that stay in its registers from tile to tile; a block's place is free once its columns are summed. The other factor of
// a product is split into two bfloat16 numbers, so that it keeps 17 bits. Partial sums of each program are added up
// elsewhere in a fixed order: the same bits on every run.
//
// MODE is what d is: 0 "write", 2 "read" as in trimlearn.engines.cuda.kernels.tile; with 1, "steps", it is ∇φ less the
// dual of a row that is drawn, and one launch takes all x-steps of a stretch. Programs wait for one another twice a step:
// until all sums are there, and until all of x has moved, of which each moves a part. Meanwhile rows of the next step
// are copied: they are known.
//
// Macros: P columns, K classes (16 at most), MODE, RING blocks, CH the most rows that are listed, PX columns of a sum,
// PROGRAMS; and what lies between x and V: INTERCEPT, CENTER, SCALE.

typedef unsigned int u32;
typedef unsigned long long u64;
typedef unsigned short bf16;

#define BM 64                       // rows of a tile: what a product of four warps has
#define KS ((P + 15) / 16)          // steps of 16 columns
#define NB ((P + 63) / 64)          // blocks of 64 columns
#define BLOCK (BM * 128)            // bytes of a block
#define TEAM 128                    // threads that have one task: four warps
#define COPIED (RING - NB)          // blocks on their way, at most: a tile is whole before its successor waits for room
#define CHAINS 2                    // sums that predictions are made of: a product waits for the last one of its own
#define FLUSH 24                    // tiles after which sums go to memory: tensor cores round towards zero
#define LISTED (MODE == 2)          // whether rows that count are listed here: those drawn are by drawn.cu
#define STEPS (MODE == 1)           // whether x moves
#define SPAN (TEAM / 2)             // columns of a class that a program moves at a time: two threads add up one of them
#define SPANS ((P + INTERCEPT + SPAN - 1) / SPAN)

__device__ __forceinline__ u32 shared_of(const void* p) { return (u32)__cvta_generic_to_shared(p); }

// Where a product finds a matrix in shared memory, whose parts of 8 rows lie ``stride`` bytes apart; ``swizzle``: a line of
// it has 128 bytes (1) or 64 (2), and its units of 16 bytes are exchanged as the line's number says.
__device__ __forceinline__ u64 matrix_at(u32 at, u32 stride, u64 swizzle) {
  return (u64)((at & 0x3ffff) >> 4) | 1ull << 16 | (u64)(stride >> 4) << 32 | swizzle << 62;
}

// z (64, 32) += a b for a (64, 16) as it lies there, b (16, 32).
__device__ __forceinline__ void predict(float* z, u64 a, u64 b) {
  asm volatile(
      "wgmma.mma_async.sync.aligned.m64n32k16.f32.bf16.bf16 "
      "{%0,%1,%2,%3,%4,%5,%6,%7,%8,%9,%10,%11,%12,%13,%14,%15}, %16, %17, 1, 1, 1, 0, 1;"
      : "+f"(z[0]), "+f"(z[1]), "+f"(z[2]), "+f"(z[3]), "+f"(z[4]), "+f"(z[5]), "+f"(z[6]), "+f"(z[7]), "+f"(z[8]),
        "+f"(z[9]), "+f"(z[10]), "+f"(z[11]), "+f"(z[12]), "+f"(z[13]), "+f"(z[14]), "+f"(z[15])
      : "l"(a), "l"(b));
}

// Four matrices of 8 × 8 numbers, transposed.
__device__ __forceinline__ void load_transposed(u32* r, u32 at) {
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0,%1,%2,%3}, [%4];"
               : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3]) : "r"(at));
}

// g (16, 8) += a b for a (16, 16) and b (16, 8).
__device__ __forceinline__ void add(float* g, const u32* a, u32 b0, u32 b1) {
  asm("mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};"
      : "+f"(g[0]), "+f"(g[1]), "+f"(g[2]), "+f"(g[3])
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
}

// The registers are written before what follows: else the compiler may put that off until a product is under way.
template <int N>
__device__ __forceinline__ void settle(float (&a)[N]) {
#pragma unroll
  for (int e = 0; e < N; e++) asm volatile("" : "+f"(a[e])::"memory");
}

__device__ __forceinline__ void begin_products() { asm volatile("wgmma.fence.sync.aligned;" ::: "memory"); }
__device__ __forceinline__ void end_products() { asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory"); }
__device__ __forceinline__ void wait_for_products() {
  asm volatile("wgmma.wait_group.sync.aligned 0;" ::: "memory");
}

// What was written to shared memory before is seen by products after.
__device__ __forceinline__ void show_to_products() { asm volatile("fence.proxy.async.shared::cta;" ::: "memory"); }

__device__ __forceinline__ u32 rounded(float a) {
  unsigned short h;
  asm("cvt.rn.bf16.f32 %0, %1;" : "=h"(h) : "f"(a));
  return h;
}

// 16 bytes into shared memory, zeros where ``bytes`` is 0.
__device__ __forceinline__ void copy16(u32 to, const void* from, u32 bytes) {
  asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(to), "l"(from), "r"(bytes) : "memory");
}

__device__ __forceinline__ void wait_for(u32 barrier, u32 parity) {
  asm volatile(
      "{\n.reg .pred p;\nWAIT_%=:\nmbarrier.try_wait.parity.shared::cta.b64 p, [%0], %1;\n@p bra DONE_%=;\n"
      "bra WAIT_%=;\nDONE_%=:\n}" ::"r"(barrier), "r"(parity) : "memory");
}

__device__ __forceinline__ void arrive(u32 barrier) {
  asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0];" ::"r"(barrier) : "memory");
}

// All threads of a team have come here; all threads of a program.
__device__ __forceinline__ void team_together(int team) {
  asm volatile("bar.sync %0, %1;" ::"r"(team), "n"(TEAM) : "memory");
}
__device__ __forceinline__ void all_together() { asm volatile("bar.sync 4, %0;" ::"n"(3 * TEAM) : "memory"); }

// The registers of each thread of a team: the sums take most of them.
template <int N>
__device__ __forceinline__ void give_registers() { asm volatile("setmaxnreg.dec.sync.aligned.u32 %0;" ::"n"(N)); }
template <int N>
__device__ __forceinline__ void take_registers() { asm volatile("setmaxnreg.inc.sync.aligned.u32 %0;" ::"n"(N)); }

// What a program has in shared memory.
struct Shared {
  unsigned char *ring, *folded, *high, *low;  // blocks; the model; c d of two tiles in turn: 8 bits, and the next 8
  int* list;                                  // rows that count, CH at most,
  float* listed_c;                            // and what they count
  u64 *full, *empty, *d_full, *d_empty;       // whether a block, or the residuals of a tile, are there; are not needed
  int *counts, *batch;                        // of a team's warps; how many rows are listed, and whether more will be
  float* totals;                              // 4 × 16
  double* halves;                             // 2 × SPAN: sums over one half of the programs

  __device__ __forceinline__ Shared(unsigned char* memory) {
    ring = (unsigned char*)(((u64)memory + 1023) & ~1023ull);  // eight lines are one turn of the pattern
    folded = ring + RING * BLOCK;                              // KS × 16 columns × 32 predictions
    high = folded + (MODE != 2 ? KS * 1024 : 0);
    low = high + 2 * BM * 32;
    list = (int*)(low + 2 * BM * 32);
    listed_c = (float*)(list + (LISTED ? CH : 0));
    full = (u64*)(listed_c + (LISTED ? CH : 0));
    empty = full + RING;
    d_full = empty + RING;
    d_empty = d_full + 2;
    counts = (int*)(d_empty + 2);
    batch = counts + 4;
    totals = (float*)(batch + 4);
    halves = (double*)(totals + 64);
  }
};

// A place in the ring, and how often the ring has turned.
struct Place {
  u32 at = 0, turn = 0;
  __device__ __forceinline__ void go_on() {
    if (++at == RING) {
      at = 0;
      turn++;
    }
  }
};

// What the kernel is given.
struct Given {
  const bf16* V;          // the data (n, P)
  bf16* model;            // of trimlearn.engines.cuda.kernels.fold,
  const float* base;      // and what is added to predictions
  const long long* T;     // labels
  float* table;           // residuals (n, K)
  const float* C;         // what each row counts
  float* F;               // losses
  const int* rows_of;     // of rows drawn, with what follows: see sweep.py
  int* notes;
  const float* factor;
  int* stamps;
  int* tag;
  float *parts, *sums;    // Σ c d vᵀ (programs, K, PX), Σ c d (programs, 16)
  int m, chunk;           // rows; of how many a program lists those that count, at a time
  int steps;              // of a stretch; what follows is for these
  const int* counts;      // rows of each step; its first ones in rows_of are those that count
  float *X, *before;      // of move_kernel
  const float* mean;
  const double *inverse, *l1, *l2, *gamma;
  const float *momentum, *center, *scale;
  float* bases;           // (K, SPANS, 2): parts of ``base``
  u32* arrived;           // teams that have left their sums; 32 words on, programs that have moved x
};

// Until so many have come; what they wrote before is seen after. Who looks again and again would empty the cache each
// time, if each look were to see all of it.
__device__ __forceinline__ void wait_for_all(const u32* count, u32 target) {
  u32 seen;
  do {
    asm volatile("ld.relaxed.gpu.global.u32 %0, [%1];" : "=r"(seen) : "l"(count) : "memory");
  } while ((int)(seen - target) < 0);
  asm volatile("fence.acq_rel.gpu;" ::: "memory");
}

__device__ __forceinline__ void come(u32* count) {
  asm volatile("red.release.gpu.global.add.u32 [%0], 1;" ::"l"(count) : "memory");
}

// The rows of a program: all at once, one tile of so many, or those that count, in batches of what can be listed, or an
// equal share of those of a step.
struct Batch {
  int count, tiles;
  bool more;         // whether there will be another
  const int* drawn;  // with steps

  __device__ __forceinline__ Batch(const Given& given, const Shared& shared, int step) {
    const int whole = (given.m + BM - 1) / BM, pid = blockIdx.x;
    const int mine = pid < whole ? (whole - 1 - pid) / (int)gridDim.x + 1 : 0;
    count = LISTED ? shared.batch[0] : mine * BM;
    if (STEPS) {
      const long long all = step < given.steps ? given.counts[step] : 0, first = all * pid / PROGRAMS;
      count = (int)(all * (pid + 1) / PROGRAMS - first);
      drawn = given.rows_of + (long long)step * given.m + first;
    }
    tiles = (count + BM - 1) / BM;
    more = LISTED && shared.batch[1];
  }

  // Row r of tile t; −1 where there is none.
  __device__ __forceinline__ int row_of(const Given& given, const Shared& shared, int t, int r) const {
    if (LISTED) return t * BM + r < count ? shared.list[t * BM + r] : -1;
    if (STEPS) return t * BM + r < count ? drawn[t * BM + r] : -1;
    const int i = (blockIdx.x + t * gridDim.x) * BM + r;
    return t < tiles && i < given.m ? i : -1;
  }
};

// A thread of a team: its number, that of its warp and in it; it has four classes of rows ``first`` and eight below.
struct Member {
  int me, w, lane, q, first;

  __device__ __forceinline__ Member() {
    me = threadIdx.x % TEAM;
    w = me >> 5;
    lane = me & 31;
    q = lane & 3;
    first = 16 * w + (lane >> 2);
  }
  __device__ __forceinline__ int class_of(int e) const { return (e >> 1) * 8 + 2 * q + (e & 1); }
};

// Lists the rows that count of chunk ``next`` and of those after it, in order, as long as there is room; a thread asks
// for four, and waits for all at once. Returns the chunk that is next.
__device__ __forceinline__ int list_rows(const Given& given, const Shared& shared, const Member& my, int next) {
  const int chunks = (given.m + given.chunk - 1) / given.chunk;
  int count = 0;
  for (; next < chunks && count + given.chunk <= CH; next += gridDim.x) {
    const int end = min(given.m, (next + 1) * given.chunk);
    for (int from = next * given.chunk; from < end; from += 4 * TEAM) {
      float c[4];
      int some = 0;
#pragma unroll
      for (int e = 0; e < 4; e++) {
        const int i = from + my.me * 4 + e;
        c[e] = i < end ? given.C[i] : 0.f;
        some += c[e] != 0.f;
      }
      int before = some;
      for (int o = 1; o < 32; o *= 2) {
        const int left = __shfl_up_sync(0xffffffffu, before, o);
        if (my.lane >= o) before += left;
      }
      if (my.lane == 31) shared.counts[my.w] = before;
      team_together(3);
      int to = count + before - some;
#pragma unroll
      for (int o = 0; o < 4; o++) {
        if (o < my.w) to += shared.counts[o];
        count += shared.counts[o];
      }
#pragma unroll
      for (int e = 0; e < 4; e++)
        if (c[e] != 0.f) {
          shared.list[to] = from + my.me * 4 + e;
          shared.listed_c[to++] = c[e];
        }
      team_together(3);
    }
  }
  if (my.me == 0) {
    shared.batch[0] = count;
    shared.batch[1] = next < chunks;
  }
  return next;
}

// The third team: copies blocks of rows into the ring. It runs ahead of the others, from one step into the next, as far
// as there is room.
__device__ __forceinline__ void copy_rows(const Given& given, const Shared& shared) {
  const Member my;
  give_registers<96>();
  const int unit = my.me & 7, r0 = my.me >> 3;  // of rows r0, r0 + 16, …, each a unit of every block
  const u32 to = shared_of(shared.ring) + r0 * 128 + ((unit ^ (r0 & 7)) << 4);
  Place place;
  int pending = 0, next = blockIdx.x;
  u32 told = 0;
  auto tell = [&]() {  // the oldest block on its way has arrived
    show_to_products();
    arrive(shared_of(shared.full + told));
    told = told + 1 == RING ? 0 : told + 1;
    pending--;
  };
  int ahead[4];
  auto look_ahead = [&](const Batch& batch, int t) {
#pragma unroll
    for (int i = 0; i < 4; i++) ahead[i] = batch.row_of(given, shared, t, r0 + 16 * i);
  };
  int step = 0;
  bool more;
  do {
    if (LISTED) {
      next = list_rows(given, shared, my, next);
      all_together();
    }
    const Batch batch(given, shared, step), following(given, shared, step + 1);
    more = STEPS ? ++step < given.steps : batch.more;
    if (!STEPS || step == 1) look_ahead(batch, 0);
    for (int t = 0; t < batch.tiles; t++) {
      const bf16* from[4];
      u32 there[4];
#pragma unroll
      for (int i = 0; i < 4; i++) {
        there[i] = ahead[i] >= 0 ? 16 : 0;
        from[i] = given.V + (long long)max(ahead[i], 0) * P + unit * 8;
      }
      if (t + 1 < batch.tiles) look_ahead(batch, t + 1);
      else if (STEPS) look_ahead(following, 0);
      for (int j = 0; j < NB; j++) {
        if (place.turn) wait_for(shared_of(shared.empty + place.at), (place.turn - 1) & 1);
        const bool inside = j * 64 + unit * 8 < P;
#pragma unroll
        for (int i = 0; i < 4; i++)
          copy16(to + place.at * BLOCK + i * 2048, from[i] + (inside ? j * 64 : 0), inside ? there[i] : 0);
        asm volatile("cp.async.commit_group;" ::: "memory");
        place.go_on();
        if (++pending > COPIED) {
          asm volatile("cp.async.wait_group %0;" ::"n"(COPIED) : "memory");
          tell();
        }
      }
    }
    if (STEPS && batch.tiles == 0) look_ahead(following, 0);
    if (!STEPS || following.tiles == 0) {  // nobody will push them on
      asm volatile("cp.async.wait_group 0;" ::: "memory");
      while (pending) tell();
    }
    if (LISTED) all_together();
  } while (more);
}

// The model into shared memory, and what is added to predictions.
__device__ __forceinline__ void load_model(const Given& given, const Shared& shared, const Member& my, float* b4) {
  for (int i = my.me; i < KS * 64; i += TEAM) {  // (column, unit): a line of the pattern has 4 units
    const int j = i >> 2, unit = i & 3;
    copy16(shared_of(shared.folded) + j * 64 + ((unit ^ (j >> 1 & 3)) << 4), given.model + j * 32 + unit * 8, 16);
  }
  if (STEPS) {  // eight threads add up what is added to one class
    float off = 0.f;
    const int k = my.me >> 3;
    for (int i = my.me & 7; i < 2 * SPANS && k < K; i += 8) off += __ldcg(given.bases + k * 2 * SPANS + i);
    for (int o = 4; o; o >>= 1) off += __shfl_xor_sync(0xffffffffu, off, o);
    if ((my.me & 7) == 0) shared.totals[k] = off;
  }
  asm volatile("cp.async.wait_all;" ::: "memory");
  show_to_products();
  team_together(2);
#pragma unroll
  for (int e = 0; e < 4; e++) b4[e] = STEPS ? shared.totals[my.class_of(e)] : given.base[my.class_of(e)];
}

// The second team: the residuals of each tile, times what its rows count.
__device__ __forceinline__ void predict_rows(const Given& given, const Shared& shared) {
  const Member my;
  bool more;
  const u64 block_0 = matrix_at(shared_of(shared.ring), 1024, 1);
  const u64 model_0 = matrix_at(shared_of(shared.folded), 512, 2);
  u32 tiles_so_far = 0;
  Place place;
  int step = 0, distinct = 0;
  do {
    float total[4] = {0, 0, 0, 0}, b4[4] = {0, 0, 0, 0};
    if (LISTED) all_together();
    const Batch batch(given, shared, step);
    const float share = STEPS ? given.factor[step] : 1.f;
    const int now = STEPS ? *given.tag + step : 0;
    more = STEPS ? step + 1 < given.steps : batch.more;
    float next_old[2][4], next_c[2];
    int next_label[2], next_row[2], stamp[2] = {now, now};
    auto look_ahead = [&](int t) {  // what rows have beside V, asked for before it is needed
#pragma unroll
      for (int o = 0; o < 2; o++) {
        const int r = my.first + 8 * o;
        const int row = batch.row_of(given, shared, t, r);
        next_row[o] = row;
        next_c[o] = row < 0 ? 0.f : LISTED ? shared.listed_c[t * BM + r] : given.C[row] * share;
        next_label[o] = MODE != 2 && row >= 0 ? (int)given.T[row] : -1;
#pragma unroll
        for (int e = 0; e < 4; e++)
          next_old[o][e] =
              MODE != 0 && row >= 0 && my.class_of(e) < K ? given.table[(long long)row * K + my.class_of(e)] : 0.f;
      }
    };
    auto count_rows = [&]() {  // those that nobody has seen in this step
#pragma unroll
      for (int o = 0; o < 2; o++)
        stamp[o] = STEPS && my.q == 0 && next_row[o] >= 0 ? atomicExch(given.stamps + next_row[o], now) : now;
    };
    look_ahead(0);
    if (STEPS) {
      if (my.me == 0) wait_for_all(given.arrived + 32, (step + 1) * PROGRAMS);
      team_together(2);
    }
    count_rows();
    if (MODE != 2 && (STEPS || step == 0)) load_model(given, shared, my, b4);
    for (int t = 0; t < batch.tiles; t++, tiles_so_far++) {
      float z[CHAINS][16];
      if (MODE != 2) {
#pragma unroll
        for (int i = 0; i < CHAINS; i++) {
#pragma unroll
          for (int e = 0; e < 16; e++) z[i][e] = 0.f;
          settle(z[i]);
        }
#pragma unroll
        for (int j = 0; j < NB; j++) {
          wait_for(shared_of(shared.full + place.at), place.turn & 1);
          begin_products();
#pragma unroll
          for (int s = 4 * j; s < min(4 * j + 4, KS); s++)
            predict(z[s % CHAINS], block_0 + place.at * (BLOCK >> 4) + (s & 3) * 2, model_0 + s * 64);
          end_products();
          place.go_on();
        }
        wait_for_products();
#pragma unroll
        for (int i = 0; i < CHAINS; i++) settle(z[i]);
#pragma unroll
        for (int i = 1; i < CHAINS; i++)
#pragma unroll
          for (int e = 0; e < 16; e++) z[0][e] += z[i][e];
      }
      distinct += (stamp[0] != now) + (stamp[1] != now);
      float d[2][4], loss[2];
#pragma unroll
      for (int o = 0; o < 2; o++) {
        if (MODE == 2) {
#pragma unroll
          for (int e = 0; e < 4; e++) d[o][e] = next_old[o][e];
        } else {
          float zs[4], most = __int_as_float(0xff800000);  // −∞
#pragma unroll
          for (int e = 0; e < 4; e++) {
            const int i = (e >> 1) * 4 + 2 * o + (e & 1);
            zs[e] = z[0][i] + z[0][i + 8] + b4[e];
            if (my.class_of(e) < K) most = fmaxf(most, zs[e]);
          }
          most = fmaxf(most, __shfl_xor_sync(0xffffffffu, most, 1));
          most = fmaxf(most, __shfl_xor_sync(0xffffffffu, most, 2));
          float sum = 0.f, hit = 0.f;
#pragma unroll
          for (int e = 0; e < 4; e++) {
            d[o][e] = my.class_of(e) < K ? __expf(zs[e] - most) : 0.f;
            sum += d[o][e];
            hit += my.class_of(e) == next_label[o] ? zs[e] : 0.f;
          }
          sum += __shfl_xor_sync(0xffffffffu, sum, 1);
          sum += __shfl_xor_sync(0xffffffffu, sum, 2);
          const float scale = __frcp_rn(sum);
#pragma unroll
          for (int e = 0; e < 4; e++)
            d[o][e] = d[o][e] * scale - (my.class_of(e) == next_label[o] ? 1.f : 0.f) - next_old[o][e];
          if (MODE == 0) {
            hit += __shfl_xor_sync(0xffffffffu, hit, 1);
            hit += __shfl_xor_sync(0xffffffffu, hit, 2);
            loss[o] = logf(sum) + most - hit;
          }
        }
      }
      const u32 buffer = tiles_so_far & 1;
      if (tiles_so_far > 1) wait_for(shared_of(shared.d_empty + buffer), (tiles_so_far >> 1) - 1 & 1);
#pragma unroll
      for (int o = 0; o < 2; o++) {
        u32 first8[4], next8[4];
#pragma unroll
        for (int e = 0; e < 4; e++) {
          const float v = next_c[o] != 0.f ? d[o][e] * next_c[o] : 0.f;
          total[e] += v;
          first8[e] = rounded(v);
          next8[e] = rounded(v - __uint_as_float(first8[e] << 16));
        }
#pragma unroll
        for (int h = 0; h < 2; h++) {  // 8 rows × 8 classes are 128 bytes in a row
          const int to = buffer * BM * 32 + ((my.first >> 3) + o) * 256 + h * 128 + (my.lane >> 2) * 16 + my.q * 4;
          *(u32*)(shared.high + to) = first8[2 * h] | first8[2 * h + 1] << 16;
          *(u32*)(shared.low + to) = next8[2 * h] | next8[2 * h + 1] << 16;
        }
      }
      arrive(shared_of(shared.d_full + buffer));
      if (MODE == 0)
#pragma unroll
        for (int o = 0; o < 2; o++)
          if (next_row[o] >= 0) {
#pragma unroll
            for (int e = 0; e < 4; e++)
              if (my.class_of(e) < K) given.table[(long long)next_row[o] * K + my.class_of(e)] = d[o][e];
            if (my.q == 0) given.F[next_row[o]] = loss[o];
          }
      look_ahead(t + 1);
      count_rows();
    }
    if (LISTED) all_together();
    if (!more || STEPS) {
#pragma unroll
      for (int e = 0; e < 4; e++) {
        for (int o = 4; o < 32; o *= 2) total[e] += __shfl_xor_sync(0xffffffffu, total[e], o);
        if (my.lane < 4) shared.totals[my.w * 16 + my.class_of(e)] = total[e];
      }
      team_together(2);
      const float* of = shared.totals + my.me;
      if (my.me < 16) given.sums[blockIdx.x * 16 + my.me] = of[0] + of[16] + of[32] + of[48];
    }
    if (STEPS) {
      team_together(2);
      if (my.me == 0) come(given.arrived);
    }
    step++;
  } while (more);
  if (STEPS) {
    for (int o = 16; o; o >>= 1) distinct += __shfl_xor_sync(0xffffffffu, distinct, o);
    if (my.lane == 0) atomicAdd(given.notes + 1, distinct);
  }
}

// A part of x moves, as in move_kernel, and goes into the model. Before the first step nothing is there to move it.
__device__ __forceinline__ void move(const Given& given, const Shared& shared, const Member& my, int step) {
  const int half = my.me / SPAN, first = half * PROGRAMS / 2, end = (half + 1) * PROGRAMS / 2;
  bool waited = step < 0;
  for (int item = blockIdx.x; item < K * SPANS; item += PROGRAMS) {
    const int k = item / SPANS, j = item % SPANS * SPAN + my.me % SPAN, there = k * PX + j;
    const bool column = j < P, here = j < P + INTERCEPT;
    const float center = CENTER && column ? given.center[j] : 0.f, scale = SCALE && column ? given.scale[j] : 1.f;
    float x = here ? given.X[there] : 0.f;
    if (step >= 0) {
      const float before = here ? given.before[there] : 0.f, mean = here ? given.mean[there] : 0.f;
      const double size = here ? *given.gamma * given.inverse[j] : 0.0;
      const double l1 = here ? given.l1[there] : 0.0, l2 = here ? given.l2[there] : 0.0;
      const float momentum = *given.momentum;
      if (!waited) {
        if (my.me == 0) wait_for_all(given.arrived, (step + 1) * 2 * PROGRAMS);
        team_together(1);
        waited = true;
      }
      double total = 0.0, through = 0.0;
#pragma unroll 22
      for (int part = first; part < end; part++) {
        total += column ? __ldcg(given.parts + ((long long)part * K + k) * PX + j) : 0.f;
        if (CENTER || INTERCEPT) through += __ldcg(given.sums + part * 16 + k);
      }
      if (half) {
        shared.halves[my.me - SPAN] = total;
        shared.halves[my.me] = through;
      }
      team_together(1);
      if (!half && here) {
        total += shared.halves[my.me];
        through += shared.halves[SPAN + my.me];
        const float g = mean + (float)(column ? (total - through * center) / scale : through);
        const double wide = (double)(x + momentum * (x - before)) - size * (double)g, level = size * l1;
        const double shrunk = wide > level ? wide - level : wide < -level ? wide + level : wide * 0.0;
        given.before[there] = x;
        x = (float)(shrunk / (1.0 + size * l2));
        given.X[there] = x;
        if (!(fabsf(g) < __int_as_float(0x7f800000))) given.notes[3] = 1;
      }
      team_together(1);  // the halves may be overwritten
    }
    if (!half) {
      const float folded = x / scale;
      if (column) {
        const u32 high = rounded(folded);
        given.model[j * 32 + k] = (bf16)high;
        given.model[j * 32 + 16 + k] = (bf16)rounded(folded - __uint_as_float(high << 16));
      }
      float off = column ? -folded * center : x;
      for (int o = 16; o; o >>= 1) off += __shfl_xor_sync(0xffffffffu, off, o);
      if (my.lane == 0) given.bases[item * 2 + my.w] = off;
    }
  }
  team_together(1);
  if (my.me == 0) come(given.arrived + 32);
}

// The first team: Σ c d vᵀ.
__device__ __forceinline__ void sum_rows(const Given& given, const Shared& shared) {
  const Member my;
  bool more;
  take_registers<240>();
  // Where a thread loads its part of 16 rows of a block, and of their residuals, and where its first sum goes.
  const int line = my.lane & 7, second = my.lane >> 3 & 1, third = my.lane >> 4;
  const u32 columns = shared_of(shared.ring) + (line + third * 8) * 128 + ((my.w * 2 + second) ^ line) * 16;
  const u32 residuals = shared_of(shared.high) + (second * 2 + third) * 128 + line * 16;
  float* const corner = given.parts + ((long long)blockIdx.x * K + 2 * my.q) * PX + my.first;
  u32 tiles_so_far = 0;
  bool flushed = false;
  int step = 0;
  Place place;
  if (STEPS) move(given, shared, my, -1);
  do {
    if (LISTED) all_together();
    const Batch batch(given, shared, step);
    more = STEPS ? step + 1 < given.steps : batch.more;
    if (STEPS) flushed = false;
    if (STEPS && batch.tiles == 0) {  // nobody holds it back, and others may still read the sums of the last step
      if (my.me == 0) wait_for_all(given.arrived + 32, (step + 1) * PROGRAMS);
      team_together(1);
    }
    int t = 0;
    do {
      float G[NB][8];
#pragma unroll
      for (int j = 0; j < NB; j++)
#pragma unroll
        for (int e = 0; e < 8; e++) G[j][e] = 0.f;
      for (const int end = min(batch.tiles, t + FLUSH); t < end; t++, tiles_so_far++) {
        const u32 buffer = tiles_so_far & 1;
        wait_for(shared_of(shared.d_full + buffer), tiles_so_far >> 1 & 1);
        u32 d_high[BM / 16][4], d_low[BM / 16][4];
#pragma unroll
        for (int r = 0; r < BM / 16; r++) {
          load_transposed(d_high[r], residuals + buffer * BM * 32 + r * 512);
          load_transposed(d_low[r], residuals + (2 + buffer) * BM * 32 + r * 512);
        }
        __syncwarp();
        if (my.lane == 0) arrive(shared_of(shared.d_empty + buffer));
#pragma unroll
        for (int j = 0; j < NB; j += 2) {  // of each block every warp has 16 columns; two blocks, so that no sum waits
          constexpr int BOTH = 2;
          u32 places[BOTH], v[BOTH][BM / 16][4];
#pragma unroll
          for (int i = 0; i < min(BOTH, NB - j); i++) {
            places[i] = place.at;
            if (MODE == 2) wait_for(shared_of(shared.full + place.at), place.turn & 1);
            place.go_on();
#pragma unroll
            for (int r = 0; r < BM / 16; r++) load_transposed(v[i][r], columns + places[i] * BLOCK + r * 2048);
          }
#pragma unroll
          for (int r = 0; r < BM / 16; r++)
#pragma unroll
            for (int h = 0; h < 4; h++)  // the first bits and the next, of either 8 classes
#pragma unroll
              for (int i = 0; i < min(BOTH, NB - j); i++) {
                const u32* d = h < 2 ? d_high[r] : d_low[r];
                add(G[j + i] + (h & 1) * 4, v[i][r], d[(h & 1) * 2], d[(h & 1) * 2 + 1]);
              }
          __syncwarp();
          if (my.lane < min(BOTH, NB - j)) arrive(shared_of(shared.empty + (my.lane ? places[1] : places[0])));
        }
      }
#pragma unroll
      for (int j = 0; j < NB; j++)
#pragma unroll
        for (int e = 0; e < 8; e++) {
          const int k = (e >> 2) * 8 + (e & 1), column = j * 64 + (e >> 1 & 1) * 8;
          if (k + 2 * my.q < K && column + my.first < P) {
            if (flushed)
              atomicAdd(corner + k * PX + column, G[j][e]);  // nobody else adds to it, and nobody waits for it
            else
              corner[k * PX + column] = G[j][e];
          }
        }
      flushed = true;
    } while (t < batch.tiles);
    if (LISTED) all_together();
    if (STEPS) {
      team_together(1);
      if (my.me == 0) come(given.arrived);
      move(given, shared, my, step);
    }
    step++;
  } while (more);
  if (STEPS && blockIdx.x == 0 && my.me == 0) *given.tag += given.steps;  // item 0 has waited: all have read it
}

extern "C" __global__ void __launch_bounds__(3 * TEAM, 1) held(const Given given) {
  extern __shared__ unsigned char memory[];
  const Shared shared(memory);
  auto make = [](u64* barrier, u32 arrivals) {
    asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" ::"r"(shared_of(barrier)), "r"(arrivals));
  };
  if (threadIdx.x < RING) {
    make(shared.full + threadIdx.x, TEAM);
    make(shared.empty + threadIdx.x, TEAM / 32);
  }
  if (threadIdx.x < 2) {
    make(shared.d_full + threadIdx.x, TEAM);
    make(shared.d_empty + threadIdx.x, TEAM / 32);
  }
  __syncthreads();
  const int team = threadIdx.x / TEAM;
  if (team == 2)
    copy_rows(given, shared);
  else if (team == 1)
    predict_rows(given, shared);
  else
    sum_rows(given, shared);
}
