// Package workers has the commands that run workers, and the commands that show workers, queues and
// jobs.
package workers

import (
	"context"
	"fmt"
	"io"
	"strconv"
	"strings"
	"time"

	"github.com/troupe-engine/troupe/internal/child"
	"github.com/troupe-engine/troupe/internal/cli/console"
	"github.com/troupe-engine/troupe/internal/program"
	"github.com/troupe-engine/troupe/internal/secrets"
	"github.com/troupe-engine/troupe/worker"
	"github.com/troupe-engine/troupe/worker/demo"
)

// Command runs a worker if no subcommand follows.
type Command struct {
	Work workerRunCmd  `cmd:"" name:"run" default:"withargs" help:"Run a worker (the word run is optional)."`
	List workerListCmd `cmd:"" help:"List registered workers, including local functions of members."`
	Show workerShowCmd `cmd:"" help:"Show a worker and its jobs."`
}

// Help describes how to run a worker, which the list of commands omits.
func (Command) Help() string {
	return `Run the service resize as a shell command:

    troupe worker --exec 'resize=./resize.sh'

For all flags of a worker, run: troupe worker run --help`
}

type workerRunCmd struct {
	Server string `env:"TROUPE_SERVER,REGISTRY_URL" default:"http://127.0.0.1:8070" placeholder:"URL" help:"Server URL (${default}). Separate several members with commas: if one cannot be reached, the next one is used."`
	Token  string `env:"TROUPE_TOKEN" help:"Bearer token for the server."`
	console.TrustFlags
	ID          string        `env:"TROUPE_WORKER_ID" help:"Worker ID. Default: generated."`
	Mode        string        `env:"TROUPE_WORKER_MODE" enum:"push,pull,attach" default:"pull" help:"push: members call the worker; pull: the worker polls for jobs; attach: the worker opens a stream and receives jobs over it (${default})."`
	Attach      bool          `help:"Same as --mode attach."`
	Services    []string      `env:"TROUPE_WORKER_SERVICES" help:"Services to offer. Default: all of --exec, or else all demo services, such as transform (push, attach) or async-transform (pull)."`
	Exec        []string      `sep:"none" placeholder:"SERVICE=COMMAND" help:"Run a service as a shell command, instead of the demo services. Repeatable. The command reads {\"input\": …, \"params\": {…}, \"key\": …} and prints the result as JSON. If it fails, its last line on stderr is the error."`
	Process     bool          `help:"Run the programs of nodes with exec: {type: process|python, service: …} for the given services (process)."`
	ScriptDir   string        `env:"TROUPE_SCRIPT_DIR" type:"existingdir" help:"Folder in which programs run. Their root must be inside it."`
	Label       []string      `env:"TROUPE_WORKER_LABELS" placeholder:"LABEL" help:"Worker label, such as gpu. Repeatable. A node with labels runs only on workers that have all of them."`
	ChildEnv    []string      `env:"TROUPE_CHILD_ENV" placeholder:"NAME" help:"Environment variables passed to commands, besides PATH, HOME, LANG, LC_*, TZ, TMPDIR and USER."`
	SecretEnv   []string      `env:"TROUPE_SECRET_ENV" placeholder:"NAME" help:"Environment variables that programs can use as secrets (--process)."`
	SecretDir   string        `env:"TROUPE_SECRET_DIR" type:"existingdir" placeholder:"DIR" help:"Folder whose files programs can use as secrets (--process)."`
	StopGrace   time.Duration `env:"TROUPE_WORKER_STOP_GRACE" default:"5s" help:"Time between SIGTERM and SIGKILL for the command of a canceled job (${default})."`
	Concurrency int           `env:"TROUPE_WORKER_CONCURRENCY" help:"Maximum number of concurrent jobs (64)."`
	URL         string        `env:"TROUPE_WORKER_URL,WORKER_URL" default:"http://localhost:8080" help:"URL where members reach a push worker (${default}); port 0 selects a free port."`
	Listen      string        `env:"TROUPE_WORKER_LISTEN" placeholder:"ADDR" help:"Listen address of a push worker. Default: that of --url."`
	Secret      string        `env:"TROUPE_WORKER_SECRET" help:"Shared secret that callers of a push worker must send. Default: generated and registered with the server."`
	Delay       time.Duration `hidden:"" help:"What every demo job of a pull worker takes."`
	WithStdin   bool          `hidden:"" help:"End when stdin ends, so that a worker never outlives who started it."`
	orkFlags
	specFlags
	console.LogFlags
}

