/*
 * module.h - parts of the library that are shared objects of their own, loaded when
 * they are needed first, so that the library itself needs the C library only.
 *
 * A module lies in one of the folders of TERN_MODULE_PATH, else in tern/ beside the library, or where TERN_MODULE_DIR
 * says. It exports one structure, and sees no symbol of the library.
 *
 * Threads: any.
 */
#ifndef TERN_PROC_MODULE_H
#define TERN_PROC_MODULE_H

/* The structure `symbol` of the module `name` ("pmix"), which stays for the life of the process: what a module is linked
 * with may not bear being unloaded. NULL with words when it cannot be had. */
const void *module_load(const char *name, const char *symbol);

#endif
