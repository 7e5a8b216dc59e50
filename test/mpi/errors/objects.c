/*
 * objects.c - wrong arguments of the calls about communicators, groups, datatypes, operators, attributes, error handlers
 * and the environment.
 */
#include "wrong.h"

/* With the address sanitizer, memory that is not to be had shall be an error of the call here too. */
__attribute__((visibility("default"))) const char *__asan_default_options(void);
const char *__asan_default_options(void) { return "allocator_may_return_null=1"; }

static int x[4], n, flag;
static MPI_Aint a, b;
static MPI_Count c, d;
static char text[MPI_MAX_LIBRARY_VERSION_STRING];

static void communicators(void)
{
    MPI_Comm made;
    MPI_Group g;
    WRONG_COMMS(MPI_Comm_size(comm, &n));
    WRONG_COMMS(MPI_Comm_rank(comm, &n));
    WRONG_COMMS(MPI_Comm_test_inter(comm, &flag));
    WRONG_COMMS(MPI_Comm_remote_size(comm, &n));
    WRONG_COMMS(MPI_Comm_remote_group(comm, &g));
    WRONG_COMMS(MPI_Comm_group(comm, &g));
    WRONG_COMMS(MPI_Comm_compare(MPI_COMM_WORLD, comm, &n));
    WRONG_COMMS(MPI_Comm_compare(comm, MPI_COMM_WORLD, &n));
    WRONG_COMMS(MPI_Comm_set_name(comm, "x"));
    CHECK_CLASS(MPI_Comm_get_name(freed_comm, text, &n), MPI_ERR_COMM); /* MPI_COMM_NULL has a name */
    WRONG_COMMS(MPI_Comm_dup(comm, &made));
    WRONG_COMMS(MPI_Comm_split(comm, 0, 0, &made));
    WRONG_COMMS(MPI_Comm_split_type(comm, MPI_COMM_TYPE_SHARED, 0, MPI_INFO_NULL, &made));
    WRONG_COMMS(MPI_Comm_create(comm, MPI_GROUP_EMPTY, &made));
    WRONG_COMMS(MPI_Comm_create_group(comm, MPI_GROUP_EMPTY, 0, &made));
    WRONG_COMMS(MPI_Comm_free(&comm));
    CHECK_CLASS(MPI_Comm_size(MPI_COMM_WORLD, NULL), MPI_ERR_ARG);
    CHECK_CLASS(MPI_Comm_rank(MPI_COMM_WORLD, NULL), MPI_ERR_ARG);
    CHECK_CLASS(MPI_Comm_remote_size(MPI_COMM_WORLD, &n), MPI_ERR_COMM);
    CHECK_CLASS(MPI_Comm_remote_group(MPI_COMM_WORLD, &g), MPI_ERR_COMM);
    CHECK_CLASS(MPI_Comm_dup(MPI_COMM_WORLD, NULL), MPI_ERR_ARG);
    CHECK_CLASS(MPI_Comm_split(MPI_COMM_WORLD, -3, 0, &made), MPI_ERR_ARG);
    CHECK_CLASS(MPI_Comm_split(MPI_COMM_WORLD, 0, 0, NULL), MPI_ERR_ARG);
    CHECK_CLASS(MPI_Comm_split_type(MPI_COMM_WORLD, -3, 0, MPI_INFO_NULL, &made), MPI_ERR_ARG);
    CHECK_CLASS(MPI_Comm_create(MPI_COMM_WORLD, MPI_GROUP_NULL, &made), MPI_ERR_GROUP);
    CHECK_CLASS(MPI_Comm_create(MPI_COMM_WORLD, freed_group, &made), MPI_ERR_GROUP);
    CHECK_CLASS(MPI_Comm_create_group(MPI_COMM_WORLD, STRAY(MPI_Group), 0, &made), MPI_ERR_GROUP);
    CHECK_CLASS(MPI_Comm_create_group(MPI_COMM_WORLD, MPI_GROUP_EMPTY, -1, &made), MPI_ERR_TAG);
    if (check_size > 1) { /* a group that is not a part of the communicator's */
        MPI_Comm_group(MPI_COMM_WORLD, &g);
        CHECK_CLASS(MPI_Comm_create(MPI_COMM_SELF, g, &made), MPI_ERR_GROUP);
        MPI_Group_free(&g);
    }
    made = MPI_COMM_WORLD;
    CHECK_CLASS(MPI_Comm_free(&made), MPI_ERR_COMM);
    made = MPI_COMM_SELF;
    CHECK_CLASS(MPI_Comm_free(&made), MPI_ERR_COMM);
    CHECK_CLASS(MPI_Comm_free(NULL), MPI_ERR_ARG);
}

