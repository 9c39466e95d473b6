package reach

import (
	"bytes"
	"net/netip"
)

// holders are the IPv6 networks whose addresses contain an IPv4 address, with the byte offset.
var holders = []struct {
	network netip.Prefix
	at      int
}{
	{netip.MustParsePrefix("64:ff9b::/96"), 12},    // NAT64
	{netip.MustParsePrefix("64:ff9b:1::/48"), 12},  // site-local NAT64
	{netip.MustParsePrefix("::ffff:0:0:0/96"), 12}, // translated
	{netip.MustParsePrefix("::/96"), 12},           // compatible
	{netip.MustParsePrefix("2002::/16"), 2},        // 6to4
	{netip.MustParsePrefix("2001::/32"), 4},        // Teredo server
}

// teredo is the network whose addresses also contain the client's IPv4 address, with all bits
// inverted.
var teredo = netip.MustParsePrefix("2001::/32")

// isatap is the marker before an IPv4 address in the second half of an address, without the
// universal/local bit.
var isatap = []byte{0, 0, 0x5e, 0xfe}

// inside returns the IPv4 addresses that are embedded in an IPv6 address.
func inside(addr netip.Addr) []netip.Addr {
	if addr.Is4() {
		return nil
	}
	b := addr.As16()
	var found []netip.Addr
	for _, h := range holders {
		if h.network.Contains(addr) {
			found = append(found, netip.AddrFrom4([4]byte(b[h.at:])))
		}
	}
	if teredo.Contains(addr) {
		found = append(found, netip.AddrFrom4([4]byte{^b[12], ^b[13], ^b[14], ^b[15]}))
	}
	if bytes.Equal([]byte{b[8] &^ 2, b[9], b[10], b[11]}, isatap) {
		found = append(found, netip.AddrFrom4([4]byte(b[12:])))
	}
	return found
}
