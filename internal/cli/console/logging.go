package console

import (
	"fmt"
	"log/slog"
	"time"
)

// LogFlags holds the flags of every long-running command that logs.
type LogFlags struct {
	LogFormat string `env:"TROUPE_LOG_FORMAT" enum:"text,json" default:"text" group:"Logs" help:"Format of logs and messages: text or json."`
	LogLevel  string `env:"TROUPE_LOG_LEVEL" enum:"debug,info,warn,error" default:"info" group:"Logs" help:"Minimum log level: debug, info, warn or error."`
}

// NewLogger returns a logger in the requested form. It also prints the command's final error and
// the messages of libraries.
func (f *LogFlags) NewLogger(a *App) *slog.Logger {
	var level slog.Level
	_ = level.UnmarshalText([]byte(f.LogLevel)) // valid because of the enum
	options := &slog.HandlerOptions{Level: level, ReplaceAttr: forPeople}
	log := slog.New(slog.NewTextHandler(a.Stderr, options))
	if f.LogFormat == "json" {
		log = slog.New(slog.NewJSONHandler(a.Stderr, options))
		a.Log = log
	}
	slog.SetDefault(log)
	return log
}

// PrintNotice prints a progress notice of the command on stdout, in the requested form.
func (f *LogFlags) PrintNotice(a *App, text string, fields map[string]string) {
	if f.LogFormat == "json" {
		_ = PrintLine(a.Stdout, fields) // a closed stdout is no error
		return
	}
	fmt.Fprintln(a.Stdout, text)
}

// forPeople formats durations as texts, because JSON has no form for them.
func forPeople(_ []string, a slog.Attr) slog.Attr {
	if a.Value.Kind() == slog.KindDuration {
		d := a.Value.Duration()
		switch {
		case d >= time.Second:
			d = d.Round(10 * time.Millisecond)
		case d >= time.Millisecond:
			d = d.Round(10 * time.Microsecond)
		}
		a.Value = slog.StringValue(d.String())
	}
	return a
}
