// Package reach restricts the addresses that this member calls for users to networks that the
// operator allowed.
package reach

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"slices"
	"syscall"
	"time"
)

// ErrNotAllowed reports that an address is in no allowed network.
var ErrNotAllowed = errors.New("not allowed")

// Networks are the allowed networks. Link-local addresses are never allowed, because cloud machines
// serve credentials there.
type Networks struct {
	Allow    []netip.Prefix
	Loopback bool // addresses of this host are allowed, too
}

// Allowed reports whether an address may be called. Embedded IPv4 addresses must be allowed as
// well.
func (n Networks) Allowed(addr netip.Addr) bool {
	addr = addr.Unmap().WithZone("")
	if addr.IsLoopback() {
		return n.Loopback || n.named(addr)
	}
	for _, inner := range inside(addr) {
		if inner.IsLoopback() || !n.inside(inner) {
			return false
		}
	}
	return n.inside(addr)
}

func (n Networks) inside(addr netip.Addr) bool {
	return !addr.IsLinkLocalUnicast() && !addr.IsMulticast() && !addr.IsUnspecified() && n.named(addr)
}

func (n Networks) named(addr netip.Addr) bool {
	return slices.ContainsFunc(n.Allow, func(network netip.Prefix) bool { return network.Contains(addr) })
}

// Dialer returns a dialer that connects only to allowed addresses. It checks at connection time,
// because a name may resolve differently by then. targets is a plural noun for error texts.
func (n Networks) Dialer(targets string) *net.Dialer {
	return &net.Dialer{Timeout: 3 * time.Second, KeepAlive: 15 * time.Second,
		ControlContext: func(_ context.Context, _, address string, _ syscall.RawConn) error {
			to, err := netip.ParseAddrPort(address)
			if err != nil {
				return fmt.Errorf("connect to %s: %w", address, err)
			}
			if !n.Allowed(to.Addr()) {
				return fmt.Errorf("connect to %s: %s are %w there", address, targets, ErrNotAllowed)
			}
			return nil
		}}
}
