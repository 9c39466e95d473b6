package workers

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"mime"
	"net"
	"net/http"
	"net/netip"
	"os"
	"time"

	"github.com/troupe-engine/troupe/dialect/ork"
	"github.com/troupe-engine/troupe/internal/child"
	"github.com/troupe-engine/troupe/internal/cli/console"
	"github.com/troupe-engine/troupe/internal/cli/flows"
	"github.com/troupe-engine/troupe/internal/program"
)

// orkFlags makes a worker speak the protocol of Ork's HTTP workers. Such a worker only answers
// requests, and stores nothing.
type orkFlags struct {
	OrkListen    string `placeholder:"ADDR" group:"Ork" help:"Run as a worker for Ork on this local address, such as 127.0.0.1:8081. Any caller can run programs in --working-dir as this user."`
	WorkflowPath string `placeholder:"FILE" default:"workflow.yaml" group:"Ork" help:"Default workflow file of /compile (${default})."`
	WorkingDir   string `type:"existingdir" default:"." group:"Ork" help:"Folder in which programs run and files are read (${default})."`
}

// orkWorker serves the protocol of Ork's HTTP workers.
type orkWorker struct {
	dir, workflow string
	runner        *program.Runner
	slots         chan struct{} // one for each concurrent program
}

// Limits of an Ork worker.
const (
	maxOrkRequest  = 8 << 20
	orkConcurrency = 64
)

// serveOrk serves until ctx ends. Running programs are then ended, too.
func (c *workerRunCmd) serveOrk(ctx context.Context, a *console.App) error {
	if err := checkLoopback(c.OrkListen); err != nil {
		return err
	}
	listener, err := net.Listen("tcp", c.OrkListen)
	if err != nil {
		return fmt.Errorf("listening: %w", err)
	}
	atOnce := c.Concurrency
	if atOnce <= 0 {
		atOnce = orkConcurrency
	}
	w := &orkWorker{dir: c.WorkingDir, workflow: c.WorkflowPath, slots: make(chan struct{}, atOnce),
		runner: program.New(program.Options{Dir: c.WorkingDir, Env: c.ChildEnv})}
	server := &http.Server{Handler: w.newHandler(), ReadHeaderTimeout: 10 * time.Second, ReadTimeout: time.Minute, MaxHeaderBytes: 64 << 10,
		BaseContext: func(net.Listener) context.Context { return ctx }}
	stop := context.AfterFunc(ctx, func() {
		leaving, cancel := context.WithTimeout(context.WithoutCancel(ctx), c.StopGrace+10*time.Second)
		defer cancel()
		// callers that are cut off already know that their program has ended
		_ = server.Shutdown(leaving)
	})
	defer stop()
	c.PrintNotice(a, "A worker for Ork listens on http://"+listener.Addr().String(),
		map[string]string{"mode": "ork", "address": listener.Addr().String()})
	if err := server.Serve(listener); !errors.Is(err, http.ErrServerClosed) {
		return err
	}
	return nil
}

// checkLoopback rejects addresses that other hosts can reach, because Ork's protocol does not
// authenticate callers.
func checkLoopback(address string) error {
	host, _, err := net.SplitHostPort(address)
	if err != nil {
		return console.NewUsageError("--ork-listen %q: use an address such as 127.0.0.1:8081", address)
	}
	if ip, err := netip.ParseAddr(host); host != "localhost" && (err != nil || !ip.IsLoopback()) {
		return console.NewUsageError("--ork-listen %s can be reached from other hosts without "+
			"authentication: listen on 127.0.0.1 behind a proxy that checks "+
			"credentials", address)
	}
	return nil
}

func (w *orkWorker) newHandler() http.Handler {
	mux := http.NewServeMux()
	healthy := func(out http.ResponseWriter, _ *http.Request) {
		answerJSON(out, map[string]string{"status": "healthy", "service": "ork-worker"})
	}
	mux.HandleFunc("GET /health", healthy)
	mux.HandleFunc("POST /health", healthy)
	mux.HandleFunc("POST /compile", w.handleCompile)
	mux.HandleFunc("POST /execute", w.handleExecute)
	return withoutPages(mux)
}

// withoutPages rejects requests from web pages. A page can reach addresses of this computer, and
// must not start programs.
func withoutPages(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		r.Body = http.MaxBytesReader(w, r.Body, maxOrkRequest)
		kind, _, _ := mime.ParseMediaType(r.Header.Get("Content-Type"))
		switch {
		case r.Header.Get("Origin") != "" || r.Header.Get("Sec-Fetch-Site") != "":
			http.Error(w, "web pages are not served", http.StatusForbidden)
		case r.ContentLength != 0 && kind != "application/json":
			http.Error(w, "the content type must be application/json", http.StatusUnsupportedMediaType)
		default:
			next.ServeHTTP(w, r)
		}
	})
}

func answerJSON(w http.ResponseWriter, v any) {
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(v) // a client that is gone needs no answer
}

// orkTask is a task of a workflow in the answer of /compile.
type orkTask struct {
	Name      string   `json:"name"`
	Executor  string   `json:"executor"`
	DependsOn []string `json:"depends_on"`
}

// handleCompile returns the tasks of a workflow file in the working folder.
func (w *orkWorker) handleCompile(out http.ResponseWriter, r *http.Request) {
	asked := struct {
		Path string `json:"workflow_path"`
	}{w.workflow}
	if err := json.NewDecoder(r.Body).Decode(&asked); err != nil && !errors.Is(err, io.EOF) {
		http.Error(out, "the body is not a JSON object: "+err.Error(), http.StatusBadRequest)
		return
	}
	path, err := child.Inside(w.dir, asked.Path)
	if err != nil {
		http.Error(out, err.Error(), http.StatusInternalServerError)
		return
	}
	text, err := os.ReadFile(path)
	if err != nil {
		http.Error(out, err.Error(), http.StatusInternalServerError)
		return
	}
	o, err := flows.ReadOrkOptions(w.dir)
	if err != nil {
		http.Error(out, err.Error(), http.StatusInternalServerError)
		return
	}
	o.Inspect = nil
	workflow, problems := ork.Translate(text, o)
	if err := problems.Err(); err != nil {
		http.Error(out, err.Error(), http.StatusBadRequest)
		return
	}
	tasks := make([]orkTask, len(workflow.Tasks))
	for i, t := range workflow.Tasks {
		tasks[i] = orkTask{t.Name, t.Executor, append([]string{}, t.DependsOn...)}
	}
	answerJSON(out, map[string]any{"workflow": workflow.Name, "tasks": tasks})
}
