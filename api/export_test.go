package api

import (
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