#define WRONG_GROUPS(call)                                                                                             \
    for (int w_ = 0; w_ < 4; w_++) {                                                                                   \
        MPI_Group group = w_ == 0 ? MPI_GROUP_NULL : w_ == 1 ? freed_group : w_ == 2 ? STRAY(MPI_Group) : (MPI_Group)MPI_INT; \
        CHECK_CLASS(call, MPI_ERR_GROUP);                                                                              \
    }

static void groups(void)
{
    MPI_Group world, g;
    int ranks[2] = {0, 0}, out[2] = {0, check_size}, none[1][3] = {{0, 0, 0}}, far[1][3] = {{0, check_size, 1}}, away[1][3] = {{0, 0, 1}},
        twice[2][3] = {{0, 0, 1}, {0, 0, 1}};
    MPI_Comm_group(MPI_COMM_WORLD, &world);
    wrong_renew();
    WRONG_GROUPS(MPI_Group_size(group, &n));
    WRONG_GROUPS(MPI_Group_rank(group, &n));
    WRONG_GROUPS(MPI_Group_compare(group, world, &n));
    WRONG_GROUPS(MPI_Group_compare(world, group, &n));
    WRONG_GROUPS(MPI_Group_union(group, world, &g));
    WRONG_GROUPS(MPI_Group_intersection(world, group, &g));
    WRONG_GROUPS(MPI_Group_difference(group, world, &g));
    WRONG_GROUPS(MPI_Group_translate_ranks(world, 1, ranks, group, x));
    WRONG_GROUPS(MPI_Group_incl(group, 1, ranks, &g));
    WRONG_GROUPS(MPI_Group_excl(group, 1, ranks, &g));
    WRONG_GROUPS(MPI_Group_range_incl(group, 1, away, &g));
    WRONG_GROUPS(MPI_Group_range_excl(group, 1, away, &g));
    WRONG_GROUPS(MPI_Group_free(&group));
    CHECK_CLASS(MPI_Group_size(world, NULL), MPI_ERR_ARG);
    CHECK_CLASS(MPI_Group_incl(world, -1, ranks, &g), MPI_ERR_ARG);
    CHECK_CLASS(MPI_Group_incl(world, 1, NULL, &g), MPI_ERR_ARG);
    CHECK_CLASS(MPI_Group_incl(world, 2, ranks, &g), MPI_ERR_RANK); /* twice */
    CHECK_CLASS(MPI_Group_incl(world, 2, out, &g), MPI_ERR_RANK);
    CHECK_CLASS(MPI_Group_excl(world, 2, ranks, &g), MPI_ERR_RANK);
    CHECK_CLASS(MPI_Group_excl(world, 2, out, &g), MPI_ERR_RANK);
    CHECK_CLASS(MPI_Group_translate_ranks(world, 2, out, world, x), MPI_ERR_RANK);
    CHECK_CLASS(MPI_Group_translate_ranks(world, -1, out, world, x), MPI_ERR_ARG);
    CHECK_CLASS(MPI_Group_range_incl(world, 1, none, &g), MPI_ERR_ARG);
    CHECK_CLASS(MPI_Group_range_excl(world, 1, none, &g), MPI_ERR_ARG);
    CHECK_CLASS(MPI_Group_range_incl(world, 1, far, &g), MPI_ERR_RANK);
    CHECK_CLASS(MPI_Group_range_excl(world, 2, twice, &g), MPI_ERR_RANK);
    CHECK_CLASS(MPI_Group_range_incl(world, -1, far, &g), MPI_ERR_ARG);
    CHECK_CLASS(MPI_Group_range_incl(world, 1, NULL, &g), MPI_ERR_ARG);
    if (check_size > 1) {
        int backwards[1][3] = {{0, 1, -1}};
        CHECK_CLASS(MPI_Group_range_incl(world, 1, backwards, &g), MPI_ERR_ARG);
    }
    MPI_Group_free(&world);
}

