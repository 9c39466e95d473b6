package api

import (
	"maps"
	"slices"
	"time"

	"golang.org/x/sync/semaphore"

	"github.com/troupe-engine/troupe/api/transport"
	"github.com/troupe-engine/troupe/engine"
)

// Patience sets how long requests wait for their turn.
func Patience(s *Server, d time.Duration) { s.turns.patience = d }

// Pause sets how long large bodies may send nothing.
func Pause(s *Server, d time.Duration) { s.turns.pause = d }

// AtWork sets the number of large requests that are carried out at once.
func AtWork(s *Server, n int64) { s.turns.atWork = semaphore.NewWeighted(n) }

// Instead replaces the engine of a server.
func Instead(s *Server, of func(engine.Engine) engine.Engine) { s.cfg.Engine = of(s.cfg.Engine) }

// LookAlways makes c check its files for every connection.
func LookAlways(c *transport.Certificates) { c.CheckInterval = 0 }

// Routed returns the patterns of a server; true = access by role.
func Routed(s *Server) map[string]bool { return s.routed }

// RoleRoutes returns the paths outside /v1 that have roles.
func RoleRoutes() []string { return slices.Collect(maps.Keys(routeRoles)) }

// PathOf returns a pattern in the form of that table.
func PathOf(pattern string) string { return pathOf(pattern) }

// MemberOf returns the member of a server.
func MemberOf(s *Server) Member { return s.cfg.Member }

// TokensAge sets the greatest age of a server's list of tokens.
func TokensAge(s *Server, d time.Duration) { s.guard.stored.age = d }
