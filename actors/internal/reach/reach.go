// Package reach says which addresses this member calls on behalf of others: those that its operator
// has named.
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

// ErrNotAllowed reports that an address is in no network that may be called.
var ErrNotAllowed = errors.New("not allowed")

// Networks are those that may be called. Link-local addresses, where machines of clouds tell their
// secrets, are in none of them.
type Networks struct {
	Allow    []netip.Prefix
	Loopback bool // this host may be called, too
}

// Allowed reports whether an address may be called. One that holds an IPv4 address for a translator
// or a tunnel to reach is allowed only if that one is in an allowed network as well.
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

// Dialer connects to allowed addresses only: a name may resolve differently by the time it is
// called. Who is what is called, in the plural.
func (n Networks) Dialer(who string) *net.Dialer {
	return &net.Dialer{Timeout: 3 * time.Second, KeepAlive: 15 * time.Second, ControlContext: func(_ context.Context, _, address string, _ syscall.RawConn) error {
		to, err := netip.ParseAddrPort(address)
		if err != nil {
			return fmt.Errorf("connect to %s: %w", address, err)
		}
		if !n.Allowed(to.Addr()) {
			return fmt.Errorf("connect to %s: %s are %w there", address, who, ErrNotAllowed)
		}
		return nil
	}}
}
