package api

import (
	"log/slog"
	"strings"
	"sync"
)

// refusalLog logs rejected requests once per host and reason, so that repeated attempts and port
// scans do not fill the log. It also logs messages of net/http without a request, such as failed
// handshakes.
type refusalLog struct {
	log *slog.Logger

	mu     sync.Mutex
	logged map[string]bool
}

// mostRefusals bounds the remembered reasons. At the limit, all are forgotten and may be logged
// again.
const mostRefusals = 1000

func newRefusals(l *slog.Logger) *refusalLog { return &refusalLog{log: l, logged: map[string]bool{}} }

// logRefusal logs a rejected request.
func (r *refusalLog) logRefusal(host, why string) {
	if r.isFirst(host + " " + why) {
		r.log.Warn("requests rejected; repeats from this host are not logged", "host", host, "reason", why)
	}
}

func (r *refusalLog) Write(line []byte) (int, error) {
	text := strings.TrimSpace(string(line))
	if from, ok := strings.CutPrefix(text, "http: TLS handshake error from "); ok {
		address, reason, _ := strings.Cut(from, ": ")
		host := hostOnly(address)
		// the message of an expired certificate contains the time
		meaning, _, _ := strings.Cut(reason, ": current time ")
		if !r.isFirst(host + " " + meaning) {
			return len(line), nil
		}
		r.log.Warn("TLS handshake failed; repeats from this host are not logged", "host", host, "error", reason)
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
