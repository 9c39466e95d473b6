package cli

import (
	"fmt"
	"log/slog"
	"time"
)

// logFlags are for every command that lives on and logs.
type logFlags struct {
	LogFormat string `env:"TROUPE_LOG_FORMAT" enum:"text,json" default:"text" group:"Logs" help:"Form of all that is printed, the log on stderr above all: text or json."`
	LogLevel  string `env:"TROUPE_LOG_LEVEL" enum:"debug,info,warn,error" default:"info" group:"Logs" help:"Least level that is logged: debug, info, warn or error."`
}

// newLogger writes in the form that was asked for; what fails the command is written so, too, and
// what libraries have to say.
func (f *logFlags) newLogger(a *app) *slog.Logger {
	var level slog.Level
	_ = level.UnmarshalText([]byte(f.LogLevel)) // one of the enum
	options := &slog.HandlerOptions{Level: level, ReplaceAttr: forPeople}
	log := slog.New(slog.NewTextHandler(a.stderr, options))
	if f.LogFormat == "json" {
		log = slog.New(slog.NewJSONHandler(a.stderr, options))
		a.log = log
	}
	slog.SetDefault(log)
	return log
}

// printNotice tells on stdout what the command is about, in the form that was asked for.
func (f *logFlags) printNotice(a *app, text string, fields map[string]string) {
	if f.LogFormat == "json" {
		_ = printLine(a.stdout, fields) // who has closed it does not want to know
		return
	}
	fmt.Fprintln(a.stdout, text)
}

// forPeople writes durations as texts: JSON has no form of them.
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
