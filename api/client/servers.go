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

// serverList are the addresses that a client knows. All of its requests go to one of them until
// that one fails.
type serverList struct {
	all      []string
	switches atomic.Int64 // how often one was left for the next
}

// parseServers reads addresses with commas between them.
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

// currentTurn says whose turn it is.
func (s *serverList) currentTurn() int64 { return s.switches.Load() }

// addressAt is the address whose turn it is.
func (s *serverList) addressAt(turn int64) string { return s.all[turn%int64(len(s.all))] }

// leaveServer makes it the turn of the next one, unless somebody else has done so, if an error says
// that another member may do better. A caller that has given up says nothing about a server.
func (s *serverList) leaveServer(ctx context.Context, turn int64, err error) bool {
	if ctx.Err() != nil || !isUnavailable(err) {
		return false
	}
	s.switches.CompareAndSwap(turn, turn+1)
	return len(s.all) > 1
}

// isUnavailable reports whether a server could not be reached, or was not able to do its work.
func isUnavailable(err error) bool {
	var refused *Error
	if errors.As(err, &refused) {
		return refused.Status == http.StatusServiceUnavailable
	}
	return err != nil && !isDistrusted(err)
}
