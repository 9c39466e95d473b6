package gossip

import (
	"log/slog"
	"net"
	"strings"
	"sync"
)

// gossipLog receives the library's log. It logs lines at level debug, and refused senders once per
// host and reason.
type gossipLog struct {
	log    *slog.Logger
	mu     sync.Mutex
	logged map[string]bool
}

// refusals maps texts of the library to reasons. The first match counts.
var refusals = []struct{ text, meaning string }{
	{"unacceptable label", "it is of another cluster, or names none"},
	{"encryption is not configured", "what it says is encrypted, but this member has no key: see --gossip-key-file"},
	{"no installed keys could decrypt", "it has a key that is not in the ring"},
	{"remote state is not encrypted", "it has no key, or a key that is not in the ring"},
	{"Decrypt packet failed", "it has no key, or a key that is not in the ring"},
}

func (s *gossipLog) Write(line []byte) (int, error) {
	text := strings.TrimSpace(string(line))
	for _, r := range refusals {
		if !strings.Contains(text, r.text) {
			continue
		}
		if host := lineHost(text); s.isFirst(host, r.meaning) {
			s.log.Warn("gossip from an unknown member rejected: "+r.meaning, "host", host)
		}
		return len(line), nil
	}
	s.log.Debug(text)
	return len(line), nil
}

// lineHost returns the host at the end of a line without its port, which changes with each
// connection.
func lineHost(line string) string {
	_, addr, _ := strings.Cut(line, "from=")
	host, _, err := net.SplitHostPort(addr)
	if err != nil {
		return addr
	}
	return host
}

func (s *gossipLog) isFirst(host, meaning string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	key := host + " " + meaning
	if s.logged[key] {
		return false
	}
	if len(s.logged) >= maxRemembered {
		clear(s.logged)
	}
	s.logged[key] = true
	return true
}
