/* module.c - see module.h. */
#include "proc/module.h"
#include "base/err.h"
#include "base/var.h"

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* The first folder of the list "a:b" that has it. */
static bool in_folders(char *path, size_t size, const char *list, const char *name)
{
    while (*list) {
        int len = (int)strcspn(list, ":");
        snprintf(path, size, "%.*s/%s.so", len, list, name);
        if (len && !access(path, F_OK)) return true;
        list += len + (list[len] == ':');
    }
    return false;
}

static void module_path(char *path, size_t size, const char *name)
{
    Dl_info where = {0};
    if (in_folders(path, size, var_text(VAR_MODULE_PATH), name)) return;
    const char *dir = getenv("TERN_MODULE_DIR");
    if (!dladdr((void *)(uintptr_t)module_load, &where) || !where.dli_fname) where.dli_fname = "";
    const char *slash = strrchr(where.dli_fname, '/');
    int own = slash ? (int)(slash - where.dli_fname + 1) : 0;
    if (dir) snprintf(path, size, "%s/%s.so", dir, name);
    else snprintf(path, size, "%.*stern/%s.so", own, where.dli_fname, name);
}

const void *module_load(const char *name, const char *symbol)
{
    char path[4096];
    module_path(path, sizeof path, name);
    void *module = dlopen(path, RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE);
    if (!module) {
        err_set(TERN_ERR_NOT_FOUND, "the module %s cannot be loaded: %s", name, dlerror());
        return NULL;
    }
    const void *s = dlsym(module, symbol);
    if (!s) err_set(TERN_ERR_SYSTEM, "%s is no module of Tern", path);
    dlclose(module); /* the handle only: RTLD_NODELETE */
    return s;
}
