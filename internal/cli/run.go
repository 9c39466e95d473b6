package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"reflect"
	"slices"
	"strings"

	"github.com/alecthomas/kong"
)

// Exit codes.
const (
	exitOK     = 0
	exitFailed = 1
	exitUsage  = 2
)

// errFailed is the error of a command that has already reported the failure.
var errFailed = errors.New("failed")

// usageError is a fault of the command line that only the command itself could detect.
type usageError struct{ error }

func newUsageError(format string, args ...any) error { return usageError{fmt.Errorf(format, args...)} }

// programVariant holds the differences between programs with this command line.
type programVariant struct {
	name      string
	additions []Addition
}

// app holds the environment of every command.
type app struct {
	programVariant
	stdin          io.Reader
	stdout, stderr io.Writer
	log            *slog.Logger // destination of failures; nil means text on stderr
}

type commandTree struct {
	Serve      serveCmd      `cmd:"" help:"Run a member: the engine with its HTTP API."`
	Dev        devCmd        `cmd:"" help:"Run a member for development, with demo services and the flows of a folder."`
	Demo       demoCmd       `cmd:"" help:"See it work: a member, two workers, and tasks of all example flows."`
	Worker     workerCmd     `cmd:"" help:"Run a worker: the demo services, or commands of your own; and look at those there are."`
	Queue      queueCmd      `cmd:"" help:"Look at the queues of jobs."`
	Job        jobCmd        `cmd:"" help:"Look at the jobs in the queues."`
	Flow       flowCmd       `cmd:"" help:"Publish and look at flows."`
	Task       taskCmd       `cmd:"" help:"Start, follow and steer tasks."`
	Approval   approvalCmd   `cmd:"" help:"See who waits for an approval, and answer."`
	Stats      statsCmd      `cmd:"" help:"See how everything is, or how the tasks of a flow go."`
	Token      tokenCmd      `cmd:"" help:"Let others in, each with a role."`
	Hook       hookCmd       `cmd:"" help:"Have others start and signal tasks by signed deliveries over HTTP."`
	Schedule   scheduleCmd   `cmd:"" help:"Have tasks begin by the clock."`
	Cluster    clusterCmd    `cmd:"" help:"Look at the members of a cluster, and have one hand its tasks over."`
	Ork        orkCmd        `cmd:"" help:"Help with workflow files of Ork."`
	Import     importCmd     `cmd:"" help:"Take over what another engine has stored."`
	Health     healthCmd     `cmd:"" help:"Ask whether a member can do its work."`
	Complete   completeCmd   `cmd:"" name:"__complete" hidden:"" help:"Print what may be typed next; for completion scripts."`
	Completion completionCmd `cmd:"" help:"Print the completion script of a shell."`
	Version    versionCmd    `cmd:"" help:"Print the version; also --version."`
}

// newCommandTree returns the program's commands, with the flags of its additions.
func (e programVariant) newCommandTree() *commandTree {
	c := new(commandTree)
	for _, add := range e.additions {
		c.Serve.Plugins = append(c.Serve.Plugins, add)
		c.Dev.Plugins = append(c.Dev.Plugins, add)
	}
	return c
}

// runCommand parses and runs a command line and returns the exit code.
func (e programVariant) runCommand(ctx context.Context, args []string, stdin io.Reader, stdout, stderr io.Writer) int {
	a := &app{programVariant: e, stdin: stdin, stdout: newDisplay(stdout), stderr: newDisplay(stderr)}
	exited := false // kong has printed a help text
	switch {
	case len(args) == 0:
		args = []string{"--help"}
	// not a flag of the model, because commands have a flag of that name
	case len(args) == 1 && args[0] == "--version":
		args = []string{"version"}
	}
	command, err := a.newParser(selectCommand(e.newCommandTree(), args[0]),
		kong.Writers(stdout, stderr), kong.Exit(func(int) { exited = true }),
		kong.BindTo(ctx, (*context.Context)(nil)), kong.Bind(a)).Parse(args)
	if exited {
		return exitOK
	}
	if err != nil {
		return a.reportError(usageError{err})
	}
	if err := cmp.Or(checkNames(command), checkPlaces(command, args)); err != nil {
		return a.reportError(err)
	}
	return a.reportError(command.Run())
}

