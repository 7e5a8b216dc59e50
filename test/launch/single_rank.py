# An interpreter that was started without mpiexec, loads the library, and spawns a child: single_rank.py LIBRARY PROGRAM
import ctypes, sys

mpi = ctypes.CDLL(sys.argv[1])
program = sys.argv[2].encode()


def handle(value):  # a pointer in C
    return ctypes.c_void_p(value)


def call(name, *args):
    rc = getattr(mpi, name)(*args)
    if rc:
        sys.exit("%s: code %d" % (name, rc))


# Numbers of the standard binary interface.
world, info_null, int_type = handle(0x101), handle(0x130), handle(0x209)
argv = (ctypes.c_char_p * 2)(b"echo", None)
inter = ctypes.c_void_p()
word = ctypes.c_int(-1)

call("MPI_Init", None, None)
call("MPI_Comm_spawn", program, argv, 1, info_null, 0, world, ctypes.byref(inter), None)
call("MPI_Recv", ctypes.byref(word), 1, int_type, 0, 1, inter, None)
call("MPI_Send", ctypes.byref(word), 1, int_type, 0, 2, inter)
call("MPI_Comm_disconnect", ctypes.byref(inter))
call("MPI_Finalize")
print("the child says", word.value)
