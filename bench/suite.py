"""What is measured, and what is to be reached: launches, and goals as ratios to the better of MPICH and Open MPI."""

from collections import namedtuple

# A launch prints "key value" lines; a figure's full name is prefix.key. The modes are commands in peers.json.
Launch = namedtuple("Launch", "prefix mode ranks program arguments seconds")

SUITE = [Launch(*row) for row in (
    # start-up and memory; the wall time of a whole job is taken from outside
    ("init", "pair", 2, "initmem", "", 60),
    ("init", "free", 8, "initmem", "", 60),
    ("init", "free", 16, "initmem", "", 90),
    ("wall", "pair", 2, "initmem", "-q", 60),
    ("wall", "free", 8, "initmem", "-q", 60),
    ("wall", "free", 16, "initmem", "-q", 90),
    # two ranks, a core each
    ("p2p", "pair", 2, "pt2pt", "", 180),
    ("p2p.tcp", "pair_tcp", 2, "pt2pt", "", 240),
    ("match", "pair", 2, "unexpected_depth", "", 120),
    ("msgrate", "pair", 2, "msgrate", "", 60),
    ("msgrate", "pair", 2, "msgrate", "-t", 90),
    ("msgrate.tcp", "pair_tcp", 2, "msgrate", "", 60),
    ("threads", "free", 2, "threads", "", 120),
    ("pack", "pair", 1, "pack", "", 120),
    ("smb", "pair", 2, "smb_overhead", "", 120),
    ("smb.tcp", "pair_tcp", 2, "smb_overhead", "", 120),
    ("rndv", "pair", 2, "rndv_overlap", "", 40),
    ("rndv.tcp", "pair_tcp", 2, "rndv_overlap", "", 40),
    # collectives
    ("coll", "pair", 2, "coll", "", 180),
    ("coll", "free", 4, "coll", "", 240),
    ("coll", "free", 8, "coll", "", 240),
    ("coll", "free", 16, "coll", "", 300),
    ("nbc", "pair", 2, "nbc_overlap", "", 120),
    ("nbc", "pair", 2, "nbc_overlap", "-a", 120),
    ("nbc", "free", 4, "nbc_overlap", "ibarrier iallreduce_8 ialltoall_8", 120),
    ("nbc", "free", 8, "nbc_overlap", "ibarrier iallreduce_8 ialltoall_8", 120),
    ("nbc.tcp", "pair_tcp", 2, "nbc_overlap", "", 120),
    ("nbc.tcp", "pair_tcp", 2, "nbc_overlap", "-a", 120),
    ("nbc.helper", "pair_helper", 2, "nbc_overlap", "-a", 120),
    ("nbc.tcp.helper", "pair_tcp_helper", 2, "nbc_overlap", "-a", 120),
    ("idle", "pair_idle", 2, "idle_helper", "", 60),
    ("coll.tcp", "free_tcp", 16, "coll", "alltoall", 120),
    # barriers over the number of ranks: as users have them, by messages of schedules, over TCP; the cost of a schedule
    # beside plain messages
) + tuple((prefix, mode, n, "coll", "barrier by_hand", 60) for prefix, mode in
          (("barrier", "free"), ("barrier.msg", "free_msg"), ("barrier.tcp", "free_tcp")) for n in (2, 3, 4, 6, 8, 12, 16)) + (
    ("coll.msg", "pair_msg", 2, "coll", "pingpong", 60),
    # making communicators while others live
    ("comm", "pair", 2, "comm_cost", "", 180),
    # one-sided
    ("rma", "pair", 2, "rma_passive", "", 180),
    ("rma.tcp", "pair_tcp", 2, "rma_passive", "", 180),
    # more ranks than cores
    ("over", "free", 4, "oversub", "", 120),
    ("over", "free", 8, "oversub", "", 120),
    ("over", "free", 16, "oversub", "", 180),
    # two ranks on cores that other programs use
    ("load", "free", 2, "load", "", 240),
    # over several hosts
    ("p2p.hosts", "hosts", 2, "pt2pt", "", 480),
    ("coll.hosts", "hosts", 16, "coll", "alltoall", 120),
    ("wall.hosts", "hosts", 32, "initmem", "-q", 120),
    ("rma", "pair", 2, "rma", "", 120),
    ("rma.tcp", "pair_tcp", 2, "rma", "", 240),
    # dynamic processes
    ("spawn", "spawn", 1, "spawn_latency", "", 60),
    ("spawn", "spawn", 1, "spawn_rate", "", 60),
    ("inter", "spawn", 1, "intercomm_latency", "", 60),
    ("inter", "free", 2, "intercomm_latency", "", 120),
)]

# words, key, "ratio" (Tern's median to the better of the other MPIs), "socket" (to the bare socket's), "value"
# (Tern's median) or "own" (of the two keys in "one / other", Tern's medians), "<=" or ">=", bound. "median" and "worst": of the ratios of all figures that the key, a regular
# expression, fits.
# With "<=" less is better, and the better of the others is the smaller one.
Goal = namedtuple("Goal", "words key kind sense bound")