/* Constructors take types that are not committed. */
#define WRONG_OLD(call)                                                                                                \
    for (int w_ = 0; w_ < 4; w_++) {                                                                                   \
        MPI_Datatype old = w_ == 0 ? MPI_DATATYPE_NULL : w_ == 1 ? freed_type : w_ == 2 ? STRAY(MPI_Datatype) : (MPI_Datatype)MPI_SUM; \
        CHECK_CLASS(call, MPI_ERR_TYPE);                                                                               \
    }

static void constructors(void)
{
    MPI_Datatype t;
    int len[1] = {1}, at[1] = {0}, minus[1] = {-1}, zero[1] = {0}, two[1] = {2};
    MPI_Aint bytes[1] = {0};
    MPI_Count clen[1] = {1}, cat[1] = {0}, cminus[1] = {-1};
    WRONG_OLD(MPI_Type_contiguous(1, old, &t));
    WRONG_OLD(MPI_Type_contiguous_c(1, old, &t));
    WRONG_OLD(MPI_Type_vector(1, 1, 1, old, &t));
    WRONG_OLD(MPI_Type_vector_c(1, 1, 1, old, &t));
    WRONG_OLD(MPI_Type_create_hvector(1, 1, 1, old, &t));
    WRONG_OLD(MPI_Type_create_hvector_c(1, 1, 1, old, &t));
    WRONG_OLD(MPI_Type_indexed(1, len, at, old, &t));
    WRONG_OLD(MPI_Type_indexed_c(1, clen, cat, old, &t));
    WRONG_OLD(MPI_Type_create_hindexed(1, len, bytes, old, &t));
    WRONG_OLD(MPI_Type_create_hindexed_c(1, clen, cat, old, &t));
    WRONG_OLD(MPI_Type_create_indexed_block(1, 1, at, old, &t));
    WRONG_OLD(MPI_Type_create_indexed_block_c(1, 1, cat, old, &t));
    WRONG_OLD(MPI_Type_create_hindexed_block(1, 1, bytes, old, &t));
    WRONG_OLD(MPI_Type_create_hindexed_block_c(1, 1, cat, old, &t));
    WRONG_OLD(MPI_Type_create_struct(1, len, bytes, &old, &t));
    WRONG_OLD(MPI_Type_create_struct_c(1, clen, cat, &old, &t));
    WRONG_OLD(MPI_Type_create_resized(old, 0, 1, &t));
    WRONG_OLD(MPI_Type_create_resized_c(old, 0, 1, &t));
    WRONG_OLD(MPI_Type_create_subarray(1, len, len, zero, MPI_ORDER_C, old, &t));
    WRONG_OLD(MPI_Type_create_subarray_c(1, clen, clen, cat, MPI_ORDER_C, old, &t));
    WRONG_OLD(MPI_Type_dup(old, &t));
    CHECK_CLASS(MPI_Type_contiguous(-1, MPI_INT, &t), MPI_ERR_COUNT);
    CHECK_CLASS(MPI_Type_contiguous(1, MPI_INT, NULL), MPI_ERR_ARG);
    CHECK_CLASS(MPI_Type_vector(-1, 1, 1, MPI_INT, &t), MPI_ERR_COUNT);
    CHECK_CLASS(MPI_Type_create_hvector(-1, 1, 1, MPI_INT, &t), MPI_ERR_COUNT);
    CHECK_CLASS(MPI_Type_indexed(-1, len, at, MPI_INT, &t), MPI_ERR_COUNT);
    CHECK_CLASS(MPI_Type_indexed(1, NULL, at, MPI_INT, &t), MPI_ERR_ARG);
    CHECK_CLASS(MPI_Type_create_hindexed_c(1, clen, NULL, MPI_INT, &t), MPI_ERR_ARG);
    CHECK_CLASS(MPI_Type_create_indexed_block(-1, 1, at, MPI_INT, &t), MPI_ERR_COUNT);
    CHECK_CLASS(MPI_Type_create_indexed_block(1, 1, NULL, MPI_INT, &t), MPI_ERR_ARG);
    CHECK_CLASS(MPI_Type_create_struct(-1, len, bytes, (MPI_Datatype[]){MPI_INT}, &t), MPI_ERR_COUNT);
    CHECK_CLASS(MPI_Type_create_struct(1, len, bytes, NULL, &t), MPI_ERR_ARG);
    CHECK_CLASS(MPI_Type_create_subarray(1, len, two, zero, MPI_ORDER_C, MPI_INT, &t), MPI_ERR_ARG);
    CHECK_CLASS(MPI_Type_create_subarray(1, two, len, two, MPI_ORDER_C, MPI_INT, &t), MPI_ERR_ARG);
    CHECK_CLASS(MPI_Type_create_subarray(1, two, len, minus, MPI_ORDER_C, MPI_INT, &t), MPI_ERR_ARG);
    CHECK_CLASS(MPI_Type_create_subarray(1, two, len, zero, 12345, MPI_INT, &t), MPI_ERR_ARG);
    CHECK_CLASS(MPI_Type_create_subarray(0, two, len, zero, MPI_ORDER_C, MPI_INT, &t), MPI_ERR_ARG);
    int dist[1] = {MPI_DISTRIBUTE_BLOCK}, wrong_dist[1] = {4711}, dflt[1] = {MPI_DISTRIBUTE_DFLT_DARG};
    CHECK_CLASS(MPI_Type_create_darray(1, 1, 1, two, dist, dflt, len, MPI_ORDER_C, MPI_INT, &t), MPI_ERR_ARG);
    CHECK_CLASS(MPI_Type_create_darray(1, 0, 1, two, wrong_dist, dflt, len, MPI_ORDER_C, MPI_INT, &t), MPI_ERR_ARG);
    CHECK_CLASS(MPI_Type_create_darray_c(1, 0, 1, NULL, dist, dflt, len, MPI_ORDER_C, MPI_INT, &t), MPI_ERR_ARG);
    (void)cminus;
}

