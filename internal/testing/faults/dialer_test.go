package faults

import (
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"time"
)

// The kernel's tables are read in pieces while they change, so a socket may be missed at first.
const (
	looks     = 50
	lookPause = 10 * time.Millisecond
)

// dialer returns the host of a connection. All programs here dial from the same address, so it
// searches for the process with the socket; -1 if there is none any longer.
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

// socketOf returns the kernel's id of the socket connected from an address.
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