GOALS = [Goal(*row) for row in (
    ("latency, 8 bytes", "p2p.lat_8_us", "ratio", "<=", 0.9),
    ("message rate, one way", "msgrate.uni_Mmsgs", "ratio", ">=", 1.2),
    ("message rate, both ways", "msgrate.bidir_Mmsgs", "ratio", ">=", 1.2),
    ("one thread with MPI_THREAD_MULTIPLE to MPI_THREAD_SINGLE", "msgrate.single_threadmultiple_Mmsgs / msgrate.bidir_Mmsgs",
     "own", ">=", 0.8),
    # The two ranks fill both cores with one thread each: with more, the core has to be handed over for each window.
    ("two threads a rank on communicators of their own to one thread", "threads.t2_own_to_one", "value", ">=", 0.85),
    ("the same, to what a bare handover for each window leaves", "threads.t2_own_to_one / threads.t2_bare_to_one", "own", ">=", 1.0),
    ("the same, 8 threads a rank", "threads.t8_own_to_one / threads.t8_bare_to_one", "own", ">=", 1.0),
    ("the slowest of 8 threads to their mean", "threads.t8_own_slowest", "value", ">=", 0.5),
    ("the same, all on one communicator", "threads.t8_shared_slowest", "value", ">=", 0.5),
    ("message rate of 8 threads on communicators of their own", "threads.t8_own_Mmsgs", "ratio", ">=", 1.0),
    ("bandwidth, 64 KB", "p2p.bw_64K_MBs", "ratio", ">=", 1.0),
    ("bandwidth, 256 KB", "p2p.bw_256K_MBs", "ratio", ">=", 1.0),
    ("bandwidth, 1 MB", "p2p.bw_1M_MBs", "ratio", ">=", 1.0),
    ("bandwidth, 4 MB", "p2p.bw_4M_MBs", "ratio", ">=", 1.0),
    ("latency over TCP, 8 bytes", "p2p.tcp.lat_8_us", "ratio", "<=", 1.0),
    ("the same, to a bare socket", "p2p.tcp.lat_8_us", "socket", "<=", 1.25),
    ("bandwidth over TCP, 4 MB", "p2p.tcp.bw_4M_MBs", "ratio", ">=", 1.0),
    ("the same, to a bare socket", "p2p.tcp.bw_4M_MBs", "socket", ">=", 0.9),
    ("receive behind 4,096 unexpected", "match.unexp_tag_n4096_ns", "ratio", "<=", 0.1),
    ("the same, ns for each entry", "match.unexp_tag_ns_per_entry", "value", "<=", 1.0),
    ("the same, any source", "match.unexp_any_n4096_ns", "ratio", "<=", 0.1),
    ("the same, in 16 other communicators", "match.unexp_comms_n4096_ns", "ratio", "<=", 1.0),
    ("the same, nothing in the way", "match.unexp_tag_n0_ns", "ratio", "<=", 1.0),
    ("round trip behind 4,096 posted", "match.posted_tag_n4096_ns", "ratio", "<=", 0.1),
    ("the same, nothing in the way", "match.posted_tag_n0_ns", "ratio", "<=", 1.0),
    ("duplicating a communicator", "comm.dup_live1_us", "ratio", "<=", 1.0),
    ("the same, 10,000 alive", "comm.dup_live10000_us", "ratio", "<=", 1.0),
    ("bytes a communicator", "comm.comm_bytes", "ratio", "<=", 0.5),
    ("allreduce of 8 bytes, 16 ranks on few cores", "over.n16_allreduce8_us", "ratio", "<=", 0.7),
    ("barrier, 16 ranks on few cores", "over.n16_barrier_us", "ratio", "<=", 0.7),
    ("processor use of waiting ranks, %", "over.n16_idle_cpu_pct", "value", "<=", 2.0),
    ("lock, put, unlock, allocated window", "rma.alloc_put_lock_us", "ratio", "<=", 0.8),
    ("lock, get, unlock, allocated window", "rma.alloc_get_lock_us", "ratio", "<=", 0.8),
    ("lock, fetch-and-op, unlock, allocated window", "rma.alloc_fop_lock_us", "ratio", "<=", 0.8),
    ("lock, compare-and-swap, unlock, allocated window", "rma.alloc_cas_lock_us", "ratio", "<=", 0.8),
    ("lock, put, unlock, created window", "rma.create_put_lock_us", "ratio", "<=", 0.5),
    ("lock, get, unlock, created window", "rma.create_get_lock_us", "ratio", "<=", 0.5),
    ("lock, fetch-and-op, unlock, created window", "rma.create_fop_lock_us", "ratio", "<=", 0.5),
    ("lock, compare-and-swap, unlock, created window", "rma.create_cas_lock_us", "ratio", "<=", 0.5),
    ("put and flush above a bare store and fence, us", "rma.alloc_put_over_bare_us", "value", "<=", 0.04),
    ("accumulate of 4 MB, created window", "rma.create_acc_4M_MBs", "ratio", ">=", 1.25),
    ("put of 4 MB, allocated window", "rma.alloc_put_4M_MBs", "ratio", ">=", 1.0),
    ("the same, to a plain copy", "rma.alloc_put_4M_MBs / rma.copy_4M_MBs", "own", ">=", 0.9),
    ("put of 4 MB, created window", "rma.create_put_4M_MBs", "ratio", ">=", 1.0),
    ("get of 4 MB, created window", "rma.create_get_4M_MBs", "ratio", ">=", 1.0),
    ("lock, put, unlock over TCP", "rma.tcp.create_put_lock_us", "ratio", "<=", 0.8),
    ("small puts over TCP", "rma.tcp.create_put_rate_Mops", "ratio", ">=", 4.0),
    ("times of 2 ranks beside 0 to 4 busy programs", r"load\.beside\d+_\w+_us", "median", "<=", 1.0),
    ("the same in the worst of 12 rounds", r"load\.worst\d+_\w+_us", "median", "<=", 1.0),
    ("bandwidth of 2 ranks beside 0 to 4 busy programs", r"load\.beside\d+_\w+_MBs", "median", ">=", 0.9),
    ("the same in the worst of 12 rounds", r"load\.worst\d+_\w+_MBs", "median", ">=", 0.9),
    ("whole job of 2 ranks", "wall.n2_wall_ms", "ratio", "<=", 0.5),
    ("whole job of 16 ranks", "wall.n16_wall_ms", "ratio", "<=", 0.5),
    ("whole job of 32 ranks on 3 hosts", "wall.hosts.n32_wall_ms", "ratio", "<=", 1.0),
    ("blocking collectives, 2 ranks", r"coll\.n2_(?!i|pingpong)\w+_us", "median", "<=", 0.9),
    ("the worst of them", r"coll\.n2_(?!i|pingpong)\w+_us", "worst", "<=", 1.1),
    ("blocking collectives, 4 ranks on few cores", r"coll\.n4_(?!i)\w+_us", "median", "<=", 0.7),
    ("the worst of them", r"coll\.n4_(?!i)\w+_us", "worst", "<=", 1.1),
    ("blocking collectives, 16 ranks on few cores", r"coll\.n16_(?!i)\w+_us", "median", "<=", 0.7),
    ("the worst of them", r"coll\.n16_(?!i)\w+_us", "worst", "<=", 1.1),
    ("barriers over TCP, 2 to 16 ranks", r"barrier\.tcp\.n\d+_barrier_us", "median", "<=", 1.1),
    ("a barrier over TCP beside the same messages by hand, 2 ranks", "barrier.tcp.n2_barrier_to_by_hand", "value", "<=", 1.15),
    ("the same, 8 ranks", "barrier.tcp.n8_barrier_to_by_hand", "value", "<=", 1.15),
    ("overlap of an ibarrier, %", "nbc.n2_ibarrier_overlap_pct", "value", ">=", 80),
    ("overlap of an iallreduce of 8 bytes, %", "nbc.n2_iallreduce_8_overlap_pct", "value", ">=", 80),
    ("overlap of an ialltoall of 8 bytes, %", "nbc.n2_ialltoall_8_overlap_pct", "value", ">=", 80),
    ("bare words of memory, for comparison, %", "nbc.n2_bare_overlap_pct", "value", ">=", 80),
    ("overlap of an ialltoall of 64 KB, %, one rank computes 4 times as long", "nbc.alone_n2_ialltoall_64K_overlap4_pct", "value",
     ">=", 80),
    ("overlap of an ibcast of 1 MB, %, one rank computes 4 times as long", "nbc.alone_n2_ibcast_1M_overlap4_pct", "value", ">=", 90),
    ("the same over TCP with the helper, computing 4 times as long, ialltoall of 64 KB",
     "nbc.tcp.helper.alone_n2_ialltoall_64K_overlap4_pct", "value", ">=", 80),
    ("the same over TCP with the helper, computing 4 times as long, ibcast of 1 MB",
     "nbc.tcp.helper.alone_n2_ibcast_1M_overlap4_pct", "value", ">=", 90),
    ("a barrier with an idle helper to one without", "idle.n2_idle_barrier_ratio", "value", "<=", 1.03),
    ("the same, bcast of 8 bytes", "idle.n2_idle_bcast_ratio", "value", "<=", 1.03),
    ("the same, allreduce of 8 bytes", "idle.n2_idle_allreduce_ratio", "value", "<=", 1.03),
    ("the same, 8 bytes there and back", "idle.n2_idle_pingpong_ratio", "value", "<=", 1.03),
    ("processor time of nonblocking collectives", r"nbc\.n2_\w+_cpu_us", "worst", "<=", 1.0),
    ("memory (PSS) of a rank, 2 ranks", "init.n2_pss_kb", "ratio", "<=", 0.8),
    ("memory (PSS) of a rank, 16 ranks", "init.n16_pss_kb", "ratio", "<=", 0.8),
    ("the same, all connected", "init.n16_pss_a2a_kb", "ratio", "<=", 0.8),
)]