static void datatypes(void)
{
    MPI_Datatype t = MPI_INT, got[1];
    MPI_Status st = {.MPI_SOURCE = 0};
    int ints[1];
    CHECK_CLASS(MPI_Type_free(&t), MPI_ERR_TYPE); /* predefined */
    CHECK_CLASS(MPI_Type_free(NULL), MPI_ERR_ARG);
    WRONG_OLD(MPI_Type_free(&old));
    WRONG_OLD(MPI_Type_commit(&old));
    WRONG_OLD(MPI_Type_size(old, &n));
    WRONG_OLD(MPI_Type_size_x(old, &c));
    WRONG_OLD(MPI_Type_size_c(old, &c));
    WRONG_OLD(MPI_Type_get_extent(old, &a, &b));
    WRONG_OLD(MPI_Type_get_extent_x(old, &c, &d));
    WRONG_OLD(MPI_Type_get_extent_c(old, &c, &d));
    WRONG_OLD(MPI_Type_get_true_extent(old, &a, &b));
    WRONG_OLD(MPI_Type_get_true_extent_x(old, &c, &d));
    WRONG_OLD(MPI_Type_get_true_extent_c(old, &c, &d));
    WRONG_OLD(MPI_Type_get_envelope(old, &n, &n, &n, &n));
    WRONG_OLD(MPI_Type_get_envelope_c(old, &c, &c, &c, &c, &n));
    WRONG_OLD(MPI_Type_get_contents(old, 1, 0, 1, ints, NULL, got));
    WRONG_OLD(MPI_Type_get_contents_c(old, 1, 0, 0, 1, ints, NULL, NULL, got));
    WRONG_OLD(MPI_Type_set_name(old, "x"));
    WRONG_OLD(MPI_Get_count(&st, old, &n));
    WRONG_OLD(MPI_Get_count_c(&st, old, &c));
    WRONG_OLD(MPI_Get_elements(&st, old, &n));
    WRONG_OLD(MPI_Get_elements_x(&st, old, &c));
    WRONG_OLD(MPI_Get_elements_c(&st, old, &c));
    WRONG_OLD(MPI_Status_set_elements(&st, old, 1));
    WRONG_OLD(MPI_Status_set_elements_x(&st, old, 1));
    WRONG_OLD(MPI_Status_set_elements_c(&st, old, 1));
    CHECK_CLASS(MPI_Status_set_elements(&st, MPI_INT, -1), MPI_ERR_COUNT);
    CHECK_CLASS(MPI_Get_count(NULL, MPI_INT, &n), MPI_ERR_ARG);
    CHECK_CLASS(MPI_Get_elements(&st, MPI_INT, NULL), MPI_ERR_ARG);
    CHECK_CLASS(MPI_Type_get_contents(MPI_INT, 1, 1, 1, ints, &a, got), MPI_ERR_TYPE);
    CHECK_CLASS(MPI_Type_get_contents(raw_type, 1, 1, 1, ints, &a, got), MPI_ERR_ARG); /* it has three integers */
    CHECK_CLASS(MPI_Type_size(MPI_INT, NULL), MPI_ERR_ARG);
    CHECK_CLASS(MPI_Type_get_extent(MPI_INT, &a, NULL), MPI_ERR_ARG);
    CHECK_CLASS(MPI_Type_get_name(freed_type, text, &n), MPI_ERR_TYPE);
    CHECK_CLASS(MPI_Type_set_name(MPI_INT, NULL), MPI_ERR_ARG);
    CHECK_CLASS(MPI_Type_match_size(4711, 4, &t), MPI_ERR_ARG);
    CHECK_CLASS(MPI_Type_match_size(MPI_TYPECLASS_INTEGER, 3, &t), MPI_ERR_ARG);
    CHECK_CLASS(MPI_Type_get_value_index(freed_type, MPI_INT, &t), MPI_ERR_TYPE);
    CHECK_CLASS(MPI_Get_address(x, NULL), MPI_ERR_ARG);
    CHECK_CLASS(MPI_Status_get_source(NULL, &n), MPI_ERR_ARG);
    CHECK_CLASS(MPI_Status_get_tag(&st, NULL), MPI_ERR_ARG);
    CHECK_CLASS(MPI_Status_get_error(NULL, &n), MPI_ERR_ARG);
    CHECK_CLASS(MPI_Status_set_source(NULL, 1), MPI_ERR_ARG);
    CHECK_CLASS(MPI_Status_set_tag(NULL, 1), MPI_ERR_ARG);
    CHECK_CLASS(MPI_Status_set_error(NULL, 1), MPI_ERR_ARG);
    CHECK_CLASS(MPI_Status_set_cancelled(NULL, 1), MPI_ERR_ARG);
}

