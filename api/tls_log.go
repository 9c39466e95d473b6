package api

import (
	"log/slog"
	"strings"
	"sync"
)

// refusals tells the log who was refused and why, once for each host and reason: whoever tries on, or probes a port, does not
// fill it. What net/http has to say beside what requests are answered with it tells, too, such as that a handshake has failed.
type refusals struct {
	log *slog.Logger

	mu   sync.Mutex
	told map[string]bool
}

// mostRefusals bounds what is remembered; beyond it what was told is told anew.
const mostRefusals = 1000

func newRefusals(l *slog.Logger) *refusals { return &refusals{log: l, told: map[string]bool{}} }

// tell is about a request.
func (r *refusals) tell(host, why string) {
	if r.first(host + " " + why) {
		r.log.Warn("requests are refused; others of this host for the same reason are not logged", "host", host, "why", why)
	}
}

func (r *refusals) Write(line []byte) (int, error) {
	text := strings.TrimSpace(string(line))
	if from, ok := strings.CutPrefix(text, "http: TLS handshake error from "); ok {
		address, reason, _ := strings.Cut(from, ": ")
		host := hostOnly(address)
		meaning, _, _ := strings.Cut(reason, ": current time ") // that of an expired certificate is never the same
		if !r.first(host + " " + meaning) {
			return len(line), nil
		}
		r.log.Warn("a TLS handshake failed; others of this host for the same reason are not logged", "host", host, "error", reason)
		return len(line), nil
	}
	r.log.Warn(text)
	return len(line), nil
}

func (r *refusals) first(what string) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.told[what] {
		return false
	}
	if len(r.told) >= mostRefusals {
		clear(r.told)
	}
	r.told[what] = true
	return true
}
