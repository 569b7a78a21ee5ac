// Σ cᵢ dᵢ vᵢᵀ over rows of softmax with labels that lie in memory as bfloat16, each read once.
//
// A program goes over tiles of BM rows. Whole rows are copied into shared memory, ST tiles in turn, and stay there for
// both products: predictions V·model, of which each warp has its own KW steps of 16 columns, and the sums dᵀV, which
// stay in the warps' registers from tile to tile. The other factor of a product is split into two bfloat16 numbers, so
// that it keeps 17 bits. Partial sums of each program are added up elsewhere in a fixed order: the same bits on every
// run. One more warp does nothing but ask for rows, as soon as a tile's memory is free. MODE is what d is, as in trimlearn.engines.cuda.kernels.tile: 0 "write", 1 "subtract" (of rows drawn), 2 "read".
//
// Macros: P columns, K classes (16 at most), MODE, BM, ST, CH the most rows that are listed at a time.

typedef unsigned int u32;
typedef unsigned long long u64;
typedef unsigned short bf16;

#define KS ((P + 15) / 16)          // steps of 16 columns
#define KW ((KS + 7) / 8)           // of each warp
#define NW ((KS + KW - 1) / KW)     // warps
#define NT (NW * 32)                // threads that compute
#define ALL (NT + 32)               // and those that ask for rows
#define RB ((2 * KS + 1) * 16)      // bytes of a row: an odd number of 16, so that eight rows lie in different banks
#define ZS 20                       // numbers of a row of predictions: 16, and 4 to the same end
#define DB 48                       // bytes of a row of residuals: 32, and 16 to the same end
#define FLUSH 32                    // tiles after which sums go to memory: tensor cores round towards zero
#define LISTED (MODE != 0)          // whether only rows that count are read

__device__ __forceinline__ u32 shared_of(const void* p) { return (u32)__cvta_generic_to_shared(p); }

// Four matrices of 8 × 8 numbers, as they are and transposed.
__device__ __forceinline__ void load(u32* r, u32 at) {
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0,%1,%2,%3}, [%4];"
               : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3]) : "r"(at));
}
__device__ __forceinline__ void load_transposed(u32* r, u32 at) {
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0,%1,%2,%3}, [%4];"
               : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3]) : "r"(at));
}