static void packing(void)
{
    char buf[16];
    int position = 0, beyond = 17;
    MPI_Count cposition = 0;
    WRONG_COMMS(MPI_Pack(x, 1, MPI_INT, buf, 16, &position, comm));
    WRONG_COMMS(MPI_Unpack(buf, 16, &position, x, 1, MPI_INT, comm));
    WRONG_COMMS(MPI_Pack_size(1, MPI_INT, comm, &n));
    WRONG_COMMS(MPI_Pack_size_c(1, MPI_INT, comm, &c));
    WRONG_TYPES(MPI_Pack(x, 1, type, buf, 16, &position, MPI_COMM_WORLD));
    WRONG_TYPES(MPI_Pack_c(x, 1, type, buf, 16, &cposition, MPI_COMM_WORLD));
    WRONG_TYPES(MPI_Unpack(buf, 16, &position, x, 1, type, MPI_COMM_WORLD));
    WRONG_TYPES(MPI_Unpack_c(buf, 16, &cposition, x, 1, type, MPI_COMM_WORLD));
    WRONG_OLD(MPI_Pack_size(1, old, MPI_COMM_WORLD, &n));
    CHECK_CLASS(MPI_Pack(x, -1, MPI_INT, buf, 16, &position, MPI_COMM_WORLD), MPI_ERR_COUNT);
    CHECK_CLASS(MPI_Pack(NULL, 1, MPI_INT, buf, 16, &position, MPI_COMM_WORLD), MPI_ERR_BUFFER);
    CHECK_CLASS(MPI_Pack(x, 1, MPI_INT, NULL, 16, &position, MPI_COMM_WORLD), MPI_ERR_BUFFER);
    CHECK_CLASS(MPI_Pack(x, 1, MPI_INT, buf, -1, &position, MPI_COMM_WORLD), MPI_ERR_ARG);
    CHECK_CLASS(MPI_Pack(x, 1, MPI_INT, buf, 16, NULL, MPI_COMM_WORLD), MPI_ERR_ARG);
    CHECK_CLASS(MPI_Pack(x, 1, MPI_INT, buf, 16, &beyond, MPI_COMM_WORLD), MPI_ERR_ARG);
    CHECK_CLASS(MPI_Unpack(buf, 16, &position, x, -1, MPI_INT, MPI_COMM_WORLD), MPI_ERR_COUNT);
    CHECK_CLASS(MPI_Pack_size(-1, MPI_INT, MPI_COMM_WORLD, &n), MPI_ERR_COUNT);
    CHECK_CLASS(MPI_Pack_size(1, MPI_INT, MPI_COMM_WORLD, NULL), MPI_ERR_ARG);
}

