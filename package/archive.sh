#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# usage: archive.sh ARCHIVE OBJCOPY AR LINK...
# Joins what the command LINK names into one object, makes local in it whatever is not of the C face,
# and puts it into ARCHIVE.
set -eu
archive=$1 objcopy=$2 ar=$3
shift 3
folder=$(mktemp -d "$archive.XXXXXX")
trap 'rm -rf "$folder"' EXIT

# Groups of sections are dissolved: a linker keeps one of several groups of the same name, perhaps
# the user's, and then what refers to a local symbol of the other one refers to nothing. Common
# symbols get their place, since they cannot be local without one.
"$@" -r -nostdlib -fuse-ld=bfd -Wl,--force-group-allocation,-d -o "$folder/khoro.o"
"$objcopy" --wildcard --keep-global-symbol='khoro*' "$folder/khoro.o"
rm -f "$archive"
"$ar" rcsD "$archive" "$folder/khoro.o"
