#!/bin/sh
# hosts.sh - several hosts on one machine, for tests of what needs a network.
#
#     hosts.sh up N              makes h0 ... h<N-1>; prints the folder that describes them
#     hosts.sh exec HOST CMD...  runs a command on one, in this working directory and environment
#     hosts.sh link HOST IF down|up|cut
#                                pulls a cable (IF: e0, e1) and puts it back; cut: what is sent is lost further on,
#                                and no side is told
#     hosts.sh kill HOST         a crash: from one moment to the next nothing is heard of it, and it is gone
#     hosts.sh boot HOST         it comes back, empty
#     hosts.sh left [HOST]       prints the processes and files that are left on the hosts; fails if there are none
#     hosts.sh list              host, pid of its keeper, addresses
#     hosts.sh down              removes all of it, however far `up` had come
#     hosts.sh with N CMD...     up, the command, down; the folder is in $HOSTS_DIR and h0,h1... in $TERN_TEST_HOSTS
#
# The folder is $HOSTS_DIR, which `up` makes if it is not set. Sets of hosts in different folders know nothing of each
# other. `agent` beside this script stands for ssh: `mpiexec -launcher-exec .../agent -hosts h0,h1 ...`.
#
#        h0                     h1
#     e0 10.77.0.1, fd77::1  e0 10.77.0.2, fd77::2    on one switch
#     e1 10.78.0.1           e1 10.78.0.2             on another
#     docker0 172.17.0.1/16  docker0 172.17.0.1/16    the same address everywhere, which leads nowhere
#
# A host is a network, host name, System V and mount namespace: its own interfaces, name, /dev/shm, /tmp and /etc/hosts.
# Processes are numbered in common, so that an agent on one host can enter another. What lies in /tmp of the machine is
# not seen there, but for the folders that tests need: $HOSTS_DIR, the working directory of `up`, $top_srcdir,
# $top_builddir and those in $HOSTS_SHARED. Each host's /tmp is $HOSTS_DIR/<host>.tmp outside.
#
# A namespace lives as long as its keeper, a process that sleeps; nothing has a name outside $HOSTS_DIR, so nothing can
# be taken for somebody else's. $HOSTS_OWNER is a pid with which the keepers end too.
#
# Exit code 77: the system does not permit it, for the reason printed.

here=$(cd "$(dirname "$0")" && pwd)
switches="e0 e1"

die()
{
    echo "hosts.sh: $*" >&2
    exit 1
}

not_here()
{
    echo "no test hosts here: $*"
    exit 77
}

# ---- Keepers: $HOSTS_DIR/NAME.keeper has the pid, its time of start, and the inode of its network namespace. ----

# Nothing for a process that is dead and only waits to be reaped.
start_time() { sed '/.*) [ZX]/d; s/.*) //' "/proc/$1/stat" 2>/dev/null | cut -d' ' -f20; }
net_of() { readlink "/proc/$1/ns/net" | tr -dc 0-9; }

# keeper NAME: its pid, if it is the process that was recorded.
keeper()
{
    read -r pid started net 2>/dev/null <"$HOSTS_DIR/$1.keeper" || return 1
    [ -n "$pid" ] && [ "$(start_time "$pid")" = "$started" ] && echo "$pid"
}

host() # NAME: the pid of its keeper, or the end
{
    [ -e "$HOSTS_DIR/$1.keeper" ] || die "there is no host '$1' in $HOSTS_DIR"
    keeper "$1" || die "the host $1 is down"
}

hosts() { ls "$HOSTS_DIR" 2>/dev/null | sed -n 's/^\(h[0-9]*\)\.keeper$/\1/p' | sort -V; }

on_switch() { nsenter -t "$(keeper switch)" -n -- "$@"; }

