package cli

import (
	"context"
	"fmt"
	"io"
	"strconv"
	"strings"
	"time"

	"github.com/troupe-engine/troupe/internal/child"
	"github.com/troupe-engine/troupe/internal/program"
	"github.com/troupe-engine/troupe/internal/secrets"
	"github.com/troupe-engine/troupe/worker"
	"github.com/troupe-engine/troupe/worker/demo"
)

// workerCmd runs a worker if no subcommand follows.
type workerCmd struct {
	Work workerRunCmd  `cmd:"" name:"run" default:"withargs" help:"Run a worker; the word run may be left out."`
	List workerListCmd `cmd:"" help:"List the workers that are registered, the member's own functions among them."`
	Show workerShowCmd `cmd:"" help:"Show a worker, and the jobs in the queue that it has."`
}

// Help describes how to run a worker, which the list of commands omits.
func (workerCmd) Help() string {
	return `This carries out the service resize by a command:

    troupe worker --exec 'resize=./resize.sh'

All flags of a worker are in the help of its run command: troupe worker run --help`
}

type workerRunCmd struct {
	Server string `env:"TROUPE_SERVER,REGISTRY_URL" default:"http://127.0.0.1:8070" placeholder:"URL" help:"The member that gives the jobs (${default}). Several with commas between them: the worker goes on with the next one when one cannot be reached."`
	Token  string `env:"TROUPE_TOKEN" help:"Bearer token for the member."`
	trustFlags
	ID          string        `env:"TROUPE_WORKER_ID" help:"What tells this worker from others; made up when empty."`
	Mode        string        `env:"TROUPE_WORKER_MODE" enum:"push,pull,attach" default:"pull" help:"push: the member calls this worker; pull: this worker asks for jobs; attach: it dials in once and gets its jobs over that stream (${default})."`
	Attach      bool          `help:"The same as --mode attach."`
	Services    []string      `env:"TROUPE_WORKER_SERVICES" help:"Offer these services; by default all there are: those of the demo, such as transform (push, attach) or async-transform (pull), if there is no --exec."`
	Exec        []string      `sep:"none" placeholder:"SERVICE=COMMAND" help:"Carry out a service by a shell command, in place of the demo services; may be repeated. It reads {\"input\": …, \"params\": {…}, \"key\": …} and prints the result as JSON; a failed command's last line on stderr is the error."`
	Process     bool          `help:"Start the programs that nodes name in exec: {type: process|python, service: …}, for the services given, by default process."`
	ScriptDir   string        `env:"TROUPE_SCRIPT_DIR" type:"existingdir" help:"Folder that these programs run in; they may not name a root outside of it."`
	Label       []string      `env:"TROUPE_WORKER_LABELS" placeholder:"LABEL" help:"A label this worker has, such as gpu; may be repeated. Nodes with labels have their jobs done by workers that have them all."`
	ChildEnv    []string      `env:"TROUPE_CHILD_ENV" placeholder:"NAME" help:"Variables that commands see of this worker's environment, besides PATH, HOME, LANG, LC_*, TZ, TMPDIR and USER."`
	SecretEnv   []string      `env:"TROUPE_SECRET_ENV" placeholder:"NAME" help:"Variables of this worker's environment that are secrets which its programs are given by name (--process)."`
	SecretDir   string        `env:"TROUPE_SECRET_DIR" type:"existingdir" placeholder:"DIR" help:"Folder whose files are secrets which its programs are given by name (--process)."`
	StopGrace   time.Duration `env:"TROUPE_WORKER_STOP_GRACE" default:"5s" help:"How long a command whose job is canceled may take to end when it has got SIGTERM (${default}). What is left of it then gets SIGKILL."`
	Concurrency int           `env:"TROUPE_WORKER_CONCURRENCY" help:"Jobs at once (64)."`
	URL         string        `env:"TROUPE_WORKER_URL,WORKER_URL" default:"http://localhost:8080" help:"Where the member reaches a push worker (${default}); port 0 is a free one."`
	Listen      string        `env:"TROUPE_WORKER_LISTEN" placeholder:"ADDR" help:"Address a push worker listens on, if not that of its URL."`
	Secret      string        `env:"TROUPE_WORKER_SECRET" help:"What callers of a push worker must know; the member is told. Made up when empty."`
	Delay       time.Duration `hidden:"" help:"What every demo job of a pull worker takes."`
	WithStdin   bool          `hidden:"" help:"End when stdin ends, so that a worker never outlives who started it."`
	orkFlags
	specFlags
	logFlags
}

func (c *workerRunCmd) Run(ctx context.Context, a *app) error {
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
		Trust: c.clientTrust(), URL: c.URL, Listen: c.Listen, Concurrency: c.Concurrency,
		Logger: c.newLogger(a),
	})
	what, err := c.registerHandlers(w)
	if err != nil {
		return err
	}
	if c.WithStdin {
		var stop context.CancelFunc
		ctx, stop = context.WithCancel(ctx)
		go func() { // ends with the process at the latest
			_, _ = io.Copy(io.Discard, a.stdin)
			stop()
		}()
	}
	kind := map[string]string{"push": "A push", "pull": "A pull", "attach": "An attached"}[c.Mode]
	c.printNotice(a, fmt.Sprintf("%s worker offers %s to %s", kind, what, c.Server),
		map[string]string{"mode": c.Mode, "services": what, "server": c.Server})
	return w.Run(ctx)
}

// registerHandlers registers the worker's services, and returns a description of them.
func (c *workerRunCmd) registerHandlers(w *worker.Worker) (string, error) {
	switch {
	case c.Process && len(c.Exec) > 0:
		return "", newUsageError("--process and --exec: give one of them")
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
				return "", newUsageError("--exec %q is not SERVICE=COMMAND", e)
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
