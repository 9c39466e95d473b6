package client

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"sync/atomic"
)

// serverList holds the addresses of the members. All requests go to one address until it fails.
type serverList struct {
	all      []string
	switches atomic.Int64 // how often the client switched to the next address
}

// parseServers parses addresses separated by commas.
func parseServers(text string) (*serverList, error) {
	s := &serverList{}
	for _, address := range strings.Split(text, ",") {
		address = strings.TrimSpace(address)
		u, err := url.Parse(address)
		if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" {
			return nil, fmt.Errorf("%q is no address of a server: write http://host:port, and commas between several", address)
		}
		s.all = append(s.all, strings.TrimRight(u.String(), "/"))
	}
	return s, nil
}

// currentTurn returns the number of switches so far, which selects the current address.
func (s *serverList) currentTurn() int64 { return s.switches.Load() }

// addressAt returns the address for a number of switches.
func (s *serverList) addressAt(turn int64) string { return s.all[turn%int64(len(s.all))] }

// leaveServer switches to the next address if an error suggests that another member may succeed. It
// does not switch if another goroutine has done so, or if the caller's context has ended.
func (s *serverList) leaveServer(ctx context.Context, turn int64, err error) bool {
	if ctx.Err() != nil || !isUnavailable(err) {
		return false
	}
	s.switches.CompareAndSwap(turn, turn+1)
	return len(s.all) > 1
}

// isUnavailable reports whether a server could not be reached or was not ready.
func isUnavailable(err error) bool {
	var refused *Error
	if errors.As(err, &refused) {
		return refused.Status == http.StatusServiceUnavailable
	}
	return err != nil && !isDistrusted(err)
}
