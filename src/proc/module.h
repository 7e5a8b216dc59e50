/*
 * module.h - parts of the library that are shared objects of their own, loaded when
 * they are needed first, so that the library itself needs the C library only.
 *
 * A module is looked for in the folders of TERN_MODULE_PATH, and then in tern/ beside the library; the tests, whose
 * programs have the library in themselves, name another folder for the latter by TERN_MODULE_DIR. A module exports one
 * structure, and sees no symbol of the library.
 *
 * Threads: any.
 */
#ifndef TERN_PROC_MODULE_H
#define TERN_PROC_MODULE_H

/* The structure `symbol` of the module `name` ("pmix"). The module stays loaded for the life of the process, since
 * libraries that it is linked with may not bear being unloaded. NULL with words: TERN_ERR_NOT_FOUND (there is none, or
 * it cannot be loaded), TERN_ERR_SYSTEM (the file is no module of Tern). */
const void *module_load(const char *name, const char *symbol);

#endif