static void operators(void)
{
    MPI_Op op = MPI_SUM, null = MPI_OP_NULL;
    CHECK_CLASS(MPI_Op_create(NULL, 1, &op), MPI_ERR_ARG);
    CHECK_CLASS(MPI_Op_create(add_nothing, 1, NULL), MPI_ERR_ARG);
    CHECK_CLASS(MPI_Op_create_c(NULL, 1, &op), MPI_ERR_ARG);
    CHECK_CLASS(MPI_Op_free(&op), MPI_ERR_OP); /* predefined */
    CHECK_CLASS(MPI_Op_free(&null), MPI_ERR_OP);
    CHECK_CLASS(MPI_Op_free(NULL), MPI_ERR_ARG);
    CHECK_CLASS(MPI_Op_commutative(freed_op, &flag), MPI_ERR_OP);
    CHECK_CLASS(MPI_Op_commutative(MPI_SUM, NULL), MPI_ERR_ARG);
}

static void attributes(void)
{
    int key = MPI_KEYVAL_INVALID, old_key, type_key;
    void *value;
    MPI_Comm_create_keyval(MPI_COMM_NULL_COPY_FN, MPI_COMM_NULL_DELETE_FN, &old_key, NULL);
    MPI_Type_create_keyval(MPI_TYPE_NULL_COPY_FN, MPI_TYPE_NULL_DELETE_FN, &type_key, NULL);
    WRONG_COMMS(MPI_Comm_get_attr(comm, old_key, &value, &flag));
    WRONG_COMMS(MPI_Comm_set_attr(comm, old_key, NULL));
    WRONG_COMMS(MPI_Comm_delete_attr(comm, old_key));
    WRONG_COMMS(MPI_Attr_get(comm, old_key, &value, &flag));
    WRONG_COMMS(MPI_Attr_put(comm, old_key, NULL));
    WRONG_COMMS(MPI_Attr_delete(comm, old_key));
    CHECK_CLASS(MPI_Comm_get_attr(MPI_COMM_WORLD, key, &value, &flag), MPI_ERR_KEYVAL);
    CHECK_CLASS(MPI_Comm_set_attr(MPI_COMM_WORLD, key, NULL), MPI_ERR_KEYVAL);
    CHECK_CLASS(MPI_Comm_set_attr(MPI_COMM_WORLD, MPI_TAG_UB, NULL), MPI_ERR_KEYVAL);
    CHECK_CLASS(MPI_Comm_delete_attr(MPI_COMM_WORLD, MPI_IO), MPI_ERR_KEYVAL);
    CHECK_CLASS(MPI_Comm_get_attr(MPI_COMM_WORLD, type_key, &value, &flag), MPI_ERR_KEYVAL); /* of another kind */
    CHECK_CLASS(MPI_Type_get_attr(MPI_INT, old_key, &value, &flag), MPI_ERR_KEYVAL);
    WRONG_OLD(MPI_Type_get_attr(old, type_key, &value, &flag));
    WRONG_OLD(MPI_Type_set_attr(old, type_key, NULL));
    WRONG_OLD(MPI_Type_delete_attr(old, type_key));
    CHECK_CLASS(MPI_Comm_get_attr(MPI_COMM_WORLD, old_key, NULL, &flag), MPI_ERR_ARG);
    CHECK_CLASS(MPI_Comm_free_keyval(&key), MPI_ERR_KEYVAL);
    CHECK_CLASS(MPI_Comm_free_keyval(NULL), MPI_ERR_ARG);
    CHECK_CLASS(MPI_Keyval_free(&key), MPI_ERR_KEYVAL);
    CHECK_CLASS(MPI_Comm_create_keyval(MPI_COMM_NULL_COPY_FN, MPI_COMM_NULL_DELETE_FN, NULL, NULL), MPI_ERR_ARG);
    int freed = old_key;
    MPI_Comm_free_keyval(&old_key);
    MPI_Type_free_keyval(&type_key);
    CHECK_CLASS(MPI_Comm_set_attr(MPI_COMM_WORLD, freed, NULL), MPI_ERR_KEYVAL);
}

