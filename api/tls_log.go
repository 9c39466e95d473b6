package api

import (
	"log/slog"
	"strings"
	"sync"
)

// refusalLog tells the log who was refused and why, once for each host and reason: whoever tries
// on, or probes a port, does not fill it. What net/http has to say beside what requests are
// answered with it tells, too, such as that a handshake has failed.
type refusalLog struct {
	log *slog.Logger

	mu     sync.Mutex
	logged map[string]bool
}

// mostRefusals bounds what is remembered; beyond it what was told is told anew.
const mostRefusals = 1000

func newRefusals(l *slog.Logger) *refusalLog { return &refusalLog{log: l, logged: map[string]bool{}} }

// logRefusal is about a request.
func (r *refusalLog) logRefusal(host, why string) {
	if r.isFirst(host + " " + why) {
		r.log.Warn("requests are refused; others of this host for the same reason are not logged", "host", host, "why", why)
	}
}

func (r *refusalLog) Write(line []byte) (int, error) {
	text := strings.TrimSpace(string(line))
	if from, ok := strings.CutPrefix(text, "http: TLS handshake error from "); ok {
		address, reason, _ := strings.Cut(from, ": ")
		host := hostOnly(address)
		meaning, _, _ := strings.Cut(reason, ": current time ") // that of an expired certificate is never the same
		if !r.isFirst(host + " " + meaning) {
			return len(line), nil
		}
		r.log.Warn("a TLS handshake failed; others of this host for the same reason are not logged", "host", host, "error", reason)
		return len(line), nil
	}
	r.log.Warn(text)
	return len(line), nil
}

func (r *refusalLog) isFirst(what string) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.logged[what] {
		return false
	}
	if len(r.logged) >= mostRefusals {
		clear(r.logged)
	}
	r.logged[what] = true
	return true
}