// newParser returns a parser for these commands.
func (e programVariant) newParser(commands any, options ...kong.Option) *kong.Kong {
	parser, err := kong.New(commands, append(options, kong.Name(e.name),
		kong.Description("Troupe is a durable workflow engine. Run \""+e.name+" demo\" to see it work."),
		durations, instants, zonedTimes, kong.ConfigureHelp(kong.HelpOptions{Compact: true}))...)
	if err != nil {
		panic(fmt.Sprintf("the command line's model is wrong: %v", err))
	}
	return parser
}

// selectCommand returns only the command with a name, or all commands if there is none: building
// the model of all takes longer than running most commands.
func selectCommand(all *commandTree, name string) any {
	v := reflect.ValueOf(all).Elem()
	for i := range v.NumField() {
		f := v.Type().Field(i)
		if cmp.Or(f.Tag.Get("name"), strings.ToLower(f.Name)) == name {
			one := reflect.New(reflect.StructOf([]reflect.StructField{f}))
			one.Elem().Field(0).Set(v.Field(i))
			return one.Interface()
		}
	}
	return all
}

// checkNames rejects empty names and ids, as they result from unset variables. An empty id would be
// the beginning of every id.
func checkNames(command *kong.Context) error {
	for _, p := range command.Path {
		v := p.Positional
		if v != nil && (v.Required || v.IsSlice() && v.Tag.Has("complete")) && hasEmpty(v.Target.Interface()) {
			return newUsageError("<%s>: it is empty; is a variable not set?", v.Name)
		}
	}
	return nil
}

// isPlace reports whether a flag names a file, a folder, an address or a server.
func isPlace(f *kong.Flag) bool {
	return slices.Contains([]string{"SETTING", "URL", "FILE", "DIR", "ADDR", "HOST:PORT"}, f.PlaceHolder) ||
		slices.Contains([]string{"path", "existingfile", "existingdir"}, f.Tag.Type)
}

// checkPlaces rejects an empty place, given by a flag or a variable. Otherwise the default would be
// used silently, such as another store or the current folder.
func checkPlaces(command *kong.Context, args []string) error {
	for _, f := range command.Flags() {
		if !isPlace(f) {
			continue
		}
		if isGivenEmpty(args, "--"+f.Name) {
			return newUsageError("--%s: it is empty: give it a value, or leave the flag out; is a variable not set?", f.Name)
		}
		set := slices.IndexFunc(f.Envs, func(name string) bool { _, isSet := os.LookupEnv(name); return isSet })
		isGiven := slices.ContainsFunc(command.Path, func(p *kong.Path) bool { return p.Flag == f })
		if !isGiven && set >= 0 && os.Getenv(f.Envs[set]) == "" {
			return newUsageError("--%s: the variable %s is set and empty: give it a value, or unset it", f.Name, f.Envs[set])
		}
	}
	return nil
}

func isGivenEmpty(args []string, flag string) bool {
	for i, arg := range args {
		if arg == flag+"=" || arg == flag && i+1 < len(args) && args[i+1] == "" {
			return true
		}
	}
	return false
}

func hasEmpty(given any) bool {
	switch given := given.(type) {
	case string:
		return given == ""
	case []string:
		return slices.Contains(given, "")
	}
	return false
}

// reportError prints an error with advice, and returns the exit code.
func (a *app) reportError(err error) int {
	var usage usageError
	switch {
	case err == nil:
		return exitOK
	case errors.As(err, &usage):
		fmt.Fprintf(a.stderr, "%s: %v\nRun %[1]s --help, or --help behind a command, for what is possible.\n", a.name, err)
		return exitUsage
	case errors.Is(err, errMistaken):
		return exitUsage
	case errors.Is(err, errFailed):
	case a.log != nil:
		a.log.Error(explainError(err))
	default:
		fmt.Fprintf(a.stderr, "%s: %s\n", a.name, explainError(err))
	}
	return exitFailed
}
