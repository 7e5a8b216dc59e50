#!/bin/sh
# autogen.sh - makes configure; needs autoconf, automake, libtool, pkg-config.
cd "$(dirname "$0")" && exec autoreconf --install