# processes NAME: those in its network, without the keeper. If that is gone, the number of the namespace may be
# somebody else's by now: then only those that have our folder in their environment.
processes()
{
    read -r pid started net 2>/dev/null <"$HOSTS_DIR/$1.keeper" || return
    alive=$(keeper "$1")
    for p in $(find /proc/[0-9]*/ns -maxdepth 1 -name net -lname "net:\[$net\]" 2>/dev/null | cut -d/ -f3); do
        [ "$p" != "$pid" ] || continue
        [ -n "$alive" ] || grep -qszFx -e "HOSTS_DIR=$HOSTS_DIR" "/proc/$p/environ" || continue
        echo "$p"
    done
}

# ---- Making them ----

# In the new namespaces, as their keeper. It is in the record before anything else happens.
keep()
{
    echo "$$ $(start_time $$) $(net_of $$)" >"$HOSTS_DIR/.$1.keeper"
    mv "$HOSTS_DIR/.$1.keeper" "$HOSTS_DIR/$1.keeper"
    # Without the caller's output, which others may wait for, and in no folder that somebody wants to remove.
    [ "$1" = switch ] || { make_host "$1" >"$HOSTS_DIR/$1.log" 2>&1 && : >"$HOSTS_DIR/$1.made"; } || exit 1
    cd /
    [ -z "$HOSTS_OWNER" ] || exec tail -f --pid="$HOSTS_OWNER" /dev/null >/dev/null 2>&1
    exec sleep infinity >/dev/null 2>&1
}

make_host()
{
    hostname "$1" && mount -t tmpfs -o mode=1777 shm /dev/shm && own_sys "$1" && own_tmp "$1" &&
        mount --bind "$HOSTS_DIR/hosts" /etc/hosts && ip link set lo up || return
    # docker0 has a carrier and an address, as if containers ran.
    ip link add docker0 type veth peer name docker0-end && ip addr add 172.17.0.1/16 dev docker0 &&
        ip link set docker0 up && ip link set docker0-end up
}

# /sys/class/net is of the namespace in which /sys was mounted. The control groups are those of the machine.
own_sys()
{
    mkdir -p "$HOSTS_DIR/$1.cgroup"
    mount --rbind /sys/fs/cgroup "$HOSTS_DIR/$1.cgroup" 2>/dev/null
    mount -t sysfs sysfs /sys || return
    ! grep -q " $HOSTS_DIR/$1.cgroup " /proc/self/mountinfo || mount --move "$HOSTS_DIR/$1.cgroup" /sys/fs/cgroup
}

own_tmp()
{
    new=$HOSTS_DIR/$1.tmp
    mkdir -p "$new" && chmod 1777 "$new" || return
    for folder in "$HOSTS_DIR" "$PWD" "$top_srcdir" "$top_builddir" $HOSTS_SHARED; do
        case $folder in /tmp/?*) ;; *) continue ;; esac
        mkdir -p "$new${folder#/tmp}" && mount --rbind "$folder" "$new${folder#/tmp}" || return
        echo "${folder#/tmp/}" | cut -d/ -f1 >>"$HOSTS_DIR/shared"
    done
    mount --rbind "$new" /tmp
}

# new_keeper NAME NAMESPACES...
new_keeper()
{
    name=$1
    shift
    setsid unshare "$@" -- /bin/sh "$here/hosts.sh" keep "$name" </dev/null >/dev/null 2>"$HOSTS_DIR/$name.err" &
    starting=$!
    until [ -s "$HOSTS_DIR/$name.keeper" ]; do
        kill -0 $starting 2>/dev/null || die "$name did not start: $(cat "$HOSTS_DIR/$name.err")"
        sleep 0.01
    done
    [ "$name" != switch ] || return
    until [ -e "$HOSTS_DIR/$name.made" ]; do
        [ -n "$(keeper "$name")" ] || die "$name could not be set up: $(cat "$HOSTS_DIR/$name.log")"
        sleep 0.01
    done
}

# wire HOST INTERFACE: a cable to the switch of that interface, whose end there is named HOST-INTERFACE. The hardware's
# address stays over a crash, since the others remember it.
wire()
{
    mac=$(printf '02:00:00:%02x:00:%02x' "${2#e}" "${1#h}")
    on_switch ip link add "$1-$2" type veth peer name "$2" address "$mac" netns "$(keeper "$1")" &&
        on_switch ip link set "$1-$2" master "switch-$2" up
}

