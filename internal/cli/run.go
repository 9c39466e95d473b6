package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"reflect"
	"slices"
	"strings"

	"github.com/alecthomas/kong"

	"github.com/troupe-engine/troupe/internal/cli/console"
	"github.com/troupe-engine/troupe/internal/cli/flows"
	"github.com/troupe-engine/troupe/internal/cli/operate"
	"github.com/troupe-engine/troupe/internal/cli/schedules"
	"github.com/troupe-engine/troupe/internal/cli/serve"
	"github.com/troupe-engine/troupe/internal/cli/tasks"
	"github.com/troupe-engine/troupe/internal/cli/workers"
)

// Exit codes of the program.
const (
	exitOK     = 0
	exitFailed = 1
	exitUsage  = 2
)

type commandTree struct {
	Serve      serve.Command          `cmd:"" help:"Run a member: the engine with its HTTP API and pages."`
	Dev        serve.DevCommand       `cmd:"" help:"Run a member for development, with demo services and the flows of a folder."`
	Demo       serve.DemoCommand      `cmd:"" help:"Run all example flows with a member and two workers."`
	Worker     workers.Command        `cmd:"" help:"Run, list and show workers."`
	Queue      workers.QueueCommand   `cmd:"" help:"List queues of jobs."`
	Job        workers.JobCommand     `cmd:"" help:"List and show jobs."`
	Flow       flows.Command          `cmd:"" help:"Publish, test and show flows."`
	Task       tasks.Command          `cmd:"" help:"Start, watch and control tasks."`
	Approval   tasks.ApprovalCommand  `cmd:"" help:"List and answer approvals."`
	Stats      operate.StatsCommand   `cmd:"" help:"Show statistics of all tasks, or of one flow."`
	Token      operate.TokenCommand   `cmd:"" help:"Create, list and delete access tokens."`
	Hook       operate.HookCommand    `cmd:"" help:"Manage webhooks that start or signal tasks."`
	Schedule   schedules.Command      `cmd:"" help:"Manage schedules that start tasks."`
	Cluster    operate.ClusterCommand `cmd:"" help:"Show and drain the members of a cluster."`
	Ork        flows.OrkCommand       `cmd:"" help:"Print types for Ork workflow files."`
	Import     operate.ImportCommand  `cmd:"" help:"Import the data of another engine."`
	Health     operate.HealthCommand  `cmd:"" help:"Check the health of a member."`
	Complete   completeCmd            `cmd:"" name:"__complete" hidden:"" help:"Print completions of a command line; for completion scripts."`
	Completion completionCmd          `cmd:"" help:"Print a shell completion script."`
	Version    versionCmd             `cmd:"" help:"Print the version (also --version)."`
}

// newCommandTree returns the program's commands, with the flags of its additions.
func newCommandTree(e console.Program) *commandTree {
	c := new(commandTree)
	for _, add := range e.Additions {
		c.Serve.Plugins = append(c.Serve.Plugins, add)
		c.Dev.Plugins = append(c.Dev.Plugins, add)
	}
	return c
}

// runCommandLine parses and runs a command line and returns the exit code.
func runCommandLine(ctx context.Context, e console.Program, args []string, stdin io.Reader, stdout, stderr io.Writer) int {
	a := &console.App{Program: e, Stdin: stdin, Stdout: console.NewDisplay(stdout), Stderr: console.NewDisplay(stderr)}
	exited := false // kong has printed a help text
	switch {
	case len(args) == 0:
		args = []string{"--help"}
	// --version is not in the model, because commands have a flag of this name
	case len(args) == 1 && args[0] == "--version":
		args = []string{"version"}
	}
	command, err := newParser(e, selectCommand(newCommandTree(e), args[0]),
		kong.Writers(stdout, stderr), kong.Exit(func(int) { exited = true }),
		kong.BindTo(ctx, (*context.Context)(nil)), kong.Bind(a)).Parse(args)
	if exited {
		return exitOK
	}
	if err != nil {
		return reportError(a, console.UsageError{Err: err})
	}
	if err := cmp.Or(checkNames(command), checkPlaces(command, args)); err != nil {
		return reportError(a, err)
	}
	return reportError(a, command.Run())
}

// newParser returns a parser for these commands.
func newParser(e console.Program, commands any, options ...kong.Option) *kong.Kong {
	parser, err := kong.New(commands, append(options, kong.Name(e.Name),
		kong.Description("Troupe is a durable workflow engine. Run \""+e.Name+" demo\" to try it."),
		console.DurationMapper, console.TimeMapper, console.ZonedTimeMapper, kong.ConfigureHelp(kong.HelpOptions{Compact: true}))...)
	if err != nil {
		panic(fmt.Sprintf("the command line's model is wrong: %v", err))
	}
	return parser
}

// selectCommand returns only the named command, or all commands if the name is unknown: building
// the model of all commands takes longer than running most commands.
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

// checkNames rejects empty names and ids, which result from unset variables. An empty id would
// match the beginning of every id.
func checkNames(command *kong.Context) error {
	for _, p := range command.Path {
		v := p.Positional
		if v != nil && (v.Required || v.IsSlice() && v.Tag.Has("complete")) && hasEmpty(v.Target.Interface()) {
			return console.NewUsageError("<%s> is empty: check that the variable is set", v.Name)
		}
	}
	return nil
}

// isPlace reports whether a flag names a file, a folder, an address, a server or a node.
func isPlace(f *kong.Flag) bool {
	return slices.Contains([]string{"SETTING", "URL", "FILE", "DIR", "ADDR", "HOST:PORT", "NODE"}, f.PlaceHolder) ||
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
			return console.NewUsageError("--%s is empty: give it a value or omit the flag; check that the variable is set", f.Name)
		}
		set := slices.IndexFunc(f.Envs, func(name string) bool { _, isSet := os.LookupEnv(name); return isSet })
		isGiven := slices.ContainsFunc(command.Path, func(p *kong.Path) bool { return p.Flag == f })
		if !isGiven && set >= 0 && os.Getenv(f.Envs[set]) == "" {
			return console.NewUsageError("--%s: the variable %s is set but empty: give it a value or unset it", f.Name, f.Envs[set])
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
func reportError(a *console.App, err error) int {
	var usage console.UsageError
	switch {
	case err == nil:
		return exitOK
	case errors.As(err, &usage):
		fmt.Fprintf(a.Stderr, "%s: %v\nRun '%[1]s --help' or '%[1]s COMMAND --help' for usage.\n", a.Name, err)
		return exitUsage
	case errors.Is(err, console.ErrMistaken):
		return exitUsage
	case errors.Is(err, console.ErrFailed):
	case a.Log != nil:
		a.Log.Error(console.ExplainError(err))
	default:
		fmt.Fprintf(a.Stderr, "%s: %s\n", a.Name, console.ExplainError(err))
	}
	return exitFailed
}
