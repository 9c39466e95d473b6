package api

import (
	"fmt"
	"net"
)

// CheckListen refuses to open a member to the network without protection. Any address except
// loopback needs tokens, or the explicit option to do without them.
func CheckListen(addr string, tokens []string, insecure bool) error {
	if insecure || len(tokens) > 0 {
		return nil
	}
	host, _, err := net.SplitHostPort(addr)
	if err != nil {
		return fmt.Errorf("api: --listen %q is no HOST:PORT: write it like 127.0.0.1:8070", addr)
	}
	if isLoopback(host) {
		return nil
	}
	return fmt.Errorf("api: %q can be reached from other hosts: configure tokens "+
		"(--token-file), listen on 127.0.0.1, or allow it explicitly (--insecure)", addr)
}

// isLoopback reports whether a name or address is of this host. An empty host means every
// interface.
func isLoopback(host string) bool {
	if isLocalName(host) {
		return true
	}
	ip := net.ParseIP(host)
	return ip != nil && ip.IsLoopback()
}
