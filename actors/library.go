package actors

import (
	"context"
	"log/slog"

	"github.com/asynkron/protoactor-go/actor"
)

// libraryHandler passes only error records of the actor library to the log. It drops their
// attributes, which could contain values of users. This package itself logs starts and crashes of
// actors.
type libraryHandler struct{ to slog.Handler }

func libraryLog(to *slog.Logger) actor.ConfigOption {
	return actor.WithLoggerFactory(func(*actor.ActorSystem) *slog.Logger { return slog.New(libraryHandler{to.Handler()}) })
}

func (l libraryHandler) Enabled(ctx context.Context, level slog.Level) bool {
	return level >= slog.LevelError && l.to.Enabled(ctx, level)
}

// crashLogPrefix starts the log line of the actor library about a crashed actor.
const crashLogPrefix = "[Supervision]"

func (l libraryHandler) Handle(ctx context.Context, r slog.Record) error {
	if r.Message == crashLogPrefix {
		return nil
	}
	return l.to.Handle(ctx, slog.NewRecord(r.Time, r.Level, "the actor library: "+r.Message, r.PC))
}

func (l libraryHandler) WithAttrs([]slog.Attr) slog.Handler { return l }
func (l libraryHandler) WithGroup(string) slog.Handler      { return l }