// c += a b for a (16, 16) and b (16, 8).
__device__ __forceinline__ void multiply(float* c, const u32* a, u32 b0, u32 b1) {
  asm("mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};"
      : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
}

__device__ __forceinline__ u32 rounded(float a) {
  unsigned short h;
  asm("cvt.rn.bf16.f32 %0, %1;" : "=h"(h) : "f"(a));
  return h;
}

__device__ __forceinline__ void wait_for(u32 barrier, u32 parity) {
  asm volatile(
      "{\n.reg .pred p;\nWAIT_%=:\nmbarrier.try_wait.parity.shared::cta.b64 p, [%0], %1;\n@p bra DONE_%=;\n"
      "bra WAIT_%=;\nDONE_%=:\n}" ::"r"(barrier), "r"(parity) : "memory");
}

// All threads that compute have come here.
__device__ __forceinline__ void together() { asm volatile("bar.sync 1, %0;" ::"r"(NT) : "memory"); }

extern "C" __global__ void __launch_bounds__(ALL, 1) held(
    const bf16* V, const bf16* model, const float* base,         // the data (n, P); of trimlearn.engines.cuda.kernels.fold
    const long long* T, float* table, const float* C, float* F,  // labels, residuals (n, K), what rows count, losses
    const int* rows_of, int* notes, const float* factor, int* stamps, const int* tag,  // of rows drawn: see sweep.py
    float* parts, float* sums,                                   // Σ c d vᵀ (programs, K, PX), Σ c d (programs, 16)
    int m, int PX, int chunk) {
  extern __shared__ __align__(128) unsigned char memory[];
  unsigned char* tiles = memory;                                 // ST × BM × RB bytes
  float* predicted = (float*)(tiles + ST * BM * RB);             // NW × BM × ZS: each warp's share
  unsigned char* high = (unsigned char*)(predicted + NW * BM * ZS);  // BM × DB bytes: c d, the first 8 bits
  unsigned char* low = high + BM * DB;                           // and the next
  int* list = (int*)(low + BM * DB);                             // CH rows
  float* listed_c = (float*)(list + (LISTED ? CH : 0));          // CH
  u64* full = (u64*)(listed_c + (LISTED ? CH : 0));              // ST: whether a tile has arrived
  u64* empty = full + ST;                                        // ST: whether nobody needs a tile any more
  int* counts = (int*)(empty + ST);                              // NW + 1
  const int tid = threadIdx.x, lane = tid & 31, w = tid >> 5, pid = blockIdx.x, programs = gridDim.x;
  const int mine_of = tid >> 2, q = tid & 3;  // four threads have a row of a tile, each four classes of it
  const bool owner = tid < BM * 4;

  for (int i = tid; i < ST * BM; i += ALL)  // behind the last column, where no copy writes
    for (int o = P * 2; o < RB; o += 16) *(uint4*)(tiles + i * RB + o) = make_uint4(0, 0, 0, 0);
  if (tid < ST) {
    asm volatile("mbarrier.init.shared::cta.b64 [%0], 1;" ::"r"(shared_of(full + tid)));
    asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" ::"r"(shared_of(empty + tid)), "r"(NW));
  }
  asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
  asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
  __syncthreads();

  u32 model_high[KW][4], model_low[KW][4];
  float G[KW][2][4];
  float total[4] = {0, 0, 0, 0}, b4[4] = {0, 0, 0, 0};
#pragma unroll
  for (int ks = 0; ks < KW; ks++)
#pragma unroll
    for (int h = 0; h < 2; h++)
#pragma unroll
      for (int e = 0; e < 4; e++) G[ks][h][e] = 0.f;
  bool flushed = false, model_read = false;
  int since = 0, step = 0, now = 0, distinct = 0, draws = 0;
  u32 it = 0;  // tiles so far
  float share = 1.f;
  if (MODE == 1) {
    step = notes[0];
    share = factor[step];
    now = *tag;
  }

  auto flush = [&]() {
#pragma unroll
    for (int ks = 0; ks < KW; ks++)
#pragma unroll
      for (int h = 0; h < 2; h++)
#pragma unroll
        for (int e = 0; e < 4; e++) {
          const int k = (lane >> 2) + (e >> 1) * 8, j = (w * KW + ks) * 16 + h * 8 + (lane & 3) * 2 + (e & 1);
          if (k < K && j < P) {
            float* to = parts + ((long long)pid * K + k) * PX + j;
            *to = flushed ? *to + G[ks][h][e] : G[ks][h][e];
          }
          G[ks][h][e] = 0.f;
        }
    flushed = true;
    since = 0;
  };

  const int chunks = (m + chunk - 1) / chunk, whole = (m + BM - 1) / BM;
  for (int ch = pid; LISTED ? ch < chunks : ch == pid; ch += programs) {
    int count = 0;
    if (LISTED) {  // the rows of this chunk that count, in order
      const int end = min(m, (ch + 1) * chunk);
      for (int at = ch * chunk; at < end; at += ALL) {
        const int i = at + tid;
        int row = 0;
        float c = 0.f;
        if (i < end) {
          row = MODE == 1 ? rows_of[(long long)step * m + i] : i;
          c = C[row] * share;
        }
        const bool alive = c != 0.f;
        const u32 votes = __ballot_sync(0xffffffffu, alive);
        if (lane == 0) counts[w] = __popc(votes);
        __syncthreads();
        int before = count, all = 0;
#pragma unroll
        for (int o = 0; o <= NW; o++) {
          if (o < w) before += counts[o];
          all += counts[o];
        }
        if (alive) {
          const int to = before + __popc(votes & ((1u << lane) - 1));
          list[to] = row;
          listed_c[to] = c;
        }
        count += all;
        __syncthreads();
      }
    } else {
      count = pid < whole ? ((whole - 1 - pid) / programs + 1) * BM : 0;
    }
    const int ntiles = (count + BM - 1) / BM;
    auto first_of = [&](int t) { return (pid + t * programs) * BM; };
    auto valid_of = [&](int t) { return t >= ntiles ? 0 : LISTED ? min(BM, count - t * BM) : min(BM, m - first_of(t)); };
    if (it == 0) {  // below the last row of the first tiles; later, what is there are rows of V, times 0
      for (int t = 0; t < ST; t++) {
        const int valid = valid_of(t);
        for (int i = tid; i < (BM - valid) * (RB / 16); i += ALL)
          ((uint4*)(tiles + (t * BM + valid) * RB))[i] = make_uint4(0, 0, 0, 0);
      }
      asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
      __syncthreads();
    }
    if (w == NW) {
      for (int t = 0; t < ntiles; t++, it++) {
        const u32 s = it % ST, barrier = shared_of(full + s);
        const int valid = valid_of(t);
        if (it >= ST) wait_for(shared_of(empty + s), (it / ST - 1) & 1);
        if (lane == 0)
          asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(barrier), "r"(valid * P * 2)
                       : "memory");
        __syncwarp();
        for (int r = lane; r < valid; r += 32) {
          const long long row = LISTED ? list[t * BM + r] : first_of(t) + r;
          asm volatile(
              "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], %2, [%3];" ::"r"(
                  shared_of(tiles + (s * BM + r) * RB)),
              "l"(V + row * P), "r"(P * 2), "r"(barrier) : "memory");
        }
      }
      __syncthreads();
      continue;
    }
    if (!model_read && MODE != 2) {
      model_read = true;
#pragma unroll
      for (int ks = 0; ks < KW; ks++)
#pragma unroll
        for (int e = 0; e < 4; e++) {
          const int kstep = w * KW + ks;
          const bf16* at = model + (kstep * 16 + (lane & 3) * 2 + (e & 1) * 8) * 32 + (e >> 1) * 8 + (lane >> 2);
          model_high[ks][e] = kstep < KS ? (u32)at[0] | ((u32)at[32] << 16) : 0u;
          model_low[ks][e] = kstep < KS ? (u32)at[16] | ((u32)at[48] << 16) : 0u;
        }
      if (owner)
#pragma unroll
        for (int e = 0; e < 4; e++) b4[e] = base[4 * q + e];
    }
    if (MODE == 1)
      for (int i = tid; i < count; i += NT) {
        distinct += atomicExch(stamps + list[i], now) != now;
        draws += 1;
      }

    float next_old[4] = {0, 0, 0, 0}, next_c = 0.f;
    int next_label = -1;
    long long next_row = 0;
    bool next_mine = false;
    auto look_ahead = [&](int t) {  // what a row has beside V, asked for before it is needed
      next_mine = owner && mine_of < valid_of(t);
      next_c = 0.f;
      next_label = -1;
      if (next_mine) {
        next_row = LISTED ? list[t * BM + mine_of] : first_of(t) + mine_of;
        next_c = LISTED ? listed_c[t * BM + mine_of] : C[next_row];
        if (MODE != 2) next_label = (int)T[next_row];
        if (MODE != 0)
#pragma unroll
          for (int e = 0; e < 4; e++)
            if (4 * q + e < K) next_old[e] = table[next_row * K + 4 * q + e];
      }
    };
    look_ahead(0);
    for (int t = 0; t < ntiles; t++, it++) {
      const u32 s = it % ST, tile = shared_of(tiles + s * BM * RB);
      const u32 corner = tile + (lane & 15) * RB + (lane >> 4) * 16;
      const float old[4] = {next_old[0], next_old[1], next_old[2], next_old[3]}, c = next_c;
      const int label = next_label;
      const long long row = next_row;
      const bool mine = next_mine;
      wait_for(shared_of(full + s), (it / ST) & 1);
      if (MODE != 2) {
#pragma unroll
        for (int mt = 0; mt < BM / 16; mt++) {
          float z[2][4] = {{0, 0, 0, 0}, {0, 0, 0, 0}}, rest[2][4] = {{0, 0, 0, 0}, {0, 0, 0, 0}};
          u32 a[KW][4];
#pragma unroll
          for (int ks = 0; ks < KW; ks++) load(a[ks], corner + mt * 16 * RB + min(w * KW + ks, KS - 1) * 32);
#pragma unroll
          for (int ks = 0; ks < KW; ks++) {  // beyond the last column the model is 0
            multiply(z[0], a[ks], model_high[ks][0], model_high[ks][1]);
            multiply(z[1], a[ks], model_high[ks][2], model_high[ks][3]);
            multiply(rest[0], a[ks], model_low[ks][0], model_low[ks][1]);
            multiply(rest[1], a[ks], model_low[ks][2], model_low[ks][3]);
          }
          float* to = predicted + (w * BM + mt * 16 + (lane >> 2)) * ZS + (lane & 3) * 2;
#pragma unroll
          for (int h = 0; h < 2; h++) {
            *(float2*)(to + h * 8) = make_float2(z[h][0] + rest[h][0], z[h][1] + rest[h][1]);
            *(float2*)(to + 8 * ZS + h * 8) = make_float2(z[h][2] + rest[h][2], z[h][3] + rest[h][3]);
          }
        }
      }
      together();
      if (owner) {
        float d[4];
        if (MODE != 2) {
          float z[4] = {b4[0], b4[1], b4[2], b4[3]};
#pragma unroll
          for (int o = 0; o < NW; o++) {
            const float4 part = *(float4*)(predicted + (o * BM + mine_of) * ZS + 4 * q);
            z[0] += part.x;
            z[1] += part.y;
            z[2] += part.z;
            z[3] += part.w;
          }
          float most = __int_as_float(0xff800000);  // −∞
#pragma unroll
          for (int e = 0; e < 4; e++)
            if (4 * q + e < K) most = fmaxf(most, z[e]);
          most = fmaxf(most, __shfl_xor_sync(0xffffffffu, most, 1));
          most = fmaxf(most, __shfl_xor_sync(0xffffffffu, most, 2));
          float sum = 0.f, hit = 0.f;
#pragma unroll
          for (int e = 0; e < 4; e++) {
            d[e] = 4 * q + e < K ? expf(z[e] - most) : 0.f;
            sum += d[e];
            hit += 4 * q + e == label ? z[e] : 0.f;
          }
          sum += __shfl_xor_sync(0xffffffffu, sum, 1);
          sum += __shfl_xor_sync(0xffffffffu, sum, 2);
          hit += __shfl_xor_sync(0xffffffffu, hit, 1);
          hit += __shfl_xor_sync(0xffffffffu, hit, 2);
#pragma unroll
          for (int e = 0; e < 4; e++)
            d[e] = d[e] / sum - (4 * q + e == label ? 1.f : 0.f) - (MODE == 1 ? old[e] : 0.f);
          if (MODE == 0 && mine) {
#pragma unroll
            for (int e = 0; e < 4; e++)
              if (4 * q + e < K) table[row * K + 4 * q + e] = d[e];
            if (q == 0) F[row] = logf(sum) + most - hit;
          }
        } else {
#pragma unroll
          for (int e = 0; e < 4; e++) d[e] = old[e];
        }
        u32 first[4], second[4];
#pragma unroll
        for (int e = 0; e < 4; e++) {
          const float v = c != 0.f ? d[e] * c : 0.f;
          total[e] += v;
          first[e] = rounded(v);
          second[e] = rounded(v - __uint_as_float(first[e] << 16));
        }
        const int at = mine_of * DB + q * 8;
        *(uint2*)(high + at) = make_uint2(first[0] | (first[1] << 16), first[2] | (first[3] << 16));
        *(uint2*)(low + at) = make_uint2(second[0] | (second[1] << 16), second[2] | (second[3] << 16));
        look_ahead(t + 1);
      }
      together();
#pragma unroll
      for (int kt = 0; kt < BM / 16; kt++) {
        u32 ah[4], al[4], b[KW][4];
        const u32 at = (kt * 16 + (lane & 7) + (lane >> 4) * 8) * DB + ((lane >> 3) & 1) * 16;
        load_transposed(ah, shared_of(high) + at);
        load_transposed(al, shared_of(low) + at);
#pragma unroll
        for (int ks = 0; ks < KW; ks++) load_transposed(b[ks], corner + kt * 16 * RB + min(w * KW + ks, KS - 1) * 32);
#pragma unroll
        for (int ks = 0; ks < KW; ks++) {
          multiply(G[ks][0], ah, b[ks][0], b[ks][1]);
          multiply(G[ks][1], ah, b[ks][2], b[ks][3]);
        }
#pragma unroll
        for (int ks = 0; ks < KW; ks++) {
          multiply(G[ks][0], al, b[ks][0], b[ks][1]);
          multiply(G[ks][1], al, b[ks][2], b[ks][3]);
        }
      }
      __syncwarp();
      if (lane == 0) asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0];" ::"r"(shared_of(empty + s)) : "memory");
      if (++since == FLUSH) flush();
    }
    __syncthreads();
  }
  if (w == NW) return;
  flush();
  together();
  if (owner)
#pragma unroll
    for (int e = 0; e < 4; e++) predicted[mine_of * ZS + 4 * q + e] = total[e];
  together();
  if (tid < 16) {
    float sum = 0.f;
    for (int r = 0; r < BM; r++) sum += predicted[r * ZS + tid];
    sums[pid * 16 + tid] = sum;
  }
  if (MODE == 1) {
    for (int o = 16; o; o >>= 1) {
      distinct += __shfl_xor_sync(0xffffffffu, distinct, o);
      draws += __shfl_xor_sync(0xffffffffu, draws, o);
    }
    if (lane == 0 && draws) {
      atomicAdd(notes + 1, distinct);
      atomicAdd(notes + 2, draws);
    }
  }
}
