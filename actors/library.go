package actors

import (
	"context"
	"log/slog"

	"github.com/asynkron/protoactor-go/actor"
)

// library lets into our log what fails inside of the actor library. The rest it would say, at every start and of every crash, we say ourselves where
// it happens; and with its details, which are messages, values of users would be in the log.
type library struct{ to slog.Handler }

func libraryLog(to *slog.Logger) actor.ConfigOption {
	return actor.WithLoggerFactory(func(*actor.ActorSystem) *slog.Logger { return slog.New(library{to.Handler()}) })
}

func (l library) Enabled(ctx context.Context, level slog.Level) bool {
	return level >= slog.LevelError && l.to.Enabled(ctx, level)
}

// ofCrashes begins its line about an actor that crashed.
const ofCrashes = "[Supervision]"

func (l library) Handle(ctx context.Context, r slog.Record) error {
	if r.Message == ofCrashes {
		return nil
	}
	return l.to.Handle(ctx, slog.NewRecord(r.Time, r.Level, "the actor library: "+r.Message, r.PC))
}

func (l library) WithAttrs([]slog.Attr) slog.Handler { return l }
func (l library) WithGroup(string) slog.Handler      { return l }
