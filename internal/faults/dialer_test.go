package faults

import (
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"time"
)

// Tables of the kernel are read in pieces while they change, so a socket may not be seen at first.
const (
	looks     = 50
	lookPause = 10 * time.Millisecond
)

// dialer finds out which host a connection comes from: every program here dials from the same
// address, so it is the one that has the socket. -1 is none of them: it has gone.
func (r *relays) dialer(from net.Addr) int {
	for range looks {
		socket := socketOf(from.(*net.TCPAddr))
		for i := range r.pids {
			if pid := r.pids[i].Load(); pid != 0 && socket != "" && holds(pid, socket) {
				return i
			}
		}
		time.Sleep(lookPause)
	}
	return -1
}

// socketOf is what the kernel calls the socket that is connected from an address.
func socketOf(from *net.TCPAddr) string {
	table, err := os.ReadFile("/proc/net/tcp")
	if err != nil {
		return ""
	}
	ip := from.IP.To4()
	local := fmt.Sprintf("%02X%02X%02X%02X:%04X", ip[3], ip[2], ip[1], ip[0], from.Port)
	for line := range strings.Lines(string(table)) {
		if f := strings.Fields(line); len(f) > 9 && f[1] == local {
			return "socket:[" + f[9] + "]"
		}
	}
	return ""
}

// holds reports whether a process has a socket.
func holds(pid int64, socket string) bool {
	files, err := filepath.Glob(fmt.Sprintf("/proc/%d/fd/*", pid))
	if err != nil {
		return false
	}
	for _, file := range files {
		if target, err := os.Readlink(file); err == nil && target == socket {
			return true
		}
	}
	return false
}
