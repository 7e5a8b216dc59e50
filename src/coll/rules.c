/* rules.c - see rules.h; the figures that the rules follow. */
#include "coll/rules.h"

/*
 * Algorithms. Set by the `coll` benchmark with each forced in turn, 4 ranks on 2 cores over shared memory; e.g. bcast of
 * 1 MB: scatter 166 us, chain 266, binomial 555; reduce of 64 KB: halving 12, chain 28, binomial 29; allgather of 1 MB:
 * direct 619, doubling 715, ring 822, bruck 1121. Over TCP a message costs more than the bytes that come along: alltoall
 * of 16 ranks, 256 bytes: bruck 0.8 ms, direct 1.7; 4 KB: 1.4 and 2.2. tern_tune measures all this on another machine.
 * With many ranks the connections count, of which every pair needs one and Bruck's alltoall makes few: 512 ranks on 2 cores,
 * 256 bytes, the first time: bruck 0.12 s, pairwise 17; later, 100 ranks: 16 ms and 45 (bench/mpi/scale.c).
 * Ranks that share cores are done when all the work is, so few messages count. 8 and 16 ranks on 2 cores, 64 KB: bcast by binomial 119 and
 * 216 us, by scatter 1136 and 1118; reduce by binomial 135 and 260, by halving 998 and 4600; 4 ranks: reduce 54 and 29.
 * Those for `leaders` follow from the number of messages that cross the network, and those for `domain_leaders` from
 * that of messages between caches; they are not measured.
 *
 * Between two groups (inter_...): messages across are few with the leaders, but one after the other. 4 and 4 ranks on 2 busy
 * cores: allreduce of 8 B: leader 159 us, direct 274; of 1 MB: 9.7 ms, chunks 11.5; gather of 4 KB: linear 137 us,
 * leader 232. 2 and 2: allreduce of 8 B: direct 55 us, leader 99; reduce of 1 MB: chunks 1.1 ms, leader 1.7.
 */

/*
 * Ways inside a node. What has room goes through the slots: one stage, and nobody has to be inside the library. Ranks that share cores
 * try the wide slots first, those with a core each copying once; why: doc/decisions/node-collectives.md.
 *
 * copy_once: two ranks, wide slots and this, us: scatter of 16 KB 4.6 and 3.5, of 24 KB 5.8 and 3.8, gather 4.5 and 3.5, 5.1 and 3.9; of
 * 10 KB both alike. 16 ranks on 2 cores, iallgather of 64 KB: by messages, which double their data, so that they are fewer and longer,
 * 1.5 ms, so 2.5; 8 ranks 0.34 and 0.25.
 *
 * wide, two ranks: up to how many they are faster than messages, where memory to memory is not for it. Best of 8 launches
 * in turn on a busy machine of 2 cores, messages and this, us: reduce of 1 MB 133 and 69, allreduce 153 and 125, scan 222 and 79,
 * reduce_scatter_block 290 and 126. What only one of the two gets is copied half by each as a message: that takes the same time however
 * far the cores are apart, but a line that goes through a slot has to cross twice. 64 KB, messages and this: near (8 bytes cross in
 * 0.06 us) scatter 6.4 and 5.3, exscan 6.8 and 5.6; far (0.25 us) bcast 6.7 and 12.7, gather 7.7 and 11.3, scatter 7.4 and 12.7,
 * exscan 8.9 and 14.5.
 *
 * wide, alltoall: the blocks are cut into as many slices as it takes that all ranks' slices fit into the slots beside each other: if they
 * are small and many, the ranks are switched too often. 2 busy cores, processor time of the wide slots and of copying from memory to
 * memory: 4 ranks, 256 KB in 8 slices 326 and 445 us, 1 MB in 32 slices of 32 KB 1.6 and 2.6 ms; 16 ranks, 4 KB in 1 slice 220 us
 * (messages: 2.5 ms), 64 KB in 16 slices of 4 KB 4.4 ms both.
 */

