package api

import (
	"slices"

	"github.com/troupe-engine/troupe/api/wire"
)

// Settings returns the configuration of the server, including defaults, without secrets. It
// contains only the number of tokens.
func (s *Server) Settings() wire.Settings {
	return wire.Settings{
		Tokens: len(s.guard.tokens), TLS: s.cfg.TLS != nil,
		AllowOrigins: slices.Clone(s.guard.origins), AllowHosts: slices.Clone(s.guard.hosts),
		MaxBody:       s.cfg.MaxBody,
		ReadTimeoutMS: s.cfg.ReadTimeout.Milliseconds(),
		IdleTimeoutMS: s.cfg.IdleTimeout.Milliseconds(), GraceMS: s.cfg.Grace.Milliseconds(),
	}
}
