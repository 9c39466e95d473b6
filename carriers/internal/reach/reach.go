// Package reach restricts the addresses that this member calls for users to the networks that its
// operator has named.
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

// Networks are the allowed networks. Link-local addresses, where cloud machines serve their
// credentials, are never allowed.
type Networks struct {
	Allow    []netip.Prefix
	Loopback bool // this host is allowed, too
}

// Allowed reports whether an address may be called. If it contains an IPv4 address for a translator
// or a tunnel, that one must be allowed as well.
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

// Dialer returns a dialer that connects only to allowed addresses, because a name may resolve
// differently at the time of the call. Error texts call the targets by
// the given plural noun.
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