/* Up to so many bytes. */
#define UPTO_32K  " below 32769 "
#define UPTO_128K " below 131073 "
#define UPTO_256K " below 262145 "
const char *const coll_rules[COLL_KINDS] = {
    [COLL_BARRIER] = "barrier : slots\n"
                     "barrier domain_leaders ranks 32+ : domain_leaders\n"
                     "barrier leaders : leaders\n"
                     "barrier : dissemination\n"
                     "barrier ranks 1-8 : inter_direct\n"
                     "barrier : inter_leader\n",
    [COLL_BCAST] = "bcast : slots\n"
                   "bcast oversubscribed : wide\n"
                   "bcast from 16K : copy_once\n"
                   "bcast ranks 2" UPTO_32K ": wide\n"
                   "bcast ranks 3+" UPTO_128K ": wide\n"
                   "bcast domain_leaders ranks 32+ below 64K : domain_leaders\n"
                   "bcast leaders below 64K : leaders\n"
                   "bcast below 16K : binomial\n"
                   "bcast ranks 1-2 : binomial\n" /* one message */
                   "bcast oversubscribed ranks 5+ : binomial\n"
                   "bcast : scatter\n"
                   "bcast below 64K : inter_leader\n"
                   "bcast : inter_scatter\n",
    [COLL_REDUCE] = "reduce : slots\n"
                    "reduce oversubscribed : wide\n"
                    "reduce ranks 3+ from 32K : copy_once\n"
                    "reduce ranks 2 : wide\n"
                    "reduce ranks 3+" UPTO_128K ": wide\n"
                    "reduce domain_leaders ranks 32+ below 64K : domain_leaders\n"
                    "reduce leaders below 64K : leaders\n"
                    "reduce below 32K : binomial\n"
                    "reduce oversubscribed ranks 5+ : binomial\n"
                    "reduce : halving\n"
                    "reduce below 64K : inter_leader\n"
                    "reduce ranks 1-4 : inter_chunks\n"
                    "reduce : inter_leader\n",
    [COLL_ALLREDUCE] = "allreduce : slots\n"
                       "allreduce oversubscribed : wide\n"
                       "allreduce ranks 3+ from 32K : copy_once\n"
                       "allreduce ranks 2 : wide\n"
                       "allreduce ranks 3+" UPTO_128K ": wide\n"
                       "allreduce domain_leaders ranks 32+ below 64K : domain_leaders\n"
                       "allreduce leaders below 64K : leaders\n"
                       "allreduce below 16K : doubling\n"
                       "allreduce : halving\n"
                       "allreduce ranks 1-4 below 8K : inter_direct\n"
                       "allreduce : inter_leader\n",
    [COLL_GATHER] = "gather : slots\n"
                    "gather oversubscribed : wide\n"
                    "gather from 16K : copy_once\n"
                    "gather ranks 2" UPTO_32K ": wide\n"
                    "gather ranks 3+" UPTO_128K ": wide\n"
                    "gather leaders below 4K : leaders\n"
                    "gather below 4K : binomial\n"
                    "gather : linear\n"
                    "gather ranks 1-16 : inter_linear\n"
                    "gather below 4K : inter_leader\n"
                    "gather : inter_linear\n",
    [COLL_GATHERV] = "gatherv : slots\n"
                     "gatherv : linear\n"
                     "gatherv : inter_linear\n",
    [COLL_SCATTER] = "scatter : slots\n"
                     "scatter oversubscribed : wide\n"
                     "scatter from 16K : copy_once\n"
                     "scatter ranks 2" UPTO_32K ": wide\n"
                     "scatter ranks 3+" UPTO_128K ": wide\n"
                     "scatter leaders below 4K : leaders\n"
                     "scatter below 4K : binomial\n"
                     "scatter : linear\n"
                     "scatter ranks 1-16 : inter_linear\n"
                     "scatter below 4K : inter_leader\n"
                     "scatter : inter_linear\n",
    [COLL_SCATTERV] = "scatterv : slots\n"
                      "scatterv : linear\n"
                      "scatterv : inter_linear\n",
    [COLL_ALLGATHER] = "allgather : slots\n"
                       "allgather oversubscribed : wide\n"
                       "allgather nonblocking oversubscribed ranks 9+ : messages\n"
                       "allgather from 16K : copy_once\n"
                       "allgather ranks 2" UPTO_256K ": wide\n"
                       "allgather ranks 3+" UPTO_128K ": wide\n"
                       "allgather leaders below 4K : leaders\n"
                       "allgather below 4K : doubling\n" /* where it fits */
                       "allgather below 4K : bruck\n"
                       "allgather ranks 1-64 : direct\n"
                       "allgather : ring\n"
                       "allgather ranks 1-8 below 16K : inter_direct\n"
                       "allgather below 4K : inter_leader\n"
                       "allgather : inter_ring\n",
    [COLL_ALLGATHERV] = "allgatherv : slots\n"
                        "allgatherv oversubscribed : wide\n"
                        "allgatherv nonblocking oversubscribed ranks 9+ : messages\n"
                        "allgatherv from 16K : copy_once\n"
                        "allgatherv ranks 1-64 : direct\n"
                        "allgatherv : ring\n"
                        "allgatherv ranks 1-16 : inter_direct\n"
                        "allgatherv : inter_ring\n",
    [COLL_ALLTOALL] = "alltoall : slots\n"
                      "alltoall oversubscribed : wide slices 8\n"
                      "alltoall from 16K : copy_once\n"
                      "alltoall ranks 2" UPTO_256K ": wide\n"
                      "alltoall ranks 3+" UPTO_128K ": wide slices 8\n"
                      "alltoall far below 8K : bruck\n"
                      "alltoall ranks 1-4 : direct\n"
                      "alltoall below 256 : bruck\n"
                      "alltoall ranks 65+ below 1K : bruck\n"
                      "alltoall ranks 257+ below 4K : bruck\n"
                      "alltoall ranks 1-64 below 32K : direct\n"
                      "alltoall : pairwise\n"
                      "alltoall ranks 1-64 below 32K : inter_direct\n"
                      "alltoall : inter_pairwise\n",
    [COLL_ALLTOALLV] = "alltoallv : slots\n"
                       "alltoallv ranks 1-64 : direct\n"
                       "alltoallv : pairwise\n"
                       "alltoallv ranks 1-64 : inter_direct\n"
                       "alltoallv : inter_pairwise\n",
    [COLL_ALLTOALLW] = "alltoallw : slots\n"
                       "alltoallw ranks 1-64 : direct\n"
                       "alltoallw : pairwise\n"
                       "alltoallw ranks 1-64 : inter_direct\n"
                       "alltoallw : inter_pairwise\n",
    [COLL_REDUCE_SCATTER] = "reduce_scatter : slots\n"
                            "reduce_scatter oversubscribed : wide\n"
                            "reduce_scatter ranks 2 : wide\n"
                            "reduce_scatter ranks 3+" UPTO_128K ": wide\n"
                            "reduce_scatter ranks 1-64 : direct\n"
                            "reduce_scatter : tree\n"
                            "reduce_scatter : inter_leader\n",
    [COLL_REDUCE_SCATTER_BLOCK] = "reduce_scatter_block : slots\n"
                                  "reduce_scatter_block oversubscribed : wide\n"
                                  "reduce_scatter_block ranks 3+ from 16K : copy_once\n"
                                  "reduce_scatter_block ranks 2 : wide\n"
                                  "reduce_scatter_block ranks 3+" UPTO_128K ": wide\n"
                                  "reduce_scatter_block ranks 1-8 : direct\n"
                                  "reduce_scatter_block below 256 : tree\n"
                                  "reduce_scatter_block : direct\n"
                                  "reduce_scatter_block ranks 1-16 : inter_direct\n"
                                  "reduce_scatter_block below 16K : inter_leader\n"
                                  "reduce_scatter_block : inter_direct\n",
    [COLL_SCAN] = "scan : slots\n"
                  "scan oversubscribed : wide\n"
                  "scan ranks 2 : wide\n"
                  "scan ranks 3+" UPTO_128K ": wide\n"
                  "scan below 64K : doubling\n"
                  "scan : chain\n",
    [COLL_EXSCAN] = "exscan : slots\n"
                    "exscan oversubscribed : wide\n"
                    "exscan ranks 2" UPTO_32K ": wide\n"
                    "exscan ranks 3+" UPTO_128K ": wide\n"
                    "exscan below 64K : doubling\n"
                    "exscan : chain\n",
    [COLL_NEIGHBOR_ALLGATHER] = "neighbor_allgather : direct\n",
    [COLL_NEIGHBOR_ALLGATHERV] = "neighbor_allgatherv : direct\n",
    [COLL_NEIGHBOR_ALLTOALL] = "neighbor_alltoall : direct\n",
    [COLL_NEIGHBOR_ALLTOALLV] = "neighbor_alltoallv : direct\n",
    [COLL_NEIGHBOR_ALLTOALLW] = "neighbor_alltoallw : direct\n",
};