# addresses HOST NUMBER: IPv6 where the system has it.
addresses()
{
    enter "$1" sh -c "ip addr add 10.77.0.$2/24 dev e0 && ip addr add 10.78.0.$2/24 dev e1 && ip link set e0 up &&
        ip link set e1 up && { [ ! -e /proc/net/if_inet6 ] || ip addr add fd77::$(printf %x "$2")/64 dev e0 nodad; }"
}

make_switches()
{
    new_keeper switch -n
    for s in $switches; do
        on_switch ip link add "switch-$s" type bridge mcast_snooping 0 && on_switch ip link set "switch-$s" up || return
    done
}

write_names() # N
{
    printf '127.0.0.1 localhost\n::1 localhost ip6-localhost\n' >"$HOSTS_DIR/hosts"
    for i in $(seq 0 $(($1 - 1))); do
        printf '10.77.0.%d h%d\n10.78.0.%d h%d-e1\nfd77::%x h%d-ipv6\n' $((i + 1)) "$i" $((i + 1)) "$i" $((i + 1)) "$i"
    done >>"$HOSTS_DIR/hosts"
}

permitted()
{
    for tool in ip nsenter unshare setsid mount; do
        command -v $tool >/dev/null || not_here "there is no program '$tool'"
    done
    why=$(unshare -n -u -i -m true 2>&1) || not_here "$why"
    why=$(unshare -n ip link add name one type bridge 2>&1) || not_here "$why"
    why=$(unshare -n ip link add name one type veth peer name two 2>&1) || not_here "$why"
    why=$(unshare -m mount -t tmpfs none /dev/shm 2>&1) || not_here "$why"
}

# switch_on HOST: a new one of that name, wired up.
switch_on()
{
    new_keeper "$1" -n -u -i -m --propagation private
    for s in $switches; do wire "$1" "$s" || return; done
    addresses "$1" $((${1#h} + 1))
}

make_all() # N
{
    write_names "$1"
    make_switches || return
    for i in $(seq 0 $(($1 - 1))); do switch_on "h$i" || return; done
}

up()
{
    [ "$1" -ge 1 ] && [ "$1" -le 250 ] || die "up N, with N from 1 to 250"
    permitted
    HOSTS_DIR=${HOSTS_DIR:-$(mktemp -d)} && mkdir -p "$HOSTS_DIR" && HOSTS_DIR=$(cd "$HOSTS_DIR" && pwd -P) || exit 1
    [ ! -e "$HOSTS_DIR/hosts" ] || die "there are hosts already in $HOSTS_DIR"
    export HOSTS_DIR
    if ! (make_all "$1" >&2); then
        down
        die "they could not be made"
    fi
    echo "$HOSTS_DIR"
}

# ---- Using them ----

enter()
{
    pid=$(host "$1") || exit
    shift
    nsenter -t "$pid" -n -u -i -m -- "$@"
}

execute()
{
    pid=$(host "$1") || exit
    shift
    exec nsenter -t "$pid" -n -u -i -m --wd="$PWD" -- "$@"
}

link()
{
    host "$1" >/dev/null || exit
    case " $switches " in *" $2 "*) ;; *) die "there is no interface '$2': $switches" ;; esac
    case $3 in
        up) on_switch ip link set "$1-$2" master "switch-$2" up ;;
        down) on_switch ip link set "$1-$2" down ;;
        cut) on_switch ip link set "$1-$2" nomaster ;;
        *) die "link HOST IF up|down|cut" ;;
    esac
}

# Until there are none: they may be starting others.
kill_processes()
{
    for try in $(seq 100); do
        doomed=$(processes "$1")
        [ -n "$doomed" ] || return 0
        kill -KILL $doomed 2>/dev/null
        sleep 0.02
    done
    die "processes on $1 do not go: $doomed"
}