func (c *workerRunCmd) Run(ctx context.Context, a *console.App) error {
	if c.OrkListen != "" {
		return c.serveOrk(ctx, a)
	}
	if c.Spec != "" {
		return c.carryOut(ctx, a)
	}
	if c.Attach {
		c.Mode = "attach"
	}
	w := worker.New(worker.Config{
		Server: c.Server, Token: c.Token, ID: c.ID, Services: c.Services, Labels: c.Label, Secret: c.Secret,
		Push: c.Mode == "push", Pull: c.Mode == "pull", Attach: c.Mode == "attach",
		Trust: c.ClientTrust(), URL: c.URL, Listen: c.Listen, Concurrency: c.Concurrency,
		Logger: c.NewLogger(a),
	})
	what, err := c.registerHandlers(w)
	if err != nil {
		return err
	}
	if c.WithStdin {
		var stop context.CancelFunc
		ctx, stop = context.WithCancel(ctx)
		go func() { // ends with the process at the latest
			_, _ = io.Copy(io.Discard, a.Stdin)
			stop()
		}()
	}
	kind := map[string]string{"push": "A push", "pull": "A pull", "attach": "An attached"}[c.Mode]
	c.PrintNotice(a, fmt.Sprintf("%s worker offers %s to %s", kind, what, c.Server),
		map[string]string{"mode": c.Mode, "services": what, "server": c.Server})
	return w.Run(ctx)
}

// registerHandlers registers the worker's services, and returns a description of them.
func (c *workerRunCmd) registerHandlers(w *worker.Worker) (string, error) {
	switch {
	case c.Process && len(c.Exec) > 0:
		return "", console.NewUsageError("give either --process or --exec")
	case c.Process:
		known, err := secrets.Open(secrets.Options{Env: c.SecretEnv, Dir: c.SecretDir, Seen: c.ChildEnv})
		if err != nil {
			return "", err
		}
		handler := programHandler(program.New(program.Options{Dir: c.ScriptDir, Env: c.ChildEnv, Secrets: known}))
		for _, service := range c.programServices() {
			w.Handle(service, handler)
		}
		return strings.Join(c.programServices(), ", "), nil
	case len(c.Exec) > 0:
		names, env := c.Services, child.Environment(c.ChildEnv)
		for _, e := range c.Exec {
			service, command, ok := strings.Cut(e, "=")
			if !ok || service == "" || command == "" {
				return "", console.NewUsageError("--exec %q is not SERVICE=COMMAND", e)
			}
			w.Handle(service, commandHandler(command, env, c.StopGrace))
			if len(c.Services) == 0 {
				names = append(names, service)
			}
		}
		return strings.Join(names, ", "), nil
	case c.Mode == "push" || c.Mode == "attach":
		demo.Push(w)
		return joinNames(c.Services, demo.PushServices()), nil
	default:
		demo.Pull(w, demo.Options{Services: c.Services, Delay: c.Delay})
		return joinNames(c.Services, demo.PullServices()), nil
	}
}

func (c *workerRunCmd) programServices() []string {
	if len(c.Services) > 0 {
		return c.Services
	}
	return []string{programService}
}

func joinNames(names, otherwise []string) string {
	if len(names) == 0 {
		names = otherwise
	}
	return strings.Join(names, ", ")
}

// commandEnv returns a command's environment with the variables of its job.
func commandEnv(env []string, job worker.Job) []string { return child.Laid(env, jobVariables(job)) }

// jobVariables returns the variables that describe a job.
func jobVariables(job worker.Job) map[string]string {
	own := map[string]string{"TROUPE_SERVICE": job.Service, "TROUPE_JOB": job.ID,
		"TROUPE_KEY": job.Key(), "TROUPE_TASK": job.Task, "TROUPE_FLOW": job.Flow, "TROUPE_NODE": job.Step,
		"TROUPE_ATTEMPT": strconv.Itoa(job.Attempt), "TROUPE_UNIT": strconv.Itoa(job.Unit), "TROUPE_UNITS": strconv.Itoa(job.Units)}
	if job.Trace != "" {
		own["TRACEPARENT"] = job.Trace
	}
	return own
}
