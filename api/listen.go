package api

import (
	"fmt"
	"net"
)

// CheckListen returns an error for a server that is open to the network without protection. Any
// address except loopback needs tokens or the option insecure.
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

// isLoopback reports whether a name or address is local to this host. An empty host means every
// interface, so the result is false.
func isLoopback(host string) bool {
	if isLocalName(host) {
		return true
	}
	ip := net.ParseIP(host)
	return ip != nil && ip.IsLoopback()
}