# The cables first: the kernel would take leave of its peers in the name of the processes.
crash()
{
    : >"$HOSTS_DIR/$1.crashed"
    for s in $switches; do on_switch ip link set "$1-$s" nomaster 2>/dev/null; done
    kill_processes "$1"
    ! pid=$(keeper "$1") || kill -KILL "$pid"
}

# What the crash has left behind of it goes only now; the old ends of the cables go with the old namespace, by and by.
boot()
{
    [ -e "$HOSTS_DIR/$1.keeper" ] || die "there is no host '$1' in $HOSTS_DIR"
    [ -z "$(keeper "$1")" ] || die "the host $1 is up"
    for s in $switches; do on_switch ip link del "$1-$s" 2>/dev/null; done
    (cd "$HOSTS_DIR" && rm -rf "$1.keeper" "$1.made" "$1.crashed" "$1.tmp" "$1.cgroup") && switch_on "$1"
}

down()
{
    [ -n "$HOSTS_DIR" ] || die "HOSTS_DIR is not set"
    [ -e "$HOSTS_DIR/hosts" ] || return 0
    # On a host, folders of the machine are mounted below this one.
    ! grep -q " $HOSTS_DIR/h[0-9]*\.tmp" /proc/self/mountinfo || die "down must not be said on one of the hosts"
    for name in $(hosts) switch; do
        kill_processes "$name"
        ! pid=$(keeper "$name") || kill -KILL "$pid"
    done
    rm -rf "$HOSTS_DIR"
}

# Files that nobody has made for the hosts themselves.
files()
{
    pid=$(keeper "$1") || return
    ls -A "/proc/$pid/root/dev/shm" | sed 's:^:/dev/shm/:'
    ls -A "$HOSTS_DIR/$1.tmp" | grep -Fxv -f "$HOSTS_DIR/shared" | sed 's:^:/tmp/:'
}

left()
{
    for name in ${1:-$(hosts)}; do
        for p in $(processes "$name"); do
            ! words=$(tr '\0' ' ' <"/proc/$p/cmdline" 2>/dev/null) || echo "process left on $name: $p $words"
        done
        files "$name" | sed "s/^/file left on $name: /"
    done | grep .
}

list()
{
    for name in $(hosts); do
        echo "$name $(keeper "$name" || echo down) $(awk -v h="$name" '$2 ~ "^" h "(-|$)" { print $1 }' "$HOSTS_DIR/hosts" | xargs)"
    done
}

# The pipes of what has been started may be held by what it left: nothing waits for them.
with()
{
    n=$1
    shift
    HOSTS_OWNER=${HOSTS_OWNER:-$$}
    export HOSTS_OWNER HOSTS_DIR
    why=$(up "$n") || { rc=$?; echo "$why"; exit $rc; }
    HOSTS_DIR=$why
    trap down EXIT
    trap 'exit 130' HUP INT TERM
    TERN_TEST_HOSTS=$(hosts | paste -sd,)
    export TERN_TEST_HOSTS
    "$@"
}

# Everything but `up` and `with` is about hosts that are there; the folder by the name that was recorded.
[ -z "$HOSTS_DIR" ] || [ ! -d "$HOSTS_DIR" ] || HOSTS_DIR=$(cd "$HOSTS_DIR" && pwd -P)
verb=$1
[ $# = 0 ] || shift
case $verb in
    up | with | down) ;;
    exec | link | kill | boot | left | list | keep) [ -e "$HOSTS_DIR/hosts" ] || die "there are no hosts in '$HOSTS_DIR' (HOSTS_DIR)" ;;
    *) sed -n '2,/^$/s/^# \{0,1\}//p' "$0"; exit 2 ;;
esac
case $verb in
    up) up "$1" ;;
    down) down ;;
    exec) execute "$@" ;;
    kill) host "$1" >/dev/null && crash "$1" ;;
    boot) boot "$1" ;;
    link) link "$@" ;;
    left) left "$1" ;;
    list) list ;;
    with) with "$@" ;;
    keep) keep "$1" ;;
esac