static void ignore(MPI_Comm *comm, int *code, ...) { (void)comm, (void)code; }

static void handlers_and_environment(void)
{
    MPI_Errhandler e = MPI_ERRHANDLER_NULL, stray = STRAY(MPI_Errhandler);
    void *p;
    WRONG_COMMS(MPI_Comm_set_errhandler(comm, MPI_ERRORS_RETURN));
    WRONG_COMMS(MPI_Comm_get_errhandler(comm, &e));
    WRONG_COMMS(MPI_Comm_call_errhandler(comm, MPI_ERR_OTHER));
    e = MPI_ERRHANDLER_NULL;
    CHECK_CLASS(MPI_Comm_set_errhandler(MPI_COMM_WORLD, e), MPI_ERR_ERRHANDLER);
    CHECK_CLASS(MPI_Comm_set_errhandler(MPI_COMM_WORLD, stray), MPI_ERR_ERRHANDLER);
    CHECK_CLASS(MPI_Errhandler_free(&e), MPI_ERR_ERRHANDLER);
    CHECK_CLASS(MPI_Comm_get_errhandler(MPI_COMM_WORLD, NULL), MPI_ERR_ARG);
    CHECK_CLASS(MPI_Comm_create_errhandler(NULL, &e), MPI_ERR_ARG);
    CHECK_CLASS(MPI_Comm_create_errhandler(ignore, NULL), MPI_ERR_ARG);
    CHECK_CLASS(MPI_Error_class(-4, &n), MPI_ERR_ARG);
    CHECK_CLASS(MPI_Error_class(MPI_ERR_RANK, NULL), MPI_ERR_ARG);
    CHECK_CLASS(MPI_Error_string(1 << 20, text, &n), MPI_ERR_ARG);
    CHECK_CLASS(MPI_Error_string(MPI_ERR_RANK, NULL, &n), MPI_ERR_ARG);
    CHECK_CLASS(MPI_Get_version(NULL, &n), MPI_ERR_ARG);
    CHECK_CLASS(MPI_Get_library_version(text, NULL), MPI_ERR_ARG);
    CHECK_CLASS(MPI_Abi_get_version(NULL, &n), MPI_ERR_ARG);
    CHECK_CLASS(MPI_Get_processor_name(NULL, &n), MPI_ERR_ARG);
    CHECK_CLASS(MPI_Alloc_mem(-1, MPI_INFO_NULL, &p), MPI_ERR_ARG);
    CHECK_CLASS(MPI_Alloc_mem(1, MPI_INFO_NULL, NULL), MPI_ERR_ARG);
    CHECK_CLASS(MPI_Alloc_mem(INTPTR_MAX / 2, MPI_INFO_NULL, &p), MPI_ERR_NO_MEM);
    CHECK_CLASS(MPI_Free_mem(NULL), MPI_ERR_ARG);
    CHECK_CLASS(MPI_Initialized(NULL), MPI_ERR_ARG);
    CHECK_CLASS(MPI_Finalized(NULL), MPI_ERR_ARG);
    CHECK_CLASS(MPI_Query_thread(NULL), MPI_ERR_ARG);
    CHECK_CLASS(MPI_Is_thread_main(NULL), MPI_ERR_ARG);
    CHECK_CLASS(MPI_Init(NULL, NULL), MPI_ERR_OTHER); /* for the second time */
    CHECK_CLASS(MPI_Comm_get_parent(NULL), MPI_ERR_ARG);
}

int main(int argc, char **argv)
{
    check_start(&argc, &argv);
    wrong_open();
    communicators();
    groups();
    constructors();
    datatypes();
    packing();
    operators();
    attributes();
    handlers_and_environment();
    wrong_close();
    return check_done();
}
