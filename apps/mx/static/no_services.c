// SPDX-License-Identifier: Apache-2.0
// What HDF5 and OpenSSL would ask of the system, and a static mx may not: to load libraries (filter
// plugins, engines) and to resolve names of hosts. glibc's functions would look for libraries of
// its own version at run time. These always fail; mx itself uses none of them.
#define _GNU_SOURCE  // dladdr
#include <dlfcn.h>
#include <netdb.h>
#include <stddef.h>

// For dlopen (mx_static.cmake): of that name, ld warns whosever it is.
void* __wrap_dlopen(const char* file, int mode);
void* __wrap_dlopen(const char* file, int mode) {
    (void)file;
    (void)mode;
    return NULL;
}

void* dlsym(void* restrict handle, const char* restrict name) {
    (void)handle;
    (void)name;
    return NULL;
}

int dladdr(const void* address, Dl_info* info) {
    (void)address;
    (void)info;
    return 0;
}

int dlclose(void* handle) {
    (void)handle;
    return -1;
}

char* dlerror(void) {
    static char message[] = "this program is static and loads no libraries";
    return message;
}

int getaddrinfo(const char* restrict node, const char* restrict service,
                const struct addrinfo* restrict hints, struct addrinfo** restrict result) {
    (void)node;
    (void)service;
    (void)hints;
    (void)result;
    return EAI_FAIL;
}

void freeaddrinfo(struct addrinfo* addresses) { (void)addresses; }

const char* gai_strerror(int error) {
    (void)error;
    return "this program is static and resolves no names";
}

int getnameinfo(const struct sockaddr* restrict address, socklen_t address_length,
                char* restrict host, socklen_t host_length, char* restrict service,
                socklen_t service_length, int flags) {
    (void)address;
    (void)address_length;
    (void)host;
    (void)host_length;
    (void)service;
    (void)service_length;
    (void)flags;
    return EAI_FAIL;
}

struct hostent* gethostbyname(const char* name) {
    (void)name;
    return NULL;
}
