package api

import (
	"maps"
	"slices"
	"time"

	"golang.org/x/sync/semaphore"

	"github.com/troupe-engine/troupe/engine"
)

// Patience has requests wait for their turn no longer than that.
func Patience(s *Server, d time.Duration) { s.turns.patience = d }

// Pause has large bodies send nothing no longer than that.
func Pause(s *Server, d time.Duration) { s.turns.pause = d }

// AtWork has so many large requests carried out at once.
func AtWork(s *Server, n int64) { s.turns.atWork = semaphore.NewWeighted(n) }

// Instead has a server ask another engine.
func Instead(s *Server, of func(engine.Engine) engine.Engine) { s.cfg.Engine = of(s.cfg.Engine) }

// LookAlways has files read for every connection.
func LookAlways(c *Certificates) { c.every = 0 }

// Routed are the patterns of a server: true = by role.
func Routed(s *Server) map[string]bool { return s.routed }

// RoleRoutes are the paths beside /v1 of which it is said who may call them.
func RoleRoutes() []string { return slices.Collect(maps.Keys(routeRoles)) }

// PathOf is a pattern as that table has it.
func PathOf(pattern string) string { return pathOf(pattern) }

// MemberOf is what a server is served from.
func MemberOf(s *Server) Member { return s.cfg.Member }

// TokensAge is how old a server's list of tokens may be.
func TokensAge(s *Server, d time.Duration) { s.guard.stored.age = d }
