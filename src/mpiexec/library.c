/* library.c - see library.h. The file is not trusted: each offset is checked against its length. */
#include "mpiexec/library.h"

#include <elf.h>
#include <fcntl.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#define OWN_NAME "libmpi_abi.so." /* the standard's */

struct file {
    const uint8_t *bytes;
    size_t size;
};

static const void *part(const struct file *f, uint64_t at, uint64_t n)
{
    return at <= f->size && n <= f->size - at ? f->bytes + at : NULL;
}

static const Elf64_Phdr *segments(const struct file *f, int *n)
{
    const Elf64_Ehdr *e = part(f, 0, sizeof *e);
    if (!e || memcmp(e->e_ident, ELFMAG, SELFMAG) || e->e_ident[EI_CLASS] != ELFCLASS64 ||
        e->e_phentsize != sizeof(Elf64_Phdr) || e->e_phoff % _Alignof(Elf64_Phdr))
        return NULL;
    *n = e->e_phnum;
    return part(f, e->e_phoff, (uint64_t)e->e_phnum * sizeof(Elf64_Phdr));
}

/* Where an address lies in the file; behind its end if nowhere. */
static uint64_t offset_of(const struct file *f, const Elf64_Phdr *p, int n, uint64_t address)
{
    for (int i = 0; i < n; i++)
        if (p[i].p_type == PT_LOAD && address >= p[i].p_vaddr && address - p[i].p_vaddr < p[i].p_filesz)
            return p[i].p_offset + (address - p[i].p_vaddr);
    return f->size;
}

const char *library_family(const char *name)
{
    static const struct {
        const char *prefix, *family;
    } known[] = {{"libmpich.so", "MPICH"},       {"libmpi.so.12", "MPICH, Intel MPI or another of that family"},
                 {"libmpi_cray", "Cray MPICH"},  {"libmpi_gnu", "Cray MPICH"},
                 {"libmpi_intel", "Cray MPICH"}, {"libmpi.so", "Open MPI"}};
    for (size_t i = 0; i < sizeof known / sizeof known[0]; i++)
        if (!strncmp(name, known[i].prefix, strlen(known[i].prefix))) return known[i].family;
    return NULL;
}

static void look_at(struct library *l, const char *name)
{
    if (!strncmp(name, OWN_NAME, strlen(OWN_NAME)) && l->kind == LIBRARY_UNKNOWN) l->kind = LIBRARY_TERN;
    if (!strncmp(name, "libpmix.so", 10)) l->pmix = true;
    if (!library_family(name)) return;
    l->kind = LIBRARY_OTHER;
    snprintf(l->name, sizeof l->name, "%s", name);
}

static void read_dynamic(struct library *l, const struct file *f, const Elf64_Phdr *p, int n, const Elf64_Phdr *where)
{
    uint64_t entries = where->p_filesz / sizeof(Elf64_Dyn), strings = f->size;
    const Elf64_Dyn *d = part(f, where->p_offset, entries * sizeof *d);
    if (!d || where->p_offset % _Alignof(Elf64_Dyn)) return;
    for (uint64_t i = 0; i < entries && d[i].d_tag != DT_NULL; i++)
        if (d[i].d_tag == DT_STRTAB) strings = offset_of(f, p, n, d[i].d_un.d_ptr);
    if (strings >= f->size) return;
    for (uint64_t i = 0; i < entries && d[i].d_tag != DT_NULL; i++) {
        uint64_t at = d[i].d_un.d_val;
        if (d[i].d_tag != DT_NEEDED || at >= f->size - strings) continue;
        const char *name = (const char *)f->bytes + strings + at;
        if (memchr(name, 0, f->size - strings - at)) look_at(l, name);
    }
}

static void read_file(struct library *l, const struct file *f)
{
    int n = 0;
    const Elf64_Phdr *p = segments(f, &n);
    for (int i = 0; p && i < n; i++)
        if (p[i].p_type == PT_DYNAMIC) read_dynamic(l, f, p, n, &p[i]);
}

void library_of(struct library *l, int dir, const char *path)
{
    struct stat st;
    int fd = openat(dir, path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    memset(l, 0, sizeof *l);
    if (fd < 0) return;
    if (!fstat(fd, &st) && S_ISREG(st.st_mode) && st.st_size > 0) {
        struct file f = {.size = (size_t)st.st_size};
        void *map = mmap(NULL, f.size, PROT_READ, MAP_PRIVATE, fd, 0);
        f.bytes = map;
        if (map != MAP_FAILED) {
            read_file(l, &f);
            munmap(map, f.size);
        }
    }
    close(fd);
}
