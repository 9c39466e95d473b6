package actors

import (
	"context"
	"log/slog"

	"github.com/asynkron/protoactor-go/actor"
)

// libraryHandler lets into our log what fails inside of the actor library. The rest it would say,
// at every start and of every crash, we say ourselves where it happens; and with its details, which
// are messages, values of users would be in the log.
type libraryHandler struct{ to slog.Handler }

func libraryLog(to *slog.Logger) actor.ConfigOption {
	return actor.WithLoggerFactory(func(*actor.ActorSystem) *slog.Logger { return slog.New(libraryHandler{to.Handler()}) })
}

func (l libraryHandler) Enabled(ctx context.Context, level slog.Level) bool {
	return level >= slog.LevelError && l.to.Enabled(ctx, level)
}

// crashLogPrefix begins its line about an actor that crashed.
const crashLogPrefix = "[Supervision]"

func (l libraryHandler) Handle(ctx context.Context, r slog.Record) error {
	if r.Message == crashLogPrefix {
		return nil
	}
	return l.to.Handle(ctx, slog.NewRecord(r.Time, r.Level, "the actor library: "+r.Message, r.PC))
}

func (l libraryHandler) WithAttrs([]slog.Attr) slog.Handler { return l }
func (l libraryHandler) WithGroup(string) slog.Handler      { return l }
